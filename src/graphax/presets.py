"""Preset orders that are found in milliseconds, by name."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING

from .errors import OrderError
from .prices import Prices, Tally, counted, peak, prices_of
from .refine import refined

if TYPE_CHECKING:
    from .graph import ComputationGraph

# The presets that other orders are compared with.
BASELINES = ("fwd", "rev", "markowitz")
# `auto` tries the expensive presets only on graphs with at most this many vertices...
_AUTO_LIMIT = 1500
# ...and refines only graphs with at most this many. On larger graphs it would find orders with fewer operations but
# many more products, and each product has to be traced.
_REFINED_LIMIT = 1000
# The mean fraction of operations that `auto` leaves, relative to the cheaper of reverse and forward order.
_SAVED = 0.75
# Graphs whose blocks list more positions than this get neither the expensive presets nor refinement, because products
# of long lists take time to find.
_AUTO_LISTED = 1 << 17
_QUICK = ("rev", "fwd", "preelim_rev", "markowitz")


@lru_cache(512)
def preset_vertices(name: str, graph: ComputationGraph) -> tuple[int, ...]:
    """The vertices of a graph in the order of a preset."""
    if name not in PRESETS:
        raise OrderError(f"unknown order {name!r}; presets are: {', '.join(PRESETS)}. Saved orders end in .json.")
    return tuple(PRESETS[name](graph))


def _forward(graph: ComputationGraph) -> Iterable[int]:
    """From the inputs to the outputs, as forward mode does."""
    return graph.intermediates


def _reverse(graph: ComputationGraph) -> Iterable[int]:
    """From the outputs to the inputs, as reverse mode does."""
    return reversed(graph.intermediates)


def _greedy(graph: ComputationGraph, score: Callable[[Tally, int], float], reach: int = 1) -> list[int]:
    """Repeatedly eliminate the vertex with the lowest score. Ties are broken by number.

    A score depends only on vertices within ``reach`` edges, so only neighbours at that distance are scored again.
    """
    state = Tally(prices_of(graph))
    current = {vertex: score(state, vertex) for vertex in graph.intermediates}
    queue = [(value, vertex) for vertex, value in current.items()]
    heapq.heapify(queue)
    order = []
    while queue:
        value, vertex = heapq.heappop(queue)
        if current.get(vertex) != value:
            continue
        del current[vertex]
        touched = {*state.predecessors[vertex], *state.successors[vertex]}
        state.eliminate(vertex)
        order.append(vertex)
        for _ in range(reach - 1):
            touched |= {n for v in touched for n in (*state.predecessors[v], *state.successors[v])}
        for neighbour in touched & current.keys():
            new = score(state, neighbour)
            if new != current[neighbour]:
                current[neighbour] = new
                heapq.heappush(queue, (new, neighbour))
    return order


def _markowitz(graph: ComputationGraph) -> Iterable[int]:
    """Always the vertex that takes the fewest raw multiplications now (the lowest Markowitz degree)."""
    return _greedy(graph, Tally.degree)


def _relative_markowitz(graph: ComputationGraph) -> Iterable[int]:
    """Always the lowest Markowitz degree, minus (elements of inputs before) × (elements of outputs after)."""
    before = _elements_reached(graph, graph.intermediates, graph.inputs, lambda edge: edge)
    after = _elements_reached(graph, _reverse(graph), set(graph.outputs) - {None}, lambda edge: edge[::-1])
    return _greedy(graph, lambda state, v: state.degree(v) - before[v] * after[v])


def _elements_reached(graph: ComputationGraph, along, ends, orient) -> dict[int, int]:
    """Per vertex, the number of elements of all ``ends`` on one side of it."""
    neighbours: dict[int, list[int]] = {}
    for edge in graph.edges:
        vertex, neighbour = orient(edge)
        neighbours.setdefault(vertex, []).append(neighbour)
    reached = {end: 1 << n for n, end in enumerate(ends)}
    sizes = [_elements(graph, end) for end in ends]
    for vertex in along:
        sets = 0
        for neighbour in neighbours.get(vertex, ()):
            sets |= reached.get(neighbour, 0)
        reached[vertex] = sets
    return {v: sum(size for n, size in enumerate(sizes) if reached[v] >> n & 1) for v in graph.intermediates}


def _elements(graph: ComputationGraph, vertex: int) -> int:
    size = 1
    for n in graph.vertices[vertex].shape:
        size *= n
    return size


def _lmmd(graph: ComputationGraph) -> Iterable[int]:
    """Always the lowest Markowitz degree plus the increase that the elimination causes in the degrees of neighbours."""
    size = {v: _elements(graph, v) for v in graph.vertices}

    def weight(vertices: Iterable[int]) -> int:
        return sum(size[v] for v in vertices)

    def score(state: Tally, vertex: int) -> float:
        before, after = state.predecessors[vertex], state.successors[vertex]
        increase = 0
        for p in before:
            new = weight(after - state.successors[p])
            increase += weight(state.predecessors[p]) * (new - size[vertex])
        for s in after:
            new = weight(before.keys() - state.predecessors[s].keys())
            increase += weight(state.successors[s]) * (new - size[vertex])
        return weight(before) * weight(after) + increase

    return _greedy(graph, score, reach=2)


def _min_fill(graph: ComputationGraph) -> Iterable[int]:
    """Always the vertex whose elimination adds the fewest edges, counted in elements."""
    size = {v: _elements(graph, v) for v in graph.vertices}

    def score(state: Tally, vertex: int) -> float:
        before, after = state.predecessors[vertex], state.successors[vertex]
        return sum(size[p] * size[s] for p in before for s in after if s not in state.successors[p])

    return _greedy(graph, score, reach=2)


def _single_use_first(graph: ComputationGraph, along: Sequence[int]) -> list[int]:
    """Repeatedly eliminate the vertices with one successor, then the rest, both in the order ``along``."""
    state, rest = Tally(prices_of(graph)), list(along)
    order: list[int] = []
    while True:
        before = len(order)
        for vertex in rest:
            if len(state.successors[vertex]) == 1:
                state.eliminate(vertex)
                order.append(vertex)
        rest = [v for v in rest if v in state.successors]
        if len(order) == before:
            return order + rest


def _preelim_fwd(graph: ComputationGraph) -> Iterable[int]:
    """Vertices that are used once, as long as there are any, then the rest, both forward."""
    return _single_use_first(graph, graph.intermediates)


def _preelim_rev(graph: ComputationGraph) -> Iterable[int]:
    """Vertices that are used once, as long as there are any, then the rest, both in reverse."""
    return _single_use_first(graph, graph.intermediates[::-1])


def _auto(graph: ComputationGraph) -> Iterable[int]:
    """The preset with the fewest folded operations, refined for a share of the time of the first call."""
    # Use separate prices: known prices affect the effort, which must not depend on the history of the process.
    prices = Prices(graph)
    best = cheapest_preset(graph, prices)
    return refined(graph, prices, best) if is_refined(graph, prices) else best


def is_refined(graph: ComputationGraph, prices: Prices) -> bool:
    """Whether ``"auto"`` improves the cheapest preset."""
    return len(graph.intermediates) <= _REFINED_LIMIT and not _has_long_lists(prices)


def about_operations(graph: ComputationGraph) -> float:
    """The approximate number of operations of the order that ``"auto"`` finds.

    It is estimated from the cheaper of reverse and forward order.
    """
    prices = prices_of(graph)
    reverse = counted(prices, _reverse(graph))
    return _SAVED * min(reverse, counted(prices, _forward(graph), reverse))


def cheapest_preset(graph: ComputationGraph, prices: Prices) -> tuple[int, ...]:
    """The cheapest preset by folded operations. Large graphs only consider presets that are quick to find."""
    quick = len(graph.intermediates) > _AUTO_LIMIT or _has_long_lists(prices)
    names = _QUICK if quick else [name for name in PRESETS if name != "auto"]
    orders = dict.fromkeys(preset_vertices(name, graph) for name in names)
    costs, least = dict[tuple[int, ...], float](), inf
    # Forward order comes last: where it is expensive, so is counting it.
    for vertices in reversed(orders):
        costs[vertices] = counted(prices, vertices, least)
        least = min(least, costs[vertices])
    best = [vertices for vertices in orders if costs[vertices] == least]
    return best[0] if len(best) == 1 else min(best, key=lambda vertices: peak(prices, vertices))


def _has_long_lists(prices: Prices) -> bool:
    return sum(prices.lists) > _AUTO_LISTED


PRESETS: dict[str, Callable[[ComputationGraph], Iterable[int]]] = {
    "auto": _auto,
    "fwd": _forward,
    "rev": _reverse,
    "markowitz": _markowitz,
    "relative_markowitz": _relative_markowitz,
    "lmmd": _lmmd,
    "min_fill": _min_fill,
    "preelim_fwd": _preelim_fwd,
    "preelim_rev": _preelim_rev,
}
