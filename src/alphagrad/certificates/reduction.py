"""Eliminations that can be settled in advance without changing, or without raising, the minimum cost of the rest."""

import math
from dataclasses import dataclass
from time import monotonic
from typing import NamedTuple

from .conditional_cuts import ConditionalCuts
from .scalar_graph import Coefficient, ScalarGraph


class Side(NamedTuple):
    """The neighbours of vertices toward the inputs or toward the outputs, and the vertices at that end."""

    edges: dict[int, dict[int, Coefficient]]
    ends: frozenset[int]


@dataclass(frozen=True, eq=False)
class Core:
    """The rest of a graph after reduction.

    Attributes:
        graph: the rest. Every order of the whole graph costs at least ``settled`` plus the cost of some order of the
            rest.
        settled: the multiplications of the eliminations settled so far.
        eliminated: the eliminated vertices, in this order.
    """

    graph: ScalarGraph
    settled: int
    eliminated: tuple[int, ...]


def reduced(graph: ScalarGraph, deadline: float = math.inf) -> Core:
    """Apply the rules below until none applies, or until the deadline by `time.monotonic`."""
    graph = graph.copy()
    settled, eliminated = 0, []
    before, after = Side(graph.predecessors, graph.inputs), Side(graph.successors, graph.outputs)
    rules = (
        (_at_an_end, before, after), (_at_an_end, after, before),
        (_of_a_pair, after, before), (_of_a_pair, before, after),
    )  # fmt: skip
    cuts, changed = ConditionalCuts(graph), True
    while changed:
        changed = False
        for vertex in graph.intermediates:
            if monotonic() > deadline or not graph.has_values_only([vertex]):
                continue
            least = next((least for rule, *sides in rules if (least := rule(graph, cuts, vertex, *sides))), None)
            if least is not None:
                graph.eliminate(vertex)
                settled += least
                eliminated.append(vertex)
                cuts, changed = ConditionalCuts(graph), True
    return Core(graph, settled, tuple(eliminated))


def _at_an_end(graph: ScalarGraph, cuts: ConditionalCuts, vertex: int, side: Side, other: Side) -> int | None:
    """The cost of a vertex whose only predecessor is an input and that has a minimal number of successors.

    Returns None for all other vertices. The predecessors of such a vertex never change, so eliminating it first costs
    its minimum. All other vertices see the input in its place, which is never eliminated, so moving the vertex to the
    front raises no other cost. The mirror image is handled as well.
    """
    (neighbour, *others) = side.edges[vertex]
    count = len(other.edges[vertex])
    return count if not others and neighbour in side.ends and cuts.bound(vertex) == count else None


def _of_a_pair(graph: ScalarGraph, cuts: ConditionalCuts, vertex: int, side: Side, other: Side) -> int | None:
    """A lower bound for a vertex whose only successor has it as its only predecessor; None otherwise.

    The vertex must be the cheaper one of the pair now. Whichever of the two goes first costs at least the smaller of
    their two minimum cuts. To all other vertices, the pair looks like one vertex before and after that. The mirror
    image is handled as well.
    """
    (neighbour, *others) = side.edges[vertex]
    is_pair = not others and neighbour not in side.ends and len(other.edges[neighbour]) == 1
    if is_pair and graph.has_values_only([neighbour]) and graph.cost(vertex) <= graph.cost(neighbour):
        return min(cuts.bound(vertex), cuts.bound(neighbour))
    return None
