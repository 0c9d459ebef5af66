"""Eliminations that can be settled beforehand without changing, or without raising, the least cost of the rest."""

import math
from dataclasses import dataclass
from time import monotonic
from typing import NamedTuple

from .conditional_cuts import ConditionalCuts
from .scalar_graph import Coefficient, ScalarGraph


class Side(NamedTuple):
    """The neighbours of vertices towards the inputs, or towards the outputs, and where they end."""

    edges: dict[int, dict[int, Coefficient]]
    ends: frozenset[int]


@dataclass(frozen=True, eq=False)
class Core:
    """What is left of a graph.

    Attributes:
        graph: the rest. Every order of the whole graph costs at least ``settled`` plus some order of the rest.
        settled: multiplications.
        eliminated: the vertices eliminated to get there, in this order.
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
    """A vertex whose only predecessor is an input, and whose successors are as few as they can be; or the mirror image.

    Its predecessors stay the same for ever, so eliminating it first costs its least. All others see the input, which
    is never eliminated, in its place, so moving it to the front raises nobody's cost.
    """
    (neighbour, *others) = side.edges[vertex]
    count = len(other.edges[vertex])
    return count if not others and neighbour in side.ends and cuts.bound(vertex) == count else None


def _of_a_pair(graph: ScalarGraph, cuts: ConditionalCuts, vertex: int, side: Side, other: Side) -> int | None:
    """A vertex whose only successor has it as its only predecessor, if it is the cheaper one to eliminate now; or the
    mirror image.

    Whichever of the two goes first costs its predecessors, or the successors of the second: at least the smaller of the
    two minimum cuts. To all others the pair looks like one vertex before and after that.
    """
    (neighbour, *others) = side.edges[vertex]
    is_pair = not others and neighbour not in side.ends and len(other.edges[neighbour]) == 1
    if is_pair and graph.has_values_only([neighbour]) and graph.cost(vertex) <= graph.cost(neighbour):
        return min(cuts.bound(vertex), cuts.bound(neighbour))
    return None
