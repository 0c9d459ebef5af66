"""The results of a training run: a table, data as JSON, and files of results."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphax import ComputationGraph, Order
from graphax.table import table

from ..agents.run_folder import read_curve
from ..elimination.objective import Objective, baselines
from ..finders.records import best_known
from .target import Target

BASELINES = ("forward", "reverse", "markowitz")


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run. ``found`` has a row for each task, with its order in the folder of the run."""

    agent: str
    folder: Path
    objective: Objective
    stopped: str
    curve: list[dict[str, Any]]
    found: list[dict[str, Any]]

    @staticmethod
    def of(
        agent: str,
        folder: Path,
        targets: dict[str, Target],
        graphs: dict[str, ComputationGraph],
        objective: Objective,
        stopped: str,
    ) -> "Outcome":
        """Read the outcome from the folder. Raises an interruption if the run was interrupted before it found an
        order."""
        saved = {name: folder / "orders" / f"{name}.json" for name in targets}
        if stopped == "interrupted" and not all(path.exists() for path in saved.values()):
            raise KeyboardInterrupt
        found = [_row(name, saved[name], targets[name], graphs[name], objective) for name in targets]
        return Outcome(agent, folder, objective, stopped, read_curve(folder / "metrics.jsonl"), found)

    @property
    def seconds(self) -> float:
        return self.curve[-1]["seconds"] if self.curve else 0.0

    def as_dict(self) -> dict[str, Any]:
        return {
            "agent": str(self.agent),
            "folder": str(self.folder),
            "objective": str(self.objective),
            "stopped": self.stopped,
            "iterations": len(self.curve),
            "seconds": self.seconds,
            "tasks": self.found,
        }

    def __str__(self):
        names = ["task", "best found", "forward", "reverse", "Markowitz", "lower bound"]
        keys = ("task", "best", *BASELINES, "bound")
        cells = [[row[key] for key in keys] for row in self.found]
        ended = (
            f"stopped: {self.stopped}, after {len(self.curve)} iterations and {self.seconds:.1f} s, in {self.folder}"
        )
        usage = [line for row in self.found for line in ("", *row["usage"])]
        return "\n".join([table(f"{self.agent}, {self.objective}", names, cells), ended, *usage])

    def write(self, folder: Path, seed: int, **about: Any) -> None:
        """A file for each task, ``<agent>/<task>-<seed>.json``, with further data about the run.

        Results of an agent that learnt several tasks go to ``<agent>-joint``.
        """
        agent = self.agent if len(self.found) == 1 else f"{self.agent}-joint"
        for number, row in enumerate(self.found):
            path = folder / agent / f"{row['task']}-{seed}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            result = {
                **{key: row[key] for key in ("task", "order", "multiplications")},
                "counting": self.objective.counting,
                "seed": seed,
                **about,
                "seconds": self.seconds,
                "objective": str(self.objective),
                "baselines": {name: row[name] for name in BASELINES},
                "curve": _of_task(self.curve, number),
            }
            path.write_text(json.dumps(result) + "\n", encoding="utf-8")


def _row(task: str, saved: Path, target: Target, graph: ComputationGraph, objective: Objective) -> dict[str, Any]:
    """The best order of one task, its cost, and the costs of other orders."""
    order = Order.load(saved)
    cost, records = graph.cost(order, objective.counting), (order, best_known(graph, objective))
    bound = float(max(record.bound or 0 for record in records if record))
    return {
        "task": task,
        "order": order.vertices,
        "best": objective.value(cost),
        **dict(zip(BASELINES, baselines(graph, objective), strict=True)),
        "bound": int(bound) if bound == int(bound) else bound,
        "multiplications": cost.multiplications,
        "usage": target.usage(order, str(saved)),
    }


def _of_task(curve: Sequence[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    """The metrics of one task, and the shared metrics."""
    return [
        {name: [value[number]] if isinstance(value, list) else value for name, value in line.items()} for line in curve
    ]
