"""A view of a function: its graph, orders of it, and the lower bound on their cost."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from graphax import ComputationGraph, Order
from graphax.bundles import Passing
from graphax.presets import PRESETS

from ..elimination.objective import Objective
from ..errors import SearchError
from ..finders.budget import Budget, Progress
from ..finders.records import best_known
from ..finders.result import SearchResult
from ..finders.search import search
from .replay import Replay

BEST = "best"
DEFAULT_ORDERS = ("fwd", "rev", "markowitz", BEST)
# Drawings with more vertices are too dense to read, and pages too slow.
MOST_VERTICES = 2000

_NAMES = {"fwd": "forward", "rev": "reverse", "markowitz": "Markowitz"}


@dataclass(frozen=True, eq=False)
class View:
    """A graph with orders to view.

    Attributes:
        title: the display name of the function.
        counting: how multiplications are counted.
        replays: the orders.
        bound: the lower bound on multiplications.
        searched: whether a search proved the bound; if not, it comes from minimum cuts.
        proven: bounds that a search proved, also for bodies of loops.
    """

    title: str
    graph: ComputationGraph
    counting: str
    replays: tuple[Replay, ...]
    bound: int
    searched: bool
    proven: dict[ComputationGraph, float] = field(default_factory=dict)

    @cached_property
    def bodies(self) -> "dict[ComputationGraph, View]":
        """The bodies of loops that orders pass through, each with the orders of one step."""
        titles: dict[ComputationGraph, str] = {}
        replays: dict[ComputationGraph, dict[str, Replay]] = {}
        for replay in self.replays:
            for vertex, passing in replay.plan.passings:
                body, order = passing.how.graph, passing.how.order
                if len(body.vertices) <= MOST_VERTICES:
                    inside = Replay.of(replay.name, body, order, self.counting, order.finder)
                    replays.setdefault(body, {}).setdefault(replay.name, inside)
                    titles.setdefault(body, f"{self.title} › loop at {vertex}, {way_of(passing)}")
        return {body: self._inside(titles[body], body, tuple(named.values())) for body, named in replays.items()}

    def _inside(self, title: str, body: ComputationGraph, replays: tuple[Replay, ...]) -> "View":
        cut = body.lower_bound("multiplications", self.counting)
        bound = max(cut, int(self.proven.get(body, 0)))
        return View(title, body, self.counting, replays, bound, bound > cut, self.proven)


def way_of(passing: Passing) -> str:
    """The direction in which derivatives are carried through a loop, as a word."""
    return "forward" if passing.forward else "backward"


def make_view(
    title: str,
    graph: ComputationGraph,
    counting: str,
    orders: Sequence[Any],
    budget: Any,
    progress: Callable[[Progress], None] | None = None,
) -> View:
    """Find the orders and the bound of a view.

    Args:
        orders: presets, saved orders (``*.json``), anything else that `graphax.Order.of` takes, and ``"best"``: the
            result of a search that starts from the best order on record. The search may also raise the bound.
        budget: the budget of that search.
    """
    objective = Objective.of("multiplications", counting)
    check_size(graph)
    cut = graph.lower_bound("multiplications", counting)
    replays: list[Replay] = []
    proven: dict[ComputationGraph, float] = {}
    for name in orders:
        if isinstance(name, str) and name == BEST:
            result = search(graph, budget=Budget.of(budget), minimize=objective, resume=True, progress=progress)
            if result.stopped == "interrupted":
                raise KeyboardInterrupt
            replays.append(Replay.of("best known", graph, result.order, counting, result.order.finder))
            proven = _proven(result)
        else:
            replays.append(_named(name, graph, counting))
    known = None if proven or graph.has_loops else best_known(graph, objective)
    bound = max(cut, int(proven.get(graph, 0)), int(known.bound or 0) if known else 0)
    return View(title, graph, counting, tuple(replays), bound, bound > cut, proven)


def _proven(result: SearchResult) -> dict[ComputationGraph, float]:
    """The bounds of a graph and of all bodies inside of it."""
    inside = [_proven(body) for _, body in result.bodies]
    return {graph: bound for found in inside for graph, bound in found.items()} | {result.graph: result.bound}


def check_size(graph: ComputationGraph) -> None:
    if len(graph.vertices) > MOST_VERTICES:
        raise SearchError(
            f"the graph has {len(graph.vertices):,} vertices; up to {MOST_VERTICES:,} can be shown. Show a part of the "
            f"function, or its costs with alphagrad search"
        )


def _named(name: Any, graph: ComputationGraph, counting: str) -> Replay:
    if not isinstance(name, str):
        order = Order.of(name, graph)
        return Replay.of(order.finder, graph, order, counting, order.finder)
    saved = name.endswith(".json")
    if name not in PRESETS and not saved:
        raise SearchError(
            f"unknown order {name!r}; choose one of: {BEST}, {', '.join(PRESETS)}, or a saved one (*.json)"
        )
    label = _NAMES.get(name, Path(name).stem if saved else name)
    return Replay.of(label, graph, Order.of(name, graph), counting, found="saved" if saved else "preset")


def summary(view: View) -> dict[str, Any]:
    """The costs of the orders, as data."""
    return {
        "target": view.title,
        "counting": view.counting,
        "bound": view.bound,
        "orders": [{**replay.summary(), "order": list(replay.order)} for replay in view.replays],
    }
