"""Benchmark times over batches and sizes."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ..agents.run_folder import RunError
from ..bench.report import read
from .lines import colour

# The size of a panel. There is one panel per task.
WIDTH, HEIGHT, MOST_COLUMNS = 4.8, 3.6, 3


def batch_scaling(results: str | os.PathLike | dict[str, Any]) -> tuple[Figure, Any]:
    """Draw the times of a benchmark over batches, or over sizes if these differ. Returns the figure and its axes.

    Bars reach from the 2.5th to the 97.5th percentile. With several tasks, the axes are an array.

    Args:
        results: a file written by ``alphagrad bench --save``, or its content.
    """
    found = results if isinstance(results, dict) else read(Path(results))
    try:
        rows = [row for row in found["measurements"] if row["seconds"]]
    except (KeyError, TypeError):
        raise RunError("the benchmark has no measurements; give what alphagrad bench --save wrote") from None
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
        axes.errorbar(places, middle, (middle - low, high - middle), label=contender, color=colour(number), capsize=2)
    axes.set(title=name, xlabel="size, as multiple" if along == "scale" else "batch", ylabel="ms")
    axes.set(xscale="log", yscale="log")
