"""Shared parts of charts: colours, and the lines of baseline costs."""

from collections.abc import Mapping
from typing import Any

from matplotlib import color_sequences

_PAIRS = color_sequences["tab20"]
# Strong colours first, then their pale counterparts; grey is reserved for baselines.
_COLOURS = [colour for colour in (*_PAIRS[::2], *_PAIRS[1::2]) if len(set(colour)) > 1]
# The line styles of the baseline costs.
STYLES = {"forward": ":", "reverse": "--", "markowitz": "-."}


def colour(number: int) -> Any:
    return _COLOURS[number % len(_COLOURS)]


def draw_baselines(axes: Any, costs: Mapping[str, float]) -> None:
    for name, cost in costs.items():
        axes.axhline(cost, label=f"{name}, {cost:,g}", linestyle=STYLES[name], color="grey", linewidth=1)


def draw_bound(axes: Any, bound: float) -> None:
    axes.axhline(bound, label=f"lower bound {bound:,g}", color="black", linewidth=1)
