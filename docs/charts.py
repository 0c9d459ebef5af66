"""Draws those figures of the documentation that no page draws.

    python docs/charts.py

graphax counts the costs in the figure of the README. The charts show rows under benchmarks/measured.
"""

import json
import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import matplotlib
import matplotlib.pyplot as plt

import graphax as gx

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
MEASURED = ROOT / "benchmarks" / "measured"

INK, PALE, ACCENT, SECOND, THIRD = "#1f2937", "#9ca3af", "#0f766e", "#b45309", "#4338ca"
# The same file for the same data: no date, and identifiers that do not change.
STYLE: Any = {
    "svg.hashsalt": "graphax",
    "font.size": 10,
    "font.family": "DejaVu Sans",
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": PALE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
}


def example(x: Any, y: Any) -> Any:
    """Two inputs, a chain of five values, four outputs."""
    v = jnp.sqrt(jnp.tanh(jnp.exp(jnp.sin(x * y))))
    return jnp.cos(v), jnp.log(v), v + 1, v * v


def elimination_costs(order: Sequence[int]) -> list[int]:
    """The multiplications of each elimination of the example, in order."""
    graph = gx.build_graph(example, 1.0, 2.0, argnums=(0, 1))
    return [sum(step.multiplications("raw") for step in steps) for _, steps in graph.plan(order).by_vertex()]


def why_order_matters() -> Any:
    """Draw the graph of the example for three orders, with the cost of each vertex."""
    orders = {"Forward": [1, 2, 3, 4, 5], "Reverse": [5, 4, 3, 2, 1], "Middle first": [2, 3, 4, 1, 5]}
    figure, rows = plt.subplots(3, 1, figsize=(7.6, 6.0))
    names = ("x · y", "sin", "exp", "tanh", "√")
    chain = [(2.0 + 1.6 * k, 0.0) for k in range(5)]
    inputs = {"x": (0.3, 0.5), "y": (0.3, -0.5)}
    outputs = {"cos": (10.2, 0.9), "log": (10.2, 0.3), "+ 1": (10.2, -0.3), "v²": (10.2, -0.9)}
    for axes, (title, order) in zip(rows, orders.items(), strict=True):
        costs = dict(zip(order, elimination_costs(order), strict=True))
        best = title == "Middle first"
        for start in inputs.values():
            _arrow(axes, start, chain[0])
        for start, end in pairwise(chain):
            _arrow(axes, start, end)
        for end in outputs.values():
            _arrow(axes, chain[-1], end)
        for name, at in (*inputs.items(), *outputs.items()):
            _node(axes, at, name, "white", INK)
        for vertex, (name, at) in enumerate(zip(names, chain, strict=True), start=1):
            _node(axes, at, name, ACCENT if best else "#475569", "white")
            turn = order.index(vertex) + 1
            axes.annotate(f"step {turn}", at, (0, 19), textcoords="offset points", ha="center", fontsize=8, color=PALE)
            axes.annotate(f"{costs[vertex]}", at, (0, -27), textcoords="offset points", ha="center", fontsize=11)
        total = sum(costs.values())
        axes.set_title(
            f"{title}: {' + '.join(str(costs[v]) for v in order)} = {total} multiplications",
            loc="left",
            fontsize=11,
            color=ACCENT if best else INK,
            fontweight="bold" if best else "normal",
        )
        axes.set(xlim=(-0.2, 10.8), ylim=(-1.25, 1.25))
        axes.axis("off")
    figure.tight_layout(h_pad=1.2)
    return figure


def _arrow(axes: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    style = {"arrowstyle": "-|>", "color": PALE, "shrinkA": 14, "shrinkB": 14, "lw": 1.2}
    axes.annotate("", end, start, arrowprops=style)


def _node(axes: Any, at: tuple[float, float], name: str, face: str, ink: str) -> None:
    axes.text(
        *at,
        name,
        ha="center",
        va="center",
        fontsize=9,
        color=ink,
        bbox={"boxstyle": "round,pad=0.35", "facecolor": face, "edgecolor": PALE if face == "white" else face},
    )


def speed_cpu() -> Any:
    """Draw how many times as fast as JAX `jacve` is on the CPU, for 1, 64 and 4,096 points."""
    rows = json.loads((MEASURED / "middle-cpu.json").read_text(encoding="utf-8"))["rows"]
    ratios = {(row["function"], row["batch"]): row["ratio"] for row in rows}
    last = {name: max(batch for each, batch in ratios if each == name) for name, _ in ratios}
    names = sorted(last, key=lambda name: ratios[name, last[name]])
    figure, axes = plt.subplots(figsize=(7.6, 4.8))
    for batch, colour, marker in ((1, PALE, "o"), (64, SECOND, "s"), (4096, ACCENT, "D")):
        seen = [(ratios[name, batch], place) for place, name in enumerate(names) if (name, batch) in ratios]
        label = "1 point" if batch == 1 else f"{batch:,} points"
        across, up = zip(*seen, strict=True)
        axes.scatter(across, up, color=colour, marker=marker, s=38, label=label, zorder=3)
    _ratio_axis(axes, "times as fast as the better of jax.jacfwd and jax.jacrev", 0.8, 1000)
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.hlines(range(len(names)), 0.8, 1000, color="#e5e7eb", lw=0.8, zorder=0)
    axes.legend(loc="lower right", frameon=True, fontsize=9)
    axes.set_title("Jacobians of functions of middle size, two CPU cores, float32", loc="left", fontsize=11)
    figure.tight_layout()
    return figure


def speed_h200() -> Any:
    """Draw times on a GPU, in units of the time to move operands and results once."""
    rows = json.loads((MEASURED / "h200.json").read_text(encoding="utf-8"))["rows"]
    rows = sorted(rows, key=lambda row: row["auto"] / row["once"], reverse=True)
    figure, axes = plt.subplots(figsize=(7.6, 5.0))
    ways: tuple[tuple[str, str, str, Callable[[Any], float]], ...] = (
        ("better of JAX's modes", SECOND, "s", lambda row: min(row["jacfwd"], row["jacrev"])),
        ("elimination through XLA", THIRD, "o", lambda row: row["xla"]),
        ("elimination as a kernel", ACCENT, "D", lambda row: row["auto"]),
    )
    for label, colour, marker, time in ways:
        times = [time(row) / row["once"] for row in rows]
        axes.scatter(times, range(len(rows)), color=colour, marker=marker, s=38, label=label, zorder=3)
    most = max(row["xla"] / row["once"] for row in rows)
    _ratio_axis(axes, "time, in units of moving operands and results once", 0.8, 10 ** math.ceil(math.log10(most)))
    axes.set_yticks(range(len(rows)), [row["name"] for row in rows], fontsize=9)
    axes.hlines(range(len(rows)), 0.8, 10 ** math.ceil(math.log10(most)), color="#e5e7eb", lw=0.8, zorder=0)
    axes.legend(loc="upper right", frameon=True, fontsize=9)
    axes.set_title("Jacobians on one H200, float32; further left is faster", loc="left", fontsize=11)
    figure.tight_layout()
    return figure


def speed_cutest() -> Any:
    """Draw ratios to JAX over the number of entries, for every case of CUTEst."""
    lines = (MEASURED / "cutest.jsonl").read_text(encoding="utf-8").splitlines()
    cases = {case["case"]: case for case in map(json.loads, lines) if case.get("ratio") and case.get("entries")}
    figure, axes = plt.subplots(figsize=(7.6, 3.8))
    for kind, colour in (("Hessian", SECOND), ("Jacobian", ACCENT)):
        shown = [case for name, case in cases.items() if name.endswith(kind)]
        axes.scatter(
            [case["entries"] for case in shown],
            [case["ratio"] for case in shown],
            s=12,
            alpha=0.6,
            color=colour,
            label=f"{kind}s",
            rasterized=True,
        )
    axes.set(xscale="log", yscale="log", xlabel="entries of the dense derivative", ylabel="times as fast as JAX")
    axes.axhline(1, color=INK, lw=1)
    axes.yaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    axes.legend(loc="upper left", fontsize=9)
    axes.set_title("CUTEst problems, one point each, float64", loc="left", fontsize=11)
    figure.tight_layout()
    return figure


def _ratio_axis(axes: Any, label: str, least: float, most: float) -> None:
    axes.set(xscale="log", xlim=(least, most), xlabel=label)
    axes.axvline(1, color=INK, lw=1)
    axes.xaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))


CHARTS: dict[str, Callable[[], Any]] = {
    "why-order-matters.svg": why_order_matters,
    "speed-cpu.svg": speed_cpu,
    "speed-h200.svg": speed_h200,
    "speed-cutest.svg": speed_cutest,
}


def draw(folder: Path) -> list[Path]:
    """Draw all figures into a folder."""
    paths = []
    with matplotlib.rc_context(STYLE):
        for name, chart in CHARTS.items():
            figure = chart()
            figure.savefig(folder / name, metadata={"Date": None}, dpi=110)
            plt.close(figure)
            paths.append(folder / name)
    return paths


if __name__ == "__main__":
    matplotlib.use("Agg")
    draw(IMAGES)
