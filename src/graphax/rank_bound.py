"""Lower bounds by ranks: groups of vertices, each of which must contribute a number of multiplications.

`graphax.bilinear` bounds the joint cost of a convex group of vertices; `graphax.bound` bounds each vertex. Bounds of
groups without common vertices add up. On its own, a vertex between known numbers is free: it can be eliminated before
its neighbours have any values. But then the neighbours pay, so groups grow along edges as long as the bound does.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from math import prod
from typing import TYPE_CHECKING

from .bilinear import RandomDerivatives
from .bundles import Bundle, Passage
from .terms import terms_of

if TYPE_CHECKING:
    from .graph import ComputationGraph

# Graphs with more elements (counted once per end) or more vertices than this are skipped.
_MOST_ELEMENTS, _MOST_VERTICES = 1 << 20, 400
# So are groups with more elements, and all further groups after this much work, which takes about a second.
_LARGEST_GROUP, _MOST_WORK = 512, 1 << 30


def rank_bound(graph: ComputationGraph, least: Mapping[int, int], raw: bool = False) -> int:
    """Multiplications that every order takes, given that each vertex takes at least those in ``least``."""
    return RankBounds(graph, least, raw).total()


class RankBounds:
    """Bounds on the multiplications of all vertices except some, given that each takes at least those in ``least``.

    With ``by_ranks``, groups grow as if vertices took nothing alone. Otherwise groups do not begin to grow where
    vertices alone take as much as two of them together.
    """

    def __init__(self, graph: ComputationGraph, least: Mapping[int, int], raw: bool = False, by_ranks: bool = False):
        self._least = least
        self._grouping = _Grouping(graph, least, raw, by_ranks) if _can_be_bounded(graph) else None

    def total(self, without: frozenset[int] = frozenset()) -> int:
        """The sum over all groups of the vertices that are not in ``without``."""
        if self._grouping is None:
            return sum(least for vertex, least in self._least.items() if vertex not in without)
        with _on_one_thread():
            return self._grouping.grown(without)


def _on_one_thread() -> AbstractContextManager:
    """A context in which NumPy computes on one thread, if threadpoolctl is installed.

    The matrices are small. On a busy machine, threads that wait for each other take up to a hundred times as long.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return nullcontext()
    return threadpool_limits(1, user_api="blas")


def _can_be_bounded(graph: ComputationGraph) -> bool:
    """Whether all entries are known beforehand, and there are not too many."""
    if graph.has_loops or len(graph.vertices) > _MOST_VERTICES:
        return False
    elements = sum(prod(vertex.shape) for vertex in graph.vertices.values())
    ends = {*graph.inputs, *(vertex for vertex in graph.outputs if vertex is not None)}
    if elements * sum(prod(graph.vertices[end].shape) for end in ends) > _MOST_ELEMENTS:
        return False
    edges = graph.edges.values()
    return all(
        not isinstance(edge, (Bundle, Passage)) and not any(term.names for term in terms_of(edge)) for edge in edges
    )


class _Grouping:
    """A partition of the intermediate vertices into convex groups, with the multiplications of each."""

    def __init__(self, graph: ComputationGraph, least: Mapping[int, int], raw: bool, by_ranks: bool):
        self._derivatives = RandomDerivatives(graph, raw)
        self._least, self._by_ranks = least, by_ranks
        self._ranks: dict[frozenset[int], int] = {}
        self._group = {vertex: frozenset((vertex,)) for vertex in graph.intermediates}
        self._edges = [(target, source) for target, source in graph.edges if {target, source} <= self._group.keys()]

    def grown(self, without: frozenset[int]) -> int:
        """The sum over all groups, after joining all neighbouring groups whose joint bound is higher.

        Vertices in ``without`` stay alone and count as zero.
        """
        self._group = {vertex: frozenset((vertex,)) for vertex in self._group}
        # Begin with edges of known numbers: two vertices that take nothing alone may be part of a group that does.
        entries = self._derivatives.entries
        joined = [edge for edge in self._edges if without.isdisjoint(edge)]
        known = [edge for edge in joined if not entries[edge].count]
        for edges, ties in ((known, True), (joined, False)):
            while sum(self._join(target, source, ties) for target, source in edges):
                pass
        groups = [group for group in set(self._group.values()) if without.isdisjoint(group)]
        return sum(max(self._rank(group), self._alone(group)) for group in groups)

    def _alone(self, group: frozenset[int]) -> int:
        return sum(self._least[vertex] for vertex in group)

    def _rank(self, group: frozenset[int]) -> int:
        if group not in self._ranks:
            elements = sum(self._derivatives.size[vertex] for vertex in group)
            small = elements <= _LARGEST_GROUP and self._derivatives.work < _MOST_WORK
            self._ranks[group] = self._derivatives.multiplications(sorted(group)) if small else 0
        return self._ranks[group]

    def _taken(self, group: frozenset[int]) -> int:
        """What counts of a group while groups grow."""
        return self._rank(group) if self._by_ranks else max(self._rank(group), self._alone(group))

    def _join(self, target: int, source: int, ties: bool) -> bool:
        """Join the groups of two vertices if their joint bound is higher.

        With ``ties``, also join them if the bound is equal and one of them takes nothing.
        """
        before, after = self._group[source], self._group[target]
        if before == after or not self._is_convex(before, after):
            return False
        alone, joined = (self._taken(before), self._taken(after)), before | after
        together = self._taken(joined)
        if together < sum(alone) or (together == sum(alone) and not (ties and 0 in alone)):
            return False
        self._group.update(dict.fromkeys(joined, joined))
        return True

    def _is_convex(self, before: frozenset[int], after: frozenset[int]) -> bool:
        """Whether no path leads from one group to the other through a third."""
        todo, seen = self._following(before) - {after}, set[frozenset[int]]()
        while todo:
            group = todo.pop()
            seen.add(group)
            following = self._following(group)
            if after in following:
                return False
            todo |= following - seen
        return True

    def _following(self, group: frozenset[int]) -> set[frozenset[int]]:
        targets = (target for vertex in group for target in self._derivatives.targets[vertex])
        return {self._group[target] for target in targets if target in self._group} - {group}
