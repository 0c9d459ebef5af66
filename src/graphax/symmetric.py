"""Second derivatives by elimination: plans that compute each of two equal halves once.

The gradient of a function contains the graph of the function twice: once with values and once, mirrored, with adjoints.
An edge from the value k to the adjoint of j is a second derivative W[j, k], which equals the transpose of W[k, j]. So
only one of the two is kept. Vertices are eliminated together with their adjoints. The edges that remain connect inputs
with adjoints of inputs: they are the Hessian.

Eliminating vertex i with the edges c[i, j] from its predecessors takes c[t, i] c[i, j] for every successor t, as
always, and adds c[i, j]ᵀ W[i, k] to W[j, k] for every k. If both ends of a second derivative are i, it becomes c[i, j]ᵀ
W[i, i] c[i, k]. In reverse order no vertex has successors left; this is known as edge pushing.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import prod
from typing import Any

from .bundles import Mirrored, Operation, Turned
from .graph import ComputationGraph
from .plan import ADJOINTS, Drop, Edge, Instruction, Plan
from .presets import PRESETS, preset_vertices
from .structure import Structure, identity
from .terms import AnyStructure, Terms, add, compose, is_unambiguous, replaced, transposed

# A local second derivative: its pair, and the position of its equation.
LocalPair = tuple[Edge, int]
# With more vertices than this, `auto` tries the reverse order only.
_MANY = 300


def adjoint(vertex: int) -> int:
    """The number of the adjoint of a vertex."""
    return ADJOINTS + vertex


def pair(first: int, second: int) -> Edge:
    """The edge that is kept for the second derivative with respect to two vertices."""
    return adjoint(min(first, second)), max(first, second)


def vertices_of(edge: Edge) -> tuple[int, int]:
    """The two vertices of a second derivative."""
    return edge[0] - ADJOINTS, edge[1]


class _Writer:
    """Writes straight-line code on blocks."""

    def __init__(self, operands: Mapping[Any, AnyStructure], whole: bool):
        self.whole = whole
        self.operands = tuple(operands)
        self.structures: list[AnyStructure] = list(operands.values())
        self.code: list[Instruction | Drop] = []
        self.values: dict[Any, int] = {edge: number for number, edge in enumerate(operands)}
        self.alive = set(self.values.values())
        # Values that equal their transpose exactly. So do their sums.
        self._mirrored: set[int] = set()

    def _write(self, left: int, right: int, operation: Operation, edge: Edge) -> int:
        if operation.is_sum:
            self.alive -= {left, right}
        self.alive.add(len(self.structures))
        self.code.append(Instruction(len(self.structures), left, right, operation, edge))
        assert isinstance(operation.structure, (Structure, Terms))
        self.structures.append(operation.structure)
        return len(self.structures) - 1

    def product(self, left: int, right: int, edge: Edge) -> int | None:
        operation = compose(self.structures[left], self.structures[right], self.whole)
        return None if operation is None else self._write(left, right, operation, edge)

    def sum(self, left: int | None, right: int | None, edge: Edge) -> int | None:
        if left is None or right is None:
            return right if left is None else left
        total = self._write(left, right, add(self.structures[left], self.structures[right], self.whole), edge)
        if {left, right} <= self._mirrored:
            self._mirrored.add(total)
        return total

    def turned(self, value: int, edge: Edge) -> int:
        return self._write(value, value, Turned(transposed(self.structures[value])), edge)

    def mirrored(self, value: int, edge: Edge, since: int | None = None) -> int:
        """A symmetric value, mirrored. It was computed by the code from position ``since`` on."""
        structure = self.structures[value]
        if value in self._mirrored or not is_unambiguous(structure):
            return value
        share = replaced(structure) / max(1, structure.stored)
        made = [step for step in self.code[since:] if isinstance(step, Instruction)] if since is not None else []
        folded, raw = (
            -int(share * sum(step.multiplications(counting) for step in made)) for counting in ("folded", "raw")
        )
        additions = -int(share * sum(step.operation.additions for step in made))
        result = self._write(value, value, Mirrored(structure, folded, raw, additions), edge)
        self._mirrored.add(result)
        return result

    def include(self, edge: Edge, value: int | None) -> None:
        """Add a value to an edge."""
        total = self.sum(self.values.get(edge), value, edge)
        if total is not None:
            self.values[edge] = total

    def drop(self, vertex: int) -> None:
        """Drop all values that are not the block of an edge by now."""
        needed = set(self.values.values())
        self.code.append(Drop(tuple(sorted(self.alive - needed)), vertex))
        self.alive &= needed

    def plan(self, order: tuple[int, ...], outputs: Iterable[Edge]) -> Plan:
        kept = {edge: self.values[edge] for edge in outputs if edge in self.values}
        return Plan(order, self.operands, tuple(self.code), kept, tuple(self.structures))


@lru_cache(256)
def adjoint_plan(graph: ComputationGraph, output: int, whole: bool = True) -> Plan:
    """The plan of the derivatives of an output with respect to all vertices, from the last to the first."""
    start = identity(graph.vertices[output].shape, renaming=True)
    writer = _Writer({**plain_edges(graph), (output, output): start}, whole)
    found: dict[int, int | None] = {output: writer.values[output, output]}
    before = _neighbours((target, source) for target, source in sorted(graph.edges))
    for vertex in (output, *reversed(graph.intermediates)):
        here = found.get(vertex)
        if here is not None:
            for source in before.get(vertex, ()):
                product = writer.product(here, writer.values[vertex, source], (output, source))
                found[source] = writer.sum(found.get(source), product, (output, source))
    # An edge of the graph that leads to the output is the derivative along one path, not along all paths.
    writer.values = {(output, vertex): value for vertex, value in found.items() if value is not None}
    return writer.plan(graph.intermediates[::-1], writer.values)


def plain_edges(graph: ComputationGraph) -> dict[Any, AnyStructure]:
    """The edges of a graph without loops."""
    return {edge: known for edge, known in graph.edges.items() if isinstance(known, (Structure, Terms))}


def _neighbours(edges: Iterable[Edge]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for vertex, neighbour in edges:
        found.setdefault(vertex, []).append(neighbour)
    return found


class _Connections:
    """Connections between vertices, by edges and by second derivatives.

    Only vertices that lead to a second derivative are included.
    """

    def __init__(self, graph: ComputationGraph, pairs: Iterable[Edge]):
        self.partners: dict[int, set[int]] = {vertex: set() for vertex in graph.vertices}
        for edge in pairs:
            first, second = vertices_of(edge)
            self.partners[first].add(second)
            self.partners[second].add(first)
        above = _neighbours((source, target) for target, source in graph.edges)
        useful: set[int] = set()
        for vertex in sorted(graph.vertices, reverse=True):
            if self.partners[vertex] or not useful.isdisjoint(above.get(vertex, ())):
                useful.add(vertex)
        self.predecessors: dict[int, set[int]] = {vertex: set() for vertex in graph.vertices}
        self.successors: dict[int, set[int]] = {vertex: set() for vertex in graph.vertices}
        for target, source in graph.edges:
            if target in useful:
                self.connect(target, source)
        self.vertices = [vertex for vertex in graph.intermediates if vertex in useful]

    def connect(self, target: int, source: int) -> None:
        self.predecessors[target].add(source)
        self.successors[source].add(target)

    def pair(self, first: int, second: int) -> None:
        self.partners[first].add(second)
        self.partners[second].add(first)

    @property
    def edges(self) -> list[Edge]:
        return sorted((target, source) for target, sources in self.predecessors.items() for source in sources)

    def remove(self, vertex: int) -> tuple[list[int], list[int], list[int]]:
        """Remove a vertex. Returns its predecessors, successors and partners, which may include the vertex itself."""
        before, after, partners = (
            sorted(side.pop(vertex)) for side in (self.predecessors, self.successors, self.partners)
        )
        for source in before:
            self.successors[source].discard(vertex)
        for target in after:
            self.predecessors[target].discard(vertex)
        for other in partners:
            if other != vertex:
                self.partners[other].discard(vertex)
        return before, after, partners


@lru_cache(256)
def symmetric_plan(
    graph: ComputationGraph,
    second: tuple[tuple[LocalPair, AnyStructure], ...],
    vertices: tuple[int, ...],
    whole: bool = True,
) -> Plan:
    """The plan of the Hessian, from the edges of a graph and its local second derivatives, which are named by `pair`.

    The pairs of inputs remain.
    """
    connections = _Connections(graph, [edge for (edge, _), _ in second])
    useful = set(connections.vertices)
    known = plain_edges(graph)
    writer = _Writer({edge: known[edge] for edge in connections.edges} | dict(second), whole)
    for (edge, position), _ in second:
        value, (a, b) = writer.values.pop((edge, position)), vertices_of(edge)
        writer.include(edge, writer.mirrored(value, edge) if a == b else value)
    for vertex in vertices:
        if vertex in useful:
            _eliminate(writer, connections, vertex)
    for vertex in graph.inputs:
        if (edge := pair(vertex, vertex)) in writer.values:
            writer.values[edge] = writer.mirrored(writer.values[edge], edge)
    return writer.plan(vertices, [pair(a, b) for n, a in enumerate(graph.inputs) for b in graph.inputs[n:]])


def _eliminate(writer: _Writer, connections: _Connections, vertex: int) -> None:
    before, after, partners = connections.remove(vertex)
    edges = {source: writer.values.pop((vertex, source)) for source in before}
    for target in after:
        outer = writer.values.pop((target, vertex))
        for source in before:
            product = writer.product(outer, edges[source], (target, source))
            if product is not None:
                writer.include((target, source), product)
                connections.connect(target, source)
    for (first, other), value in _pushed(writer, vertex, edges, partners).items():
        connections.pair(first, other)
        writer.include(pair(first, other), value)
    writer.drop(vertex)


def _pushed(writer: _Writer, vertex: int, edges: Mapping[int, int], partners: list[int]) -> dict[Edge, int]:
    """Contributions of the second derivatives at a vertex to those at its predecessors, by ordered pair of vertices."""
    kept = {other: writer.values.pop(pair(vertex, other)) for other in partners}
    twice = kept.pop(vertex, None)
    # Second derivatives with the vertex as the first operand, and with the vertex as the second.
    along, across = dict(kept), dict(kept)
    for other, value in kept.items():
        turned = along if vertex > other else across
        turned[other] = writer.turned(value, pair(vertex, other))
    factors = {source: writer.turned(edge, (vertex, source)) for source, edge in edges.items()} if partners else {}
    for source, edge in edges.items() if twice is not None else ():
        assert twice is not None
        total = writer.sum(along.get(source), writer.product(twice, edge, pair(vertex, source)), pair(vertex, source))
        if total is not None:
            along[source] = total
    found: dict[Edge, int] = {}
    for other in {**along, **edges}:
        for source, factor in factors.items():
            if other in edges and source > other:
                continue
            first, last = sorted((source, other))
            since = len(writer.code)
            here = writer.product(factor, along[other], pair(first, last)) if other in along else None
            if here is not None and source > other:
                here = writer.turned(here, pair(first, last))
            if other in edges and source in across:
                rest = writer.product(across[source], edges[other], pair(first, last))
                here = writer.sum(here, rest, pair(first, last))
            if here is not None:
                found[first, last] = writer.mirrored(here, pair(first, last), since) if first == last else here
    return found


@lru_cache(256)
def order_of_pairs(graph: ComputationGraph, second: tuple[tuple[LocalPair, AnyStructure], ...]) -> tuple[int, ...]:
    """The cheapest of a few orders for a Hessian, by multiplications and additions."""
    pairs = [edge for (edge, _), _ in second]
    if len(graph.intermediates) > _MANY:
        return preset_vertices("rev", graph)
    presets = [preset_vertices(name, graph) for name in PRESETS if name != "auto"]
    orders = dict.fromkeys([*presets, _fewest_first(graph, pairs)])
    costs: dict[tuple[int, ...], int] = {}
    for vertices in orders:
        costs[vertices] = symmetric_plan(graph, second, vertices, False).cost().operations
        # The Hessian of a quadratic form takes no operations, and nothing is cheaper.
        if costs[vertices] <= 0:
            break
    return min(costs, key=costs.__getitem__)


def _fewest_first(graph: ComputationGraph, pairs: Iterable[Edge]) -> tuple[int, ...]:
    """Always the vertex that takes the fewest multiplications now, as if all blocks were dense."""
    connections, order = _Connections(graph, pairs), []
    size = {vertex: prod(graph.vertices[vertex].shape) for vertex in graph.vertices}

    def weight(vertices: Iterable[int]) -> int:
        return sum(size[vertex] for vertex in vertices)

    def score(vertex: int) -> tuple[float, int]:
        before, partners = weight(connections.predecessors[vertex]), connections.partners[vertex]
        others = weight(connections.successors[vertex]) + weight(partners - {vertex})
        twice = before * (size[vertex] + before / 2) if vertex in partners else 0
        return size[vertex] * (before * others + twice), -vertex

    todo = set(connections.vertices)
    while todo:
        vertex = min(todo, key=score)
        todo.remove(vertex)
        order.append(vertex)
        before, after, partners = connections.remove(vertex)
        for target in after:
            for source in before:
                connections.connect(target, source)
        twice = before if vertex in partners else []
        for other in {*partners, *twice} - {vertex}:
            for source in before:
                connections.pair(source, other)
    rest = [vertex for vertex in graph.intermediates if vertex not in set(order)]
    return (*order, *rest)
