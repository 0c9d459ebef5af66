"""Lower bounds by subgraphs: the vertices whose joint cost is found by search, and the bound for all others.

`graphax.subgraph` finds the least cost of some vertices exactly, in time that grows exponentially with their number. So
a subgraph grows from nothing, by the vertices that are most expensive in a good order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from .contained import has_lists
from .presets import BASELINES
from .subgraph import LeastCosts

if TYPE_CHECKING:
    from .graph import ComputationGraph

# Larger graphs are skipped.
_MOST_VERTICES = 400
# The states that all searches of a graph, and each of them, may visit. 10,000 states take up to a second.
_MOST_STATES, _MOST_PER_SEARCH = 25_000, 8_000


def subgraph_bound(
    graph: ComputationGraph, counting: str, least: Mapping[int, int], others: Callable[[frozenset[int]], int]
) -> int:
    """Multiplications that every order takes, given that each vertex takes at least those in ``least``.

    ``others`` bounds the cost of all vertices except those given to it.
    """
    if not _can_be_bounded(graph):
        return 0
    growth = _Growth(graph, counting, least)
    return max((cost + others(chosen) for chosen, cost in growth.steps()), default=0)


def _can_be_bounded(graph: ComputationGraph) -> bool:
    return len(graph.vertices) <= _MOST_VERTICES and not any(map(has_lists, graph.edges.values()))


class _Growth:
    """A set of chosen vertices that grows as long as their least cost does."""

    def __init__(self, graph: ComputationGraph, counting: str, least: Mapping[int, int]):
        self.chosen: frozenset[int] = frozenset()
        self.costs = LeastCosts(graph, counting, least)
        self._graph, self._counting, self._least = graph, counting, least
        self._sources: dict[int, list[int]] = {vertex: [] for vertex in graph.vertices}
        self._targets: dict[int, list[int]] = {vertex: [] for vertex in graph.vertices}
        for target, source in graph.edges:
            self._sources[target].append(source)
            self._targets[source].append(target)

    def steps(self) -> Iterator[tuple[frozenset[int], int]]:
        """Yield sets of vertices, each larger than the previous, with a lower bound on their cost."""
        candidates = self._candidates()
        # Vertices that cost nothing alone may cost something together, so they are chosen if no others are left.
        for gain in (1, 0):
            last = None
            while last != (last := self.chosen):
                for vertex in candidates:
                    cost = self.costs.total
                    if vertex not in self.chosen and self._include(vertex, gain) and self.costs.total > cost:
                        yield self.chosen, self.costs.total + sum(self._least[chosen] for chosen in self.chosen)

    def _candidates(self) -> list[int]:
        """All vertices, those first that take most beyond their least in the cheapest preset."""
        plans = [self._graph.plan(name) for name in BASELINES]
        plan = min(plans, key=lambda plan: plan.cost(self._counting).multiplications)
        excess = {
            vertex: sum(step.multiplications(self._counting) for step in steps) - self._least[vertex]
            for vertex, steps in plan.by_vertex()
        }
        return sorted(excess, key=lambda vertex: -excess[vertex])

    def _include(self, vertex: int, gain: int) -> bool:
        """Choose a vertex, and others that connect it to those chosen, if this raises the least cost by ``gain``."""
        left = _MOST_STATES - self.costs.work
        if left <= 0:
            return False
        larger = self.chosen | self._connection(vertex, self._sources) | self._connection(vertex, self._targets)
        finding = self.costs.search(larger, min(left, _MOST_PER_SEARCH))
        if finding.total < self.costs.total + gain:
            return False
        self.chosen = larger
        self.costs.extend(finding)
        return True

    def _connection(self, vertex: int, neighbours: Mapping[int, list[int]]) -> set[int]:
        """The vertices of a shortest path from ``vertex`` to a chosen one or to an end of the graph."""
        origin, reached = {vertex: vertex}, [vertex]
        for here in reached:
            if here in self.chosen or here not in self._least:
                break
            for there in neighbours[here]:
                if there not in origin:
                    origin[there] = here
                    reached.append(there)
        path = {vertex}
        while here != vertex:
            path.add(here)
            here = origin[here]
        return path & self._least.keys()
