"""Searches: the best cost found over time."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from ..errors import SearchError
from ..finders.portfolio import FINDERS
from ..finders.result import SearchResult
from ..finders.search import search
from .lines import STYLES, colour, draw_baselines, draw_bound

# The first second of a time axis; results known from the start are drawn there.
EARLIEST = 1e-3


def search_history(*results: SearchResult, labels: Sequence[str] | None = None) -> tuple[Figure, Any]:
    """Draw the best cost over time of searches, and the lower bound. Returns the figure and its axes.

    Args:
        results: results of `alphagrad.search`. If several searched the same graph, the highest bound is drawn.
        labels: a name for each result; by default the name of its finder.
    """
    if not results:
        raise SearchError("there is no search to draw; give what alphagrad.search returned")
    names = [_finder(result) for result in results] if labels is None else labels
    if isinstance(names, str) or not isinstance(names, Sequence) or len(names) != len(results):
        raise SearchError(f"labels must have a name for each of the {len(results)} results, but is {labels!r}")
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    _draw(axes, list(zip(names, results, strict=True)))
    axes.legend()
    return figure, axes


def cost_over_time(
    target: Any, *args: Any, finders: Iterable[str] | None = None, budget: Any = 2, **options: Any
) -> tuple[Figure, Any]:
    """Draw the best cost over time of several finders on one function, with forward, reverse and Markowitz as lines.

    Args:
        target, args: as in `alphagrad.search`; or a dictionary of search results by display name.
        finders: methods of `alphagrad.search`; by default all finders.
        budget: the budget of each finder.
        options: further arguments of `alphagrad.search`.
    """
    if isinstance(target, Mapping):
        if args or options or finders is not None:
            raise SearchError("results are drawn as they are; give a function or a graph for finders to run on")
        results = dict(target)
    else:
        results = _searched(target, args, finders, {"budget": budget, **options})
    if not results:
        raise SearchError(f"there is no finder to draw; choose among: {', '.join(FINDERS)}")
    figure = Figure(figsize=(8, 4.8), layout="constrained")
    axes = figure.subplots()
    _draw(axes, list(results.items()))
    first = next(iter(results.values()))
    costs = [first.objective.value(cost) for _, cost in first.compared()[:-1]]
    draw_baselines(axes, dict(zip(STYLES, costs, strict=False)))
    figure.legend(loc="outside right upper", fontsize="small")
    return figure, axes


def _searched(target: Any, args: Sequence[Any], finders: Any, options: dict[str, Any]) -> dict[str, SearchResult]:
    if "method" in options:
        raise SearchError("name the methods to compare with finders=..., not with method=...")
    several = isinstance(finders, Iterable) and not isinstance(finders, str)
    names = list(FINDERS if finders is None else finders if several else [finders])
    unknown = [name for name in names if name not in tuple(FINDERS)]
    if unknown:
        raise SearchError(f"unknown finder {unknown[0]!r}; choose one of: {', '.join(FINDERS)}")
    return {name: search(target, *args, method=name, **options) for name in names}


def _draw(axes: Any, results: Sequence[tuple[str, SearchResult]]) -> None:
    for name, result in results:
        _check_history(name, result)
    objectives = {str(result.objective) for _, result in results}
    bounds: dict[Any, float] = {}
    for number, (name, result) in enumerate(results):
        seconds = [max(after, EARLIEST) for after, _, _ in result.history]
        values = [value for _, _, value in result.history]
        end = max(result.seconds, seconds[-1])
        axes.plot(
            [*seconds, end], [*values, result.value], drawstyle="steps-post", color=colour(number),
            label=f"{name}, {result.value:,g}{', optimal' if result.optimal else ''}",
        )  # fmt: skip
        axes.plot(end, result.value, marker="o", markersize=3, color=colour(number))
        graph = result.graph.digest, result.objective
        bounds[graph] = max(bounds.get(graph, 0), result.bound)
    for bound in dict.fromkeys(bounds.values()):
        draw_bound(axes, bound)
    axes.set(xlabel="seconds", xscale="log", ylabel=objectives.pop() if len(objectives) == 1 else "cost")


def _check_history(name: str, result: Any) -> None:
    if not isinstance(result, SearchResult):
        raise SearchError(f"{name!r} is {type(result).__name__}; give what alphagrad.search returned")
    if not result.history:
        raise SearchError(
            f"the search {name!r} has no history to draw: minimize='runtime' compares run times, not costs; draw "
            f"a search for multiplications"
        )


def _finder(result: Any) -> str:
    return result.order.finder if isinstance(result, SearchResult) else type(result).__name__
