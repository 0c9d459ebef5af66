"""Eliminations that can be settled beforehand without changing, or without raising, the least cost of the rest."""

import math
from dataclasses import dataclass
from time import monotonic

from .conditional_cuts import ConditionalCuts
from .scalar_graph import ScalarGraph


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
    rules = (_at_an_input, _at_an_output, _first_of_a_pair, _second_of_a_pair)
    cuts, changed = ConditionalCuts(graph), True
    while changed:
        changed = False
        for vertex in graph.intermediates:
            if monotonic() > deadline or not graph.has_values_only([vertex]):
                continue
            least = next((least for rule in rules if (least := rule(graph, cuts, vertex))), None)
            if least is not None:
                graph.eliminate(vertex)
                settled += least
                eliminated.append(vertex)
                cuts, changed = ConditionalCuts(graph), True
    return Core(graph, settled, tuple(eliminated))


def _at_an_input(graph: ScalarGraph, cuts: ConditionalCuts, vertex: int) -> int | None:
    """A vertex whose only predecessor is an input, and whose successors are as few as they can get.

    Its predecessors stay the same for ever, so eliminating it first costs its least. All others see the input, which
    is never eliminated, in its place, so moving it to the front raises nobody's cost.
    """
    (source, *others) = graph.predecessors[vertex]
    count = len(graph.successors[vertex])
    return count if not others and source in graph.inputs and cuts.bound(vertex) == count else None


def _at_an_output(graph: ScalarGraph, cuts: ConditionalCuts, vertex: int) -> int | None:
    """A vertex whose only successor is an output, and whose predecessors are as few as they can get: the mirror image
    of `_at_an_input`."""
    (target, *others) = graph.successors[vertex]
    count = len(graph.predecessors[vertex])
    return count if not others and target in graph.outputs and cuts.bound(vertex) == count else None


def _first_of_a_pair(graph: ScalarGraph, cuts: ConditionalCuts, vertex: int) -> int | None:
    """A vertex whose only successor has it as its only predecessor, if it is the cheaper one to eliminate now.

    Whichever of the two goes first costs its predecessors, or the successors of the second: at least the smaller of the
    two minimum cuts. To all others the pair looks like one vertex before and after that.
    """
    (target, *others) = graph.successors[vertex]
    is_pair = not others and target not in graph.outputs and len(graph.predecessors[target]) == 1
    if is_pair and graph.has_values_only([target]) and graph.cost(vertex) <= graph.cost(target):
        return min(cuts.bound(vertex), cuts.bound(target))
    return None


def _second_of_a_pair(graph: ScalarGraph, cuts: ConditionalCuts, vertex: int) -> int | None:
    """The mirror image of `_first_of_a_pair`."""
    (source, *others) = graph.predecessors[vertex]
    is_pair = not others and source not in graph.inputs and len(graph.successors[source]) == 1
    if is_pair and graph.has_values_only([source]) and graph.cost(vertex) <= graph.cost(source):
        return min(cuts.bound(vertex), cuts.bound(source))
    return None
