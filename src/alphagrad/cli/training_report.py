"""What a training run has found: a table for people, data for programs, and files of results."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graphax import ComputationGraph, Order
from graphax.table import table

from ..agents.run_folder import read_curve
from ..elimination.objective import Objective, baselines
from .target import Target


@dataclass(frozen=True)
class Row:
    """The best order of one task, what it costs, and what others do."""

    task: str
    order: Order
    best: float
    forward: float
    reverse: float
    markowitz: float
    bound: float
    multiplications: int
    usage: list[str]

    @staticmethod
    def of(
        task: str, order: Order, saved: Path, target: Target, graph: ComputationGraph, objective: Objective
    ) -> "Row":
        costs = baselines(graph, objective)
        cost = graph.cost(order, objective.counting)
        bound = float(order.bound or 0)
        return Row(
            task, order, objective.value(cost), *costs, int(bound) if bound == int(bound) else bound,
            cost.multiplications, target.usage(order, str(saved)),
        )  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "order": list(self.order.vertices)}


@dataclass(frozen=True)
class Report:
    """How a run ended, with a row for each task; the orders are those in its folder."""

    agent: str
    folder: Path
    objective: Objective
    stopped: str
    curve: list[dict[str, Any]]
    rows: list[Row]

    @staticmethod
    def of(
        agent: str,
        folder: Path,
        targets: dict[str, Target],
        graphs: dict[str, ComputationGraph],
        counting: str,
        minimize: Any,
        stopped: str,
    ) -> "Report":
        """Read from the folder; an interrupted run that has no orders yet is an interruption."""
        objective = Objective.of(minimize, counting)
        saved = {name: folder / "orders" / f"{name}.json" for name in targets}
        if stopped == "interrupted" and not all(path.exists() for path in saved.values()):
            raise KeyboardInterrupt
        rows = [
            Row.of(name, Order.load(saved[name]), saved[name], targets[name], graphs[name], objective)
            for name in targets
        ]
        return Report(agent, folder, objective, stopped, read_curve(folder / "metrics.jsonl"), rows)

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
            "tasks": [row.as_dict() for row in self.rows],
        }

    def __str__(self):
        names = ["task", "best found", "forward", "reverse", "Markowitz", "no order below"]
        cells = [[r.task, r.best, r.forward, r.reverse, r.markowitz, r.bound] for r in self.rows]
        ended = (
            f"stopped: {self.stopped}, after {len(self.curve)} iterations and {self.seconds:.1f} s, in {self.folder}"
        )
        usage = [line for row in self.rows for line in ("", *row.usage)]
        return "\n".join([table(f"{self.agent}, {self.objective}", names, cells), ended, *usage])


def write_results(folder: Path, report: Report, config: Any, seed: int, command: str) -> None:
    """A file for each task, ``<agent>/<task>.json``."""
    for number, row in enumerate(report.rows):
        path = folder / report.agent / f"{row.task}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        found = {
            "task": row.task,
            "order": list(row.order.vertices),
            "multiplications": row.multiplications,
            "counting": report.objective.counting,
            "seed": seed,
            "config": asdict(config),
            "seconds": report.seconds,
            "command": command,
            "objective": str(report.objective),
            "baselines": {"forward": row.forward, "reverse": row.reverse, "markowitz": row.markowitz},
            "curve": _of_task(report.curve, number),
        }
        path.write_text(json.dumps(found) + "\n", encoding="utf-8")


def _of_task(curve: Sequence[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    """The metrics of one task, and those that all share."""
    return [
        {name: [value[number]] if isinstance(value, list) else value for name, value in line.items()} for line in curve
    ]
