"""Learning curves of training runs and times of benchmarks, drawn with matplotlib.

from alphagrad.plot import batch_scaling, learning_curve

fig, ax = learning_curve("runs/alphazero-RoeFlux_1d-0")
fig, ax = batch_scaling("bench.json")
fig.savefig("curve.svg")
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import tasks
from .bench.report import read as read_benchmark
from .finders.objective import Objective
from .run_folder import RunError
from .training_report import baselines, read_curve

try:
    from matplotlib import colormaps
    from matplotlib.figure import Figure
except ModuleNotFoundError as missing:
    message = "alphagrad.plot needs matplotlib: pip install 'graphax-alphagrad[plot]'"
    raise ImportError(message, name="matplotlib") from missing

COLOURS = colormaps["tab20"]
# Of a panel, of which there is one for each task of a benchmark.
WIDTH, HEIGHT, MOST_COLUMNS = 4.8, 3.6, 3
STYLES = {"forward": ":", "reverse": "--", "markowitz": "-."}


@dataclass(frozen=True)
class Curve:
    """What is drawn: the metrics of each iteration, and what other orders of the task cost, where that is known."""

    names: list[str]
    objective: str
    lines: list[dict[str, Any]]
    baselines: dict[str, float]


def learning_curve(run: str | os.PathLike) -> tuple[Figure, Any]:
    """Draw the best cost and the mean of each iteration over the games played; the figure and its axes.

    With a single task, forward, reverse and Markowitz are horizontal lines. The folder of a run does not say what they
    cost for functions that do not come with alphagrad; files of results do.

    Args:
        run: the folder of a training run, or a file that ``alphagrad train --results`` wrote.
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
    for name, cost in curve.baselines.items():
        axes.axhline(cost, label=f"{name}, {cost:,g}", linestyle=STYLES[name], color="grey", linewidth=1)
    axes.set(xlabel="games", ylabel=curve.objective)
    axes.legend()
    return figure, axes


def batch_scaling(results: str | os.PathLike | dict[str, Any]) -> tuple[Figure, Any]:
    """Draw the times of a benchmark over batches, or over sizes where these differ; the figure and its axes.

    Bars reach from the 2.5 to the 97.5 percentile. The axes of several tasks are an array.

    Args:
        results: a file that ``alphagrad bench --save`` wrote, or what it holds.
    """
    found = results if isinstance(results, dict) else read_benchmark(Path(results))
    rows = [row for row in found["measurements"] if row["seconds"]]
    if not rows:
        raise RunError("the benchmark has no times to draw")
    names = list(dict.fromkeys(row["task"] for row in rows))
    contenders = list(dict.fromkeys(row["contender"] for row in rows))
    columns = min(len(names), MOST_COLUMNS)
    lines = -(-len(names) // columns)
    figure = Figure(figsize=(WIDTH * columns, HEIGHT * lines), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False)
    for panel, name in zip(panels.flat, names, strict=False):
        _draw_times(panel, name, [row for row in rows if row["task"] == name], contenders)
    for panel in panels.flat[len(names) :]:
        panel.set_axis_off()
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", fontsize="small")
    return figure, panels[0, 0] if len(names) == 1 else panels


def _draw_times(axes: Any, name: str, rows: list[dict[str, Any]], contenders: list[str]) -> None:
    along = "scale" if len({row["scale"] for row in rows}) > 1 else "batch"
    for number, contender in enumerate(contenders):
        own = sorted((row for row in rows if row["contender"] == contender), key=lambda row: row[along])
        low, middle, high = (np.array([1e3 * row["seconds"][key] for row in own]) for key in ("low", "median", "high"))
        places = [row[along] for row in own]
        axes.errorbar(
            places, middle, (middle - low, high - middle), label=contender, color=COLOURS(number % COLOURS.N), capsize=2
        )
    axes.set(title=name, xlabel="size, as multiple" if along == "scale" else "batch", ylabel="ms")
    axes.set(xscale="log", yscale="log")


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
    """What forward, reverse and Markowitz cost, if the task is one of ours."""
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
