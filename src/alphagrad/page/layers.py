"""Assignment of vertices to the layers of a drawing, and the order of vertices within each layer.

An edge that spans several layers gets a **joint** in each layer between, so that it takes part in the ordering and has
a place to pass. The result depends only on the graph.
"""

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from graphax.graph import ComputationGraph, Edge

SWEEPS = 24
# With more joints than this, edges are drawn straight.
MOST_JOINTS = 20_000

Node = int | tuple[int, int, int]
Neighbours = Mapping[Node, Sequence[Node]]


@dataclass(frozen=True)
class Layers:
    """Vertices and joints (target, source, layer) in layers, each in drawing order.

    Attributes:
        rows: the nodes of each layer.
        chains: the nodes that each edge passes, from source to target.
    """

    rows: tuple[tuple[Node, ...], ...]
    chains: dict[Edge, tuple[Node, ...]]


def in_layers(graph: ComputationGraph) -> Layers:
    """Layers with inputs first, outputs last, every edge pointing forward, and few crossings."""
    layer = _assigned(graph)
    chains = _chains(graph, layer)
    rows: list[list[Node]] = [[] for _ in range(max(layer.values()) + 1)]
    for vertex in sorted(graph.vertices):
        rows[layer[vertex]].append(vertex)
    for _, chain in sorted(chains.items()):
        for joint in chain[1:-1]:
            assert isinstance(joint, tuple)
            rows[joint[2]].append(joint)
    return Layers(_untangled(rows, chains.values()), chains)


def _assigned(graph: ComputationGraph) -> dict[Node, int]:
    """Layers by the longest path from an input. Vertices with more successors than predecessors move to the former."""
    before, after = neighbours_of((source, target) for target, source in sorted(graph.edges))
    layer: dict[Node, int] = {}
    for vertex in sorted(graph.vertices):
        layer[vertex] = 1 + max((layer[source] for source in before[vertex]), default=-1)
    ends = [v.number for v in graph.vertices.values() if v.kind == "output"]
    last = max([layer[end] for end in ends], default=max(layer.values()))
    layer.update(dict.fromkeys(ends, last))
    for vertex in reversed(graph.intermediates):
        if len(after[vertex]) > len(before[vertex]):
            layer[vertex] = min(layer[target] for target in after[vertex]) - 1
    return layer


def neighbours_of(chains: Iterable[Sequence[Node]]) -> tuple[Neighbours, Neighbours]:
    """The nodes directly before and directly after each node, in its chains."""
    before: dict[Node, list[Node]] = defaultdict(list)
    after: dict[Node, list[Node]] = defaultdict(list)
    for chain in chains:
        for source, target in pairwise(chain):
            before[target].append(source)
            after[source].append(target)
    return before, after


def _chains(graph: ComputationGraph, layer: Mapping[Node, int]) -> dict[Edge, tuple[Node, ...]]:
    joints = sum(layer[target] - layer[source] - 1 for target, source in graph.edges)
    if joints > MOST_JOINTS:
        return {(target, source): (source, target) for target, source in graph.edges}
    return {
        (t, s): (s, *((t, s, between) for between in range(layer[s] + 1, layer[t])), t) for t, s in sorted(graph.edges)
    }


def _untangled(rows: Sequence[Sequence[Node]], chains: Iterable[Sequence[Node]]) -> tuple[tuple[Node, ...], ...]:
    """Move nodes between their neighbours, back and forth, and keep the order with the fewest crossings."""
    before, after = neighbours_of(chains)
    current = [list(row) for row in rows]
    best, fewest = [list(row) for row in current], _crossings(current, after)
    for sweep in range(SWEEPS):
        forth = sweep % 2 == 0
        neighbours = before if forth else after
        for number in range(1, len(current)) if forth else range(len(current) - 2, -1, -1):
            beside = current[number - 1 if forth else number + 1]
            place = {node: at for at, node in enumerate(beside)}
            current[number] = _between(current[number], neighbours, place)
        crossings = _crossings(current, after)
        if crossings < fewest:
            best, fewest = [list(row) for row in current], crossings
    return tuple(map(tuple, best))


def _between(row: Sequence[Node], neighbours: Neighbours, place: Mapping[Node, int]) -> list[Node]:
    """A row sorted by the mean place of neighbours. Nodes without neighbours stay about where they are."""

    def wanted(at: int, node: Node) -> float:
        places = [place[n] for n in neighbours[node] if n in place]
        return sum(places) / len(places) if places else at * len(place) / max(1, len(row))

    keys = {node: wanted(at, node) for at, node in enumerate(row)}
    return sorted(row, key=keys.__getitem__)


def _crossings(rows: Sequence[Sequence[Node]], after: Neighbours) -> int:
    """The number of pairs of edges that cross: inversions of the targets, listed by source."""
    total = 0
    for row, following in pairwise(rows):
        place = {node: at for at, node in enumerate(following)}
        seen: list[int] = []
        for node in row:
            targets = sorted(place[n] for n in after[node] if n in place)
            total += sum(len(seen) - bisect_right(seen, target) for target in targets)
            for target in targets:
                insort(seen, target)
    return total
