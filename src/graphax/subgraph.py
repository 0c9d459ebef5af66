"""The least cost of eliminating some vertices of a graph, by a search over sets of vertices that are gone.

All other intermediate vertices are left out, with their edges. Elimination then makes fewer products, of blocks with
fewer entries: every block is contained in the block that the whole graph has there once the same vertices are gone (see
`graphax.contained`). So the eliminations of the chosen vertices cost at most as much as they do in the whole graph,
vertex by vertex, and the cheapest order of the subgraph bounds every order of the whole graph. Containment does not
depend on the order of eliminations, so one graph stands for all orders that lead to the same set of vertices.

Two vertices are in a row if only one block links them, it has one entry per row and column, the second follows nothing
else, and the first leads nowhere else. Eliminating either of them leaves blocks with the same entries. So in a longer
row, it only matters how many vertices are gone (`Row`). This keeps chains from having exponentially many states.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from math import prod
from typing import TYPE_CHECKING

from .bundles import Bundle, Passage
from .contained import NOTHING, Algebra, Link
from .terms import terms_of

if TYPE_CHECKING:
    from .graph import ComputationGraph

# The numbers of structures by vertex and neighbour.
Neighbours = dict[int, dict[int, int]]


@dataclass(frozen=True)
class State:
    """The blocks that are left once some vertices are gone, without those between two ends of the graph.

    Attributes:
        sources, targets: the blocks of each vertex.
        prices: the multiplications that eliminating each vertex takes.
    """

    sources: Neighbours
    targets: Neighbours
    prices: dict[int, int]

    def linked(self, algebra: Algebra, vertex: int) -> tuple[int | None, Link | None]:
        """The vertex before ``vertex`` in a row and how they are linked; None twice if there is none."""
        if len(self.sources[vertex]) == 1:
            ((source, block),) = self.sources[vertex].items()
            link = algebra.link(block)
            if link is not None and self.targets.get(source, {}).keys() == {vertex}:
                return source, link
        return None, None

    def joined(self, algebra: Algebra, first: int, second: int) -> State:
        """The state with two vertices in a row as one, the second."""
        link = self.sources[second][first]
        before = self.sources[first].items()
        moved = {source: algebra.moved(second, source, block, link) for source, block in before}
        sources, targets = self._copied((first,), moved)
        sources[second] = {source: block for source, block in moved.items() if block != NOTHING}
        for source in sources[second].keys() & targets.keys():
            targets[source][second] = sources[second][source]
        return self.priced(algebra, sources, targets, (second, *moved))

    def without(self, algebra: Algebra, vertex: int) -> State:
        """The state after eliminating ``vertex``."""
        before, after = self.sources[vertex], self.targets[vertex]
        sources, targets = self._copied((vertex,), (*before, *after))
        for target, outer in after.items():
            for source, inner in before.items():
                new = algebra.product(outer, inner)[0] if target in sources or source in targets else NOTHING
                if new == NOTHING:
                    continue
                known = sources[target].get(source) if target in sources else targets[source].get(target)
                new = algebra.between(target, source, new)
                block = new if known is None else algebra.sum(known, new)
                if target in sources:
                    sources[target][source] = block
                if source in targets:
                    targets[source][target] = block
        return self.priced(algebra, sources, targets, (*before, *after))

    def _copied(self, gone: Collection[int], changed: Collection[int]) -> tuple[Neighbours, Neighbours]:
        """Neighbours that may be changed at the vertices ``changed``, without vertices that are gone."""
        sources, targets = self.sources.copy(), self.targets.copy()
        for neighbours in (sources, targets):
            for vertex in gone:
                del neighbours[vertex]
            for vertex in neighbours.keys() & set(changed):
                neighbours[vertex] = {n: block for n, block in neighbours[vertex].items() if n not in gone}
        return sources, targets

    def priced(self, algebra: Algebra, sources: Neighbours, targets: Neighbours, changed: Collection[int]) -> State:
        """The state with other neighbours, which differ at the vertices ``changed``."""
        prices = self.prices.copy()
        for vertex in self.prices.keys() - sources.keys():
            del prices[vertex]
        for vertex in sources.keys() & set(changed):
            inner = sources[vertex].values()
            prices[vertex] = sum(
                algebra.product(left, right)[1] for left in targets[vertex].values() for right in inner
            )
        return State(sources, targets, prices)


@dataclass(frozen=True)
class Row:
    """Vertices in a row.

    Attributes:
        units: the last of the vertices between which all links are free, in order. Eliminating all but one of them
            costs nothing, whichever that is, so a unit is gone when all of its vertices are.
        bits: the vertices of each unit, as a set of bits.
        least: the most that a vertex of each unit takes at least, which is the same for all units.
    """

    units: tuple[int, ...]
    bits: tuple[int, ...]
    least: int

    @cached_property
    def all_bits(self) -> int:
        return sum(self.bits)

    @cached_property
    def _counted(self) -> dict[int, int]:
        return {}

    def gone(self, gone: int) -> int:
        """As many of the first units as are gone anywhere."""
        here = gone & self.all_bits
        if here not in self._counted:
            self._counted[here] = sum(self.bits[: sum(here & unit == unit for unit in self.bits)])
        return self._counted[here]


@dataclass(frozen=True)
class Finding:
    """What a search has found out.

    Attributes:
        rows: the rows of the vertices that were eliminated.
        total: no order of them spends less.
        spent: per set of vertices, the least that it takes to eliminate them first. It takes at least the rest of the
            total to eliminate the others afterwards.
    """

    rows: tuple[Row, ...]
    total: int
    spent: dict[int, int]

    @cached_property
    def _together(self) -> list[Row]:
        return [row for row in self.rows if row.all_bits.bit_count() > 1]

    @cached_property
    def _alone(self) -> int:
        return sum(row.all_bits for row in self.rows if row.all_bits.bit_count() == 1)

    def remaining(self, gone: int) -> int | None:
        """A lower bound on the cost of the vertices that are not gone; None if it was not found out."""
        known = gone & self._alone
        for row in self._together:
            known |= row.gone(gone)
        spent = self.spent.get(known)
        return None if spent is None else self.total - spent


class LeastCosts:
    """Searches for the least cost of subgraphs, each larger than the previous.

    A cost is what an elimination takes beyond the ``least`` that it takes in every order.
    """

    def __init__(self, graph: ComputationGraph, counting: str, least: Mapping[int, int]):
        self._graph, self._least = graph, least
        self.algebra = Algebra(graph, counting)
        self._bits = {vertex: 1 << n for n, vertex in enumerate(graph.intermediates)}
        self._findings: list[Finding] = []
        # The number of states visited so far.
        self.work = 0

    @property
    def total(self) -> int:
        """The cost of the largest subgraph so far in every order."""
        return self._findings[-1].total if self._findings else 0

    def extend(self, finding: Finding) -> None:
        """Let later searches, which must include the vertices of this one, benefit from it."""
        self._findings.append(finding)

    def search(self, vertices: Collection[int], most: int) -> Finding:
        """Find the least cost of ``vertices``, or a lower bound on it after visiting ``most`` states.

        The remaining cost of a state is estimated by smaller subgraphs. This is A*, which visits states again when it
        finds a cheaper way to them. So all that is required of an estimate is that it is never too high.
        """
        start, rows = self._in_rows(self.start(vertices))
        goal, states, spent = sum(self._bits[vertex] for vertex in vertices), {0: start}, {0: 0}
        origin: dict[int, tuple[int, list[int]]] = {}
        queue, visited, total = [(self._remaining(0), 0, 0, 0)], dict[int, int](), 0
        while queue:
            total, _, gone, cost = heappop(queue)
            if cost > spent[gone] or gone in visited:
                continue
            if gone == goal or len(visited) >= most:
                break
            if gone not in states:
                before, units = origin[gone]
                states[gone] = self._next(states[before], units)
            visited[gone] = cost
            self.work += 1
            for row in rows:
                units = [unit for unit in row.units if unit in states[gone].sources]
                if not units:
                    continue
                price = min([states[gone].prices[unit] for unit in units])
                reached, new = gone | row.bits[-len(units)], cost + max(0, price - row.least)
                if new < spent.get(reached, new + 1):
                    spent[reached], origin[reached] = new, (gone, units)
                    visited.pop(reached, None)
                    heappush(queue, (new + self._remaining(reached), -reached.bit_count(), reached, new))
        return Finding(rows, total, visited)

    def _next(self, state: State, units: list[int]) -> State:
        """The state with one unit less of those left of a row."""
        return state.without(self.algebra, *units) if len(units) == 1 else state.joined(self.algebra, *units[:2])

    def start(self, vertices: Collection[int]) -> State:
        sources: Neighbours = {vertex: {} for vertex in vertices}
        targets: Neighbours = {vertex: {} for vertex in vertices}
        outside = self._bits.keys() - sources.keys()
        for (target, source), edge in self._graph.edges.items():
            if target in outside or source in outside:
                continue
            assert not isinstance(edge, (Bundle, Passage))
            block = self.algebra.number(max(terms_of(edge), key=lambda term: prod(term.sizes)))
            block = self.algebra.between(target, source, block)
            if target in sources:
                sources[target][source] = block
            if source in targets:
                targets[source][target] = block
        return State({}, {}, {}).priced(self.algebra, sources, targets, vertices)

    def _in_rows(self, state: State) -> tuple[State, tuple[Row, ...]]:
        """The state with all units as one vertex each, and its rows."""
        bits = {vertex: self._bits[vertex] for vertex in sorted(state.sources)}
        least = {vertex: self._least[vertex] for vertex in bits}
        for unit in [*bits]:
            source, link = state.linked(self.algebra, unit)
            if source is not None and link == Link.FREE and self._were_one(bits[source], bits[unit]):
                state = state.joined(self.algebra, source, unit)
                bits[unit] |= bits.pop(source)
                least[unit] = max(least[unit], least.pop(source))
        rows, links = {unit: [unit] for unit in bits}, dict[int, Link]()
        for unit in bits:
            source, link = state.linked(self.algebra, unit)
            if source is None or link in (None, Link.FREE) or links.get(source, link) != link:
                continue
            if least[source] == least[unit] and self._were_in_row(bits[source], bits[unit]):
                rows[unit], links[unit] = [*rows.pop(source), unit], link
        return state, tuple(
            Row(tuple(row), tuple(bits[unit] for unit in row), least[unit]) for unit, row in rows.items()
        )

    def _were_one(self, first: int, second: int) -> bool:
        """Whether vertices may become one: what was one in the last search, or not part of it.

        So the sets that are gone say which units of smaller subgraphs are gone.
        """
        rows = self._last_rows(first | second)
        return not rows or any(unit & first and unit & second for row in rows for unit in row.bits)

    def _were_in_row(self, first: int, second: int) -> bool:
        """Whether units may be in a row: the same units of a row of the last search, or no part of it."""
        rows = self._last_rows(first | second)
        return not rows or {first, second} <= set(rows[0].bits)

    def _last_rows(self, bits: int) -> list[Row]:
        return [row for row in self._findings[-1].rows if row.all_bits & bits] if self._findings else []

    def _remaining(self, gone: int) -> int:
        """A lower bound on the cost of all vertices that are not gone."""
        for finding in reversed(self._findings):
            remaining = finding.remaining(gone)
            if remaining is not None:
                return remaining
        return 0
