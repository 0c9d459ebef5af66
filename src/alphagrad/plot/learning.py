"""Learning curves of training runs."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from .. import tasks
from ..agents.run_folder import RunError, read_curve
from ..elimination.objective import Objective, baselines
from .lines import STYLES, draw_baselines


@dataclass(frozen=True)
class Curve:
    """The data of a learning curve: the metrics per iteration, and the costs of baseline orders, if known."""

    names: list[str]
    objective: str
    lines: list[dict[str, Any]]
    baselines: dict[str, float]


def learning_curve(run: str | os.PathLike) -> tuple[Figure, Any]:
    """Draw the best and the mean cost of each iteration over the games played. Returns the figure and its axes.

    With a single task, forward, reverse and Markowitz are horizontal lines. The folder of a run does not contain their
    costs, so these are only drawn for functions that ship with alphagrad; files of results contain them.

    Args:
        run: the folder of a training run, or a file written by ``alphagrad train --results``.
    """
    path = Path(run)
    curve = _of_folder(path) if path.is_dir() else _of_results(path)
    if not curve.lines:
        raise RunError(f"{path} has no iterations to draw")
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    games = [line["games"] for line in curve.lines]
    for number, name in enumerate(curve.names):
        (drawn,) = axes.plot(games, [line["best_cost"][number] for line in curve.lines], label=f"{name}, best")
        mean = [line["mean_cost"][number] for line in curve.lines]
        axes.plot(games, mean, label=f"{name}, mean", color=drawn.get_color(), alpha=0.4)
    draw_baselines(axes, curve.baselines)
    axes.set(xlabel="games", ylabel=curve.objective)
    axes.legend()
    return figure, axes


def _of_folder(folder: Path) -> Curve:
    config = _read(folder / "config.json", ("graphs", "objective"))
    names, objective = list(config["graphs"]), config["objective"]
    known = _known_baselines(names[0], objective, config["graphs"][names[0]]) if len(names) == 1 else {}
    return Curve(names, objective, read_curve(folder / "metrics.jsonl"), known)


def _of_results(path: Path) -> Curve:
    found = _read(path, ("task", "counting", "curve"))
    objective = found.get("objective", f"multiplications ({found['counting']})")
    known = found.get("baselines") or _known_baselines(found["task"], objective)
    return Curve([found["task"]], objective, found["curve"], known)


def _known_baselines(name: str, objective: str, digest: str | None = None) -> dict[str, float]:
    """The costs of forward, reverse and Markowitz, if the task ships with alphagrad."""
    task = (tasks.TASKS | tasks.UNSEEN).get(name)
    graph = task.graph() if task else None
    if graph is None or digest not in (None, graph.digest):
        return {}
    return dict(zip(STYLES, baselines(graph, Objective.read(objective)), strict=True))


def _read(path: Path, keys: Sequence[str]) -> dict[str, Any]:
    wanted = "give the folder of a run, or a file that alphagrad train --results wrote"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read: {error}; {wanted}") from None
    if not isinstance(found, dict) or not set(keys) <= set(found):
        raise RunError(f"{path} does not hold {', '.join(keys)}; {wanted}")
    return found
