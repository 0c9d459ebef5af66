"""Lower bounds on the cost of any elimination order.

When a vertex v is eliminated, its predecessors P at that moment separate the inputs from v, and its successors Q
separate v from the outputs. The elimination costs the sum over P x Q of composing two edges. An edge at that moment is
a sum of products along paths. A sum costs at least as much as its cheapest summand, since it only carries more. So with
``cost[t, s]``, the cheapest composition of a path v -> t with a path s -> v, the bound for v is the least sum of
``cost`` over a pair of separators. Weighted minimum cuts bound this sum from below: if ``cost[t, s] >= b[t] * a[s]``,
it is at least the cut between v and the outputs under b times the cut between the inputs and v under a.

Uncertain costs count as zero. A path need not leave an edge if its product may vanish (windows that miss each other) or
if its structure depends on how it is bracketed; such paths are left out of the cuts. Folded counting charges nothing
for a factor of plus or minus one, which a sum of known numbers may become. So in folded counting, a known number costs
something only if it is certain: if a single path of known numbers connects its two vertices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from heapq import heappop, heappush
from math import prod
from typing import TYPE_CHECKING

from . import bundles
from .bundles import Bundle, Passage
from .certainty import known_paths, least_multiplications, uncertain
from .cut import minimum_cut
from .errors import GraphaxError
from .plan import Elimination, check_counting
from .products import Product
from .rank_bound import RankBounds
from .structure import Structure
from .subgraph_bound import subgraph_bound
from .terms import AnyStructure, Recipe, compose, priced_kind, terms_of

if TYPE_CHECKING:
    from .graph import ComputationGraph

OBJECTIVES = ("multiplications", "operations", "peak")

Paths = frozenset[AnyStructure]

# The work that limits how many vertices are visited on each side of a vertex: all of them in graphs of hundreds of
# vertices, a few in graphs of thousands.
_WORK = 300_000
_NEAREST = 3
# In larger graphs, all known numbers are uncertain, because there are too many pairs of vertices.
_MOST_CERTAIN = 4_096
# The largest number of different path structures kept between two vertices.
_MOST_STRUCTURES = 12
# The number of products tried as minorants of a table of costs.
_MINORANTS = 6
# Weights are fractions; rounded down to multiples of 1 / _UNIT they stay exact and stay bounds.
_UNIT = 1 << 40


def lower_bound(
    graph: ComputationGraph, minimize: str = "multiplications", counting: str = "folded", quick: bool = False
) -> int:
    """A cost that no elimination order of ``graph`` can go below; see `ComputationGraph.lower_bound`.

    ``quick`` leaves out bounds on several vertices together, which may take a few seconds.
    """
    if minimize not in OBJECTIVES:
        raise GraphaxError(f"unknown objective {minimize!r}; choose one of: {', '.join(OBJECTIVES)}")
    check_counting(counting)
    if minimize == "peak":
        return 0 if graph.has_loops else _peak_bound(graph)
    multiplications = sum(vertex_bounds(graph, counting).values())
    if not quick:
        multiplications = max(multiplications, _joint_bound(graph, counting))
    return multiplications + (_additions_bound(graph) if minimize == "operations" else 0)


@lru_cache(256)
def _joint_bound(graph: ComputationGraph, counting: str) -> int:
    """The bound by vertices that are bounded together: by ranks, and by searches of subgraphs."""
    cuts = vertex_bounds(graph, counting)
    # Raw counting counts every product of values that folded counting does, so bounds on those alone hold as well.
    bounds = [RankBounds(graph, cuts, raw=counting == "raw"), RankBounds(graph, cuts, by_ranks=True)]

    def others(chosen: frozenset[int]) -> int:
        return max(bound.total(chosen) for bound in bounds)

    bound = others(frozenset())
    # For graphs of single numbers, searches do not go beyond cuts and ranks in the same time.
    return bound if single_elements(graph) else max(bound, subgraph_bound(graph, counting, cuts, others))


def vertex_bounds(graph: ComputationGraph, counting: str = "folded", known_is_free: bool = False) -> dict[int, int]:
    """Per intermediate vertex, the multiplications that its elimination takes in every order.

    ``known_is_free`` leaves out products with known numbers in folded counting, also where they are certain.
    """
    check_counting(counting)
    if graph.has_loops:
        # The cost of a loop depends on the edges pushed or pulled through it, which are not known in advance.
        return dict.fromkeys(graph.intermediates, 0)
    return dict(_vertex_bounds(graph, counting, known_is_free))


@lru_cache(256)
def _vertex_bounds(graph: ComputationGraph, counting: str, known_is_free: bool) -> tuple[tuple[int, int], ...]:
    every, widest = (_Reach(graph, counting, widest, known_is_free) for widest in (False, True))
    bounds = []
    for vertex in graph.intermediates:
        before, after = every.before(vertex), every.after(vertex)
        bound = _vertex_bound(before, after, counting == "folded")
        if before.is_partial or after.is_partial:
            bound = max(bound, _vertex_bound(widest.before(vertex), widest.after(vertex), counting == "folded"))
        bounds.append((vertex, bound))
    return tuple(bounds)


@dataclass(frozen=True, eq=False)
class _Cone:
    """The vertices on one side of a vertex, and the paths to them.

    Attributes:
        start: the vertex.
        paths: per other vertex, the structures of the products along paths between the two.
        neighbours: per vertex, the vertices that it leads to. Every path within the cone has a product that cannot
            vanish.
        ends: the inputs or outputs in the cone.
        beyond: an end that stands for all vertices that were not visited, if their effect is certain.
        is_partial: whether some edges were left out.
    """

    start: int
    paths: dict[int, Paths]
    neighbours: dict[int, list[int]]
    ends: frozenset[int]
    beyond: frozenset[int] = frozenset()
    is_partial: bool = False

    def cut(self, weights: Mapping[Paths, int]) -> int:
        """The minimum cut between the start and the ends, where each vertex has the weight of its paths."""
        return self._cut({vertex: weights[paths] for vertex, paths in self.paths.items()})

    def size(self) -> int:
        """The minimum cut by number of vertices."""
        return self._cut(dict.fromkeys(self.paths, 1))

    def _cut(self, weights: dict[int, int]) -> int:
        return minimum_cut(self.start, self.neighbours, self.ends | self.beyond, weights)


class _Reach:
    """Finds the cones of vertices. Cones number vertices from 0, in the order of the graph.

    ``widest`` leaves out paths that reach a vertex through narrower windows than others do. Narrow windows miss later
    ones, and then nothing beyond them would count.
    """

    def __init__(self, graph: ComputationGraph, counting: str, widest: bool = False, known_is_free: bool = False):
        self._position = {vertex: n for n, vertex in enumerate(sorted(graph.vertices))}
        count = len(self._position)
        self._widest, self._known_is_free = widest, known_is_free or count > _MOST_CERTAIN
        self._sources: list[list[tuple[int, AnyStructure]]] = [[] for _ in range(count)]
        self._targets: list[list[tuple[int, AnyStructure]]] = [[] for _ in range(count)]
        for (target, source), structure in graph.edges.items():
            assert not isinstance(structure, (Bundle, Passage))
            t, s = self._position[target], self._position[source]
            kind = priced_kind(structure, counting == "folded")
            self._sources[t].append((s, kind))
            self._targets[s].append((t, kind))
        self._inputs = frozenset(self._position[v] for v in graph.inputs)
        self._outputs = frozenset(self._position[v] for v in graph.outputs if v is not None)
        self._folded = counting == "folded"
        if self._folded and not self._known_is_free:
            edges = ((t, s, kind) for t, sources in enumerate(self._sources) for s, kind in sources)
            self._known_paths = known_paths(edges, count)
        self._single = single_elements(graph)
        self._limit = max(_NEAREST, _WORK // max(1, count))

    def before(self, vertex: int) -> _Cone:
        return self._cone(self._position[vertex], self._sources, self._inputs, inward=True)

    def after(self, vertex: int) -> _Cone:
        return self._cone(self._position[vertex], self._targets, self._outputs, inward=False)

    def _cone(
        self, start: int, edges: list[list[tuple[int, AnyStructure]]], ends: frozenset[int], inward: bool
    ) -> _Cone:
        """Walk away from ``start`` in the order of the graph.

        So all paths to a vertex are known when it is visited.
        """
        sign = -1 if inward else 1
        paths: dict[int, Paths] = {}
        neighbours: dict[int, list[int]] = {}
        queue, is_partial = [sign * start], False
        while queue and len(neighbours) < self._limit:
            here = sign * heappop(queue)
            neighbours[here] = []
            for there, edge in edges[here]:
                is_new = there not in paths
                new = _extended(paths.get(here), edge, inward, self._folded)
                if new is not None and self._is_uncertain(start, there, inward):
                    new = frozenset(map(uncertain, new))
                is_partial |= new is None or not self._leads(here, there, new, paths, neighbours)
                if is_new and there in paths:
                    heappush(queue, sign * there)
        cone = self._closed(start, paths, neighbours, ends, {sign * place for place in queue})
        return replace(cone, is_partial=is_partial)

    def _is_uncertain(self, start: int, there: int, inward: bool) -> bool:
        """Whether several paths of known numbers connect two vertices, in folded counting."""
        if not self._folded or self._known_is_free:
            return self._folded
        return bool(self._known_paths[(start, there) if inward else (there, start)] > 1)

    def _leads(
        self, here: int, there: int, new: Paths, paths: dict[int, Paths], neighbours: dict[int, list[int]]
    ) -> bool:
        """Record new paths from ``here`` to ``there``. Returns whether all paths to ``there`` could be kept."""
        known = paths.get(there, new)
        if self._widest and _width(new) > _width(known):
            for leads in neighbours.values():
                leads[:] = [vertex for vertex in leads if vertex != there]
            known, all_kept = new, False
        elif (self._widest and _width(new) < _width(known)) or len(known | new) > _MOST_STRUCTURES:
            return False
        else:
            all_kept = True
        paths[there] = known | new
        neighbours[here].append(there)
        return all_kept

    def _closed(
        self,
        start: int,
        paths: dict[int, Paths],
        neighbours: dict[int, list[int]],
        ends: frozenset[int],
        unvisited: set[int],
    ) -> _Cone:
        """The cone of the visited vertices."""
        if not unvisited or not self._single:
            neighbours.update((vertex, []) for vertex in unvisited)
            return _Cone(start, paths, neighbours, ends & paths.keys())
        # Products of single elements never vanish, and they never get cheaper with further edges, except that a known
        # number may become plus or minus one. So all unvisited vertices act like one vertex with the paths of those
        # where the visit ended.
        beyond = len(self._position)
        found = frozenset[AnyStructure]().union(*(paths.pop(vertex) for vertex in unvisited))
        paths[beyond] = frozenset(map(uncertain, found)) if self._folded else found
        for here, leads in neighbours.items():
            neighbours[here] = [beyond if there in unvisited else there for there in leads]
        return _Cone(start, paths, {**neighbours, beyond: []}, ends & paths.keys(), frozenset((beyond,)))


def single_elements(graph: ComputationGraph) -> bool:
    """Whether every value of the graph is a single number, and hence every edge as well."""
    return not graph.has_loops and all(prod(vertex.shape) == 1 for vertex in graph.vertices.values())


@lru_cache(1 << 14)
def _width(paths: Paths) -> int:
    """The smallest number of entries of any of the paths."""
    return min(sum(prod(term.sizes) for term in terms_of(path)) for path in paths)


@lru_cache(1 << 16)
def _extended(paths: Paths | None, edge: AnyStructure, inward: bool, folded: bool) -> Paths | None:
    """The structures of ``paths`` followed by one more edge; None if one is uncertain or may vanish."""
    if paths is None:
        return frozenset((edge,))
    products = [compose(path, edge) if inward else compose(edge, path) for path in paths]
    if not all(_is_certain(product) for product in products):
        return None
    return frozenset(priced_kind(product.structure, folded) for product in products if product)


def _is_certain(product: Product | Recipe | None) -> bool:
    """Whether every way of bracketing the path gives the same structure."""
    if isinstance(product, Recipe):
        return not any(isinstance(step.operation, Product) and step.operation.free for step in product.code)
    return product is not None and not product.free


@lru_cache(1 << 16)
def _cheapest(outer: Paths, inner: Paths, folded: bool) -> int:
    """The fewest multiplications needed to compose a sum of ``outer`` with a sum of ``inner``."""
    return min(_multiplications(left, right, folded) for left in outer for right in inner)


def _multiplications(left: AnyStructure, right: AnyStructure, folded: bool) -> int:
    product = compose(left, right)
    if product is None or not _is_certain(product):
        return 0
    if not folded:
        return product.raw_multiplications
    if isinstance(left, Structure) and isinstance(right, Structure):
        assert isinstance(product, Product)
        return least_multiplications(product, left, right)
    return sum(_multiplications(one, other, folded) for one in terms_of(left) for other in terms_of(right))


def _vertex_bound(before: _Cone, after: _Cone, folded: bool) -> int:
    inner, outer = list(dict.fromkeys(before.paths.values())), list(dict.fromkeys(after.paths.values()))
    cost = {(t, s): _cheapest(t, s, folded) for t in outer for s in inner}
    best = 0
    for b, a in _minorants(cost, outer, inner):
        scaled = after.cut(b) * before.cut(a)
        best = max(best, -(-scaled // _UNIT))
    return best


def _minorants(
    cost: dict[tuple[Paths, Paths], int], outer: list[Paths], inner: list[Paths]
) -> Iterator[tuple[dict[Paths, int], dict[Paths, int]]]:
    """Yield weights b, a with ``b[t] * a[s] <= cost[t, s] * _UNIT``.

    One factor is a row or column of the table, or the minimum over all of them; the other is the largest that still
    fits. The first elements of ``outer`` and ``inner`` are nearest to the vertex.
    """
    columns = [{t: min(cost[t, s] for s in inner) for t in outer}, *({t: cost[t, s] for t in outer} for s in inner)]
    rows = [{s: min(cost[t, s] for t in outer) for s in inner}, *({s: cost[t, s] for s in inner} for t in outer)]
    pairs = [
        (b, {s: min(_UNIT * cost[t, s] // b[t] for t in outer if b[t]) for s in inner}) for b in _distinct(columns)
    ]
    pairs += [({t: min(_UNIT * cost[t, s] // a[s] for s in inner if a[s]) for t in outer}, a) for a in _distinct(rows)]
    seen = set()
    for b, a in pairs:
        products = tuple(b[t] * a[s] for t, s in cost)
        if products not in seen:
            seen.add(products)
            yield b, a


def _distinct(weights: list[dict[Paths, int]]) -> list[dict[Paths, int]]:
    """The first few weights that differ from each other and are not all zero."""
    found: list[dict[Paths, int]] = []
    for one in weights:
        if any(one.values()) and one not in found:
            found.append(one)
        if len(found) == _MINORANTS // 2:
            break
    return found


def _additions_bound(graph: ComputationGraph) -> int:
    """Additions that every order takes, for graphs of single elements; 0 for other graphs.

    Eliminating v replaces |P| + |Q| edges by |P| |Q| products; a product that finds an edge is added to it. Counting
    edges from the first graph to the last gives the sum of (|P| - 1)(|Q| - 1) - 1 over all v, plus the initial edges,
    minus the final ones. Sums of two known numbers are free. There are at most as many of them as there are paths of
    known numbers beyond the first between the same two vertices.
    """
    if not single_elements(graph) or len(graph.vertices) ** 2 > _WORK:
        return 0
    reach = _Reach(graph, "folded")
    forced = sum((reach.before(v).size() - 1) * (reach.after(v).size() - 1) - 1 for v in graph.intermediates)
    last = sum(len(reach.before(output).ends) for output in set(graph.outputs) if output is not None)
    return max(0, forced + len(graph.edges) - last - _known_sums(graph))


def _known_sums(graph: ComputationGraph) -> int:
    """The number of paths of known numbers beyond the first, summed over all pairs of vertices."""
    sources: dict[int, list[int]] = {}
    for (target, source), structure in graph.edges.items():
        if structure.scale is not None:
            sources.setdefault(target, []).append(source)
    counts: dict[int, dict[int, int]] = {}
    for vertex in sorted(graph.vertices):
        paths: dict[int, int] = {}
        for source in sources.get(vertex, ()):
            for first, count in [(source, 1), *counts[source].items()]:
                paths[first] = paths.get(first, 0) + count
        counts[vertex] = paths
    return sum(count - 1 for paths in counts.values() for count in paths.values())


@lru_cache(256)
def _peak_bound(graph: ComputationGraph) -> int:
    """A lower bound on the peak.

    At the start all edges are held, together with the results of the first elimination before its operands are dropped.
    At the end all edges of the Jacobian are held, and each is at least as large as any path it sums.
    """
    state = Elimination(graph)
    first = state.stored() + min(_growths(state, graph.intermediates), default=0)
    reach = _Reach(graph, "folded")
    cones = [reach.before(output) for output in set(graph.outputs) if output is not None]
    last = sum(max(path.stored for path in cone.paths[end]) for cone in cones for end in cone.ends)
    return max(first, last)


def _growths(state: Elimination, vertices: Sequence[int]) -> Iterator[int]:
    """Yield the growth in stored numbers if each vertex is eliminated first. Stops after a vertex without growth."""
    for vertex in vertices:
        growth = 0
        for target, outer in state.successors[vertex].items():
            for source, inner in state.predecessors[vertex].items():
                product, existing = bundles.compose(outer, inner), state.predecessors[target].get(source)
                if product is not None and existing is not None:
                    growth += bundles.add(existing, product.structure).structure.stored - existing.stored
                elif product is not None:
                    growth += product.structure.stored
        yield max(0, growth)
        if growth <= 0:
            return
