"""Elimination orders: objects with a fingerprint, presets that find them, and `resolve` for all ways to name one."""

import heapq
import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from operator import index
from pathlib import Path
from typing import Any

from .errors import FingerprintError, OrderError
from .graph import ComputationGraph
from .plan import Elimination, make_plan

# `auto` tries the costly presets only on graphs up to this size.
_AUTO_LIMIT = 1500


@dataclass(frozen=True)
class Order:
    """An elimination order for one graph.

    Attributes:
        vertices: the numbers of the vertices, first eliminated first.
        fingerprint: that of the graph it was made for; empty for an order of unknown origin.
        finder, seed, cost, bound: where the order comes from and what is known of it.
        simplified: True if the vertex numbers are those of the simplified graph.
    """

    vertices: tuple[int, ...]
    fingerprint: str = ""
    finder: str = ""
    seed: int | None = None
    cost: float | None = None
    bound: float | None = None
    simplified: bool = False

    def __post_init__(self):
        try:
            object.__setattr__(self, "vertices", tuple(index(vertex) for vertex in self.vertices))
        except TypeError:
            raise OrderError(
                f"an Order holds vertex numbers, such as (3, 1, 2), but was given {self.vertices!r}"
            ) from None

    def save(self, path: str | os.PathLike) -> None:
        """Write the order as JSON."""
        name = os.fspath(path)
        try:
            Path(name).write_text(json.dumps(asdict(self), default=index) + "\n")
        except OSError as error:
            raise OrderError(f"the order file {name!r} cannot be written: {error.strerror}") from None

    @staticmethod
    def load(path: str | os.PathLike) -> "Order":
        """Read an order that `save` wrote."""
        name = os.fspath(path)
        try:
            return Order(**json.loads(Path(name).read_text()))
        except FileNotFoundError:
            raise OrderError(f"there is no order file {name!r}") from None
        except OSError as error:
            raise OrderError(f"the order file {name!r} cannot be read: {error.strerror}") from None
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise OrderError(
                f"{name!r} is not a saved order ({type(error).__name__}: {error}). Orders are JSON files "
                f"written by Order.save."
            ) from None

    def __len__(self):
        return len(self.vertices)

    def __iter__(self):
        return iter(self.vertices)


def resolve(order: Any, graph: ComputationGraph) -> Order:
    """Turn whatever names an order into an `Order` that fits ``graph``.

    A preset name, a path to a saved order, an `Order`, a sequence of vertex numbers, or a finder: any function from
    a graph to one of the last two.
    """
    order = loaded(order)
    if isinstance(order, str):
        return preset(order, graph)
    if callable(order):
        order = order(graph)
    return _checked(order if isinstance(order, Order) and order.fingerprint else _explicit(order, graph), graph)


def loaded(order: Any) -> Any:
    """``order``, read from its file if it is a path."""
    is_path = isinstance(order, os.PathLike) or (isinstance(order, str) and order.endswith(".json"))
    return Order.load(order) if is_path else order


def _explicit(order: Any, graph: ComputationGraph) -> Order:
    try:
        vertices = tuple(index(vertex) for vertex in order)
    except (TypeError, ValueError):
        raise OrderError(
            f"cannot read {order!r} as an elimination order. It is one of: a preset ({', '.join(PRESETS)}), a sequence "
            f"of vertex numbers, an Order, the path of a saved one (*.json), or a function of the graph."
        ) from None
    # Vertices that do not matter to this Jacobian are legal: an order for all inputs serves fewer.
    absent = {v for v in vertices if 1 <= v <= graph.numbered and v not in graph.vertices}
    _check_repeats(vertices)
    known = order if isinstance(order, Order) else Order(vertices, finder="explicit")
    return replace(known, vertices=tuple(v for v in vertices if v not in absent))


def _checked(order: Order, graph: ComputationGraph) -> Order:
    if order.fingerprint and order.fingerprint != graph.fingerprint:
        raise FingerprintError(
            f"the order was made for the graph {order.fingerprint} ({len(order)} vertices to eliminate), but this "
            f"function has the graph {graph.fingerprint} ({len(graph.intermediates)} to eliminate). The function, the "
            f"shapes of its arguments, argnums and simplification must be those the order was found with; otherwise "
            f"find an order again."
        )
    _check_repeats(order.vertices)
    given, wanted = set(order.vertices), set(graph.intermediates)
    problems = []
    if given - wanted:
        problems.append(f"vertices that cannot be eliminated: {_listed(given - wanted, graph)}")
    if wanted - given:
        problems.append(f"missing vertices: {_listed(wanted - given, graph)}")
    if problems:
        raise OrderError(
            f"an order must name each of the {len(wanted)} intermediate vertices of the graph once, but has "
            f"{'; '.join(problems)}. graph.intermediates lists the vertices to eliminate."
        )
    return replace(order, fingerprint=graph.fingerprint, simplified=graph.simplified)


def _check_repeats(vertices: Sequence[int]) -> None:
    repeated = sorted({v for v in vertices if vertices.count(v) > 1}) if len(set(vertices)) < len(vertices) else []
    if repeated:
        raise OrderError(f"an order must name each vertex once, but repeats: {', '.join(map(str, repeated[:10]))}")


def _listed(numbers: set[int], graph: ComputationGraph) -> str:
    def described(number: int) -> str:
        vertex = graph.vertices.get(number)
        return (
            f"{number} ({vertex.kind if vertex.kind != 'intermediate' else vertex.name})"
            if vertex
            else f"{number} (unknown)"
        )

    shown = [described(number) for number in sorted(numbers)[:10]]
    return ", ".join(shown) + (f" and {len(numbers) - 10} more" if len(numbers) > 10 else "")


def preset(name: str, graph: ComputationGraph) -> Order:
    """The order that a preset finds."""
    if name not in PRESETS:
        raise OrderError(f"unknown order {name!r}; presets are: {', '.join(PRESETS)}. Saved orders end in .json.")
    return Order(_preset(name, graph), graph.fingerprint, finder=name, simplified=graph.simplified)


@lru_cache(512)
def _preset(name: str, graph: ComputationGraph) -> tuple[int, ...]:
    return tuple(PRESETS[name](graph))


def _forward(graph: ComputationGraph) -> Iterable[int]:
    """From the inputs to the outputs, as forward mode does."""
    return graph.intermediates


def _reverse(graph: ComputationGraph) -> Iterable[int]:
    """From the outputs to the inputs, as reverse mode does."""
    return reversed(graph.intermediates)


def _greedy(graph: ComputationGraph, score: Callable[[Elimination, int], float], reach: int = 1) -> list[int]:
    """Eliminate the vertex with the lowest score, ties by number, again and again.

    A score depends on what lies within ``reach`` edges of a vertex, so only neighbours that near are scored again.
    """
    state = Elimination(graph)
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
    """The vertex that takes the fewest raw multiplications now: the least Markowitz degree."""
    return _greedy(graph, Elimination.degree)


def _relative_markowitz(graph: ComputationGraph) -> Iterable[int]:
    """Markowitz degree less what any order must spend: elements of the inputs before times of the outputs after."""
    before = _elements_reached(graph, graph.intermediates, graph.inputs, lambda edge: edge)
    after = _elements_reached(graph, _reverse(graph), set(graph.outputs) - {None}, lambda edge: edge[::-1])
    return _greedy(graph, lambda state, v: state.degree(v) - before[v] * after[v])


def _elements_reached(graph: ComputationGraph, along, ends, orient) -> dict[int, int]:
    """For each vertex, the elements of all ``ends`` on one side of it."""
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
    """Markowitz degree plus the increase that eliminating a vertex causes in the degrees of its neighbours."""
    size = {v: _elements(graph, v) for v in graph.vertices}

    def weight(vertices: Iterable[int]) -> int:
        return sum(size[v] for v in vertices)

    def score(state: Elimination, vertex: int) -> float:
        before, after = state.predecessors[vertex], state.successors[vertex]
        increase = 0
        for p in before:
            new = weight(after.keys() - state.successors[p].keys())
            increase += weight(state.predecessors[p]) * (new - size[vertex])
        for s in after:
            new = weight(before.keys() - state.predecessors[s].keys())
            increase += weight(state.successors[s]) * (new - size[vertex])
        return weight(before) * weight(after) + increase

    return _greedy(graph, score, reach=2)


def _min_fill(graph: ComputationGraph) -> Iterable[int]:
    """The vertex whose elimination adds the fewest edges, by elements."""
    size = {v: _elements(graph, v) for v in graph.vertices}

    def score(state: Elimination, vertex: int) -> float:
        before, after = state.predecessors[vertex], state.successors[vertex]
        return sum(size[p] * size[s] for p in before for s in after if s not in state.successors[p])

    return _greedy(graph, score, reach=2)


def _single_use_first(graph: ComputationGraph, along: Sequence[int]) -> list[int]:
    """Repeatedly eliminate the vertices with one successor, then the rest; both in the order ``along``."""
    state, rest = Elimination(graph), list(along)
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
    """Vertices that are used once first, as long as there are any, then the rest; both forward."""
    return _single_use_first(graph, graph.intermediates)


def _preelim_rev(graph: ComputationGraph) -> Iterable[int]:
    """Vertices that are used once first, as long as there are any, then the rest; both in reverse."""
    return _single_use_first(graph, graph.intermediates[::-1])


def _auto(graph: ComputationGraph) -> Iterable[int]:
    """The cheapest of the presets by folded operations; on large graphs of those that cost little to find."""
    quick = len(graph.intermediates) > _AUTO_LIMIT
    names = ("rev", "fwd", "preelim_rev", "markowitz") if quick else [name for name in PRESETS if name != "auto"]
    orders = [preset(name, graph) for name in names]

    def cost(order: Order) -> tuple[int, int]:
        found = make_plan(graph, order).cost()
        return found.operations, found.peak

    return min(orders, key=cost).vertices


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
