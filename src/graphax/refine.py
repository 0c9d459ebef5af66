"""Better orders than the presets find, within a share of the time of the first call of a function.

Two methods pay off. Mixed orders (`graphax.mixed`) come first. Then sweeps walk along the best order, with everything
before the cursor eliminated. A sweep moves the vertex at the cursor after a neighbour, or a neighbour before it, if
that takes fewer operations.

Effort is counted in product lookups, never measured in seconds, so a function gets the same order on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import TYPE_CHECKING

from .compile_times import compiling_kernel, compiling_xla
from .mixed import mixed_orders
from .prices import Prices, Tally

if TYPE_CHECKING:
    from .graph import ComputationGraph

# The share of the estimated time of a first call that is spent on finding a better order.
SHARE = 0.12
# Seconds per vertex to trace, differentiate and write a program, and seconds to look up a product here.
_TRACED, _PRODUCT = 1e-3, 0.5e-6
# A new product or sum of structures takes as long as this many lookups; with lists, one more lookup per this many
# positions.
_STRUCTURE, _POSITIONS = 180, 8
# How far vertices are moved: most gains are near, where they are cheap to find.
_REACHES = (8, 32)
# After this share of all effort no further mixed order is tried.
_MIXED = 1 / 10


def refined(graph: ComputationGraph, prices: Prices, vertices: tuple[int, ...]) -> tuple[int, ...]:
    """An order that takes fewer operations than ``vertices``, or else the same order."""
    if len(vertices) < 2:
        return vertices
    tally = Tally(prices)
    operations = sum(map(tally.eliminate, vertices))
    effort = Effort(prices, tally, int(SHARE * first_call(graph, operations, tally.written) / _PRODUCT))
    tally.rewind(len(vertices))
    walk = _Walk(tally, effort, _cheapest_mixed(graph, tally, effort, vertices, operations))
    for reach in _REACHES:
        walk.descend(reach)
    return tuple(walk.order)


def first_call(graph: ComputationGraph, operations: int, written: int) -> float:
    """Estimated seconds of the first call of a function.

    The order has ``operations`` operations in ``written`` products and sums. Whether XLA or a kernel will run the
    program is not known here, so the shorter compile time counts.
    """
    elements = sum(prod(vertex.shape) for vertex in graph.vertices.values())
    elements += sum(edge.stored for edge in graph.edges.values())
    equations = len(graph.vertices) + len(graph.edges) + written
    compiling = min(compiling_xla(equations), compiling_kernel(elements + operations))
    return compiling + _TRACED * len(graph.vertices)


class Effort:
    """The effort spent since construction, and its limit."""

    def __init__(self, prices: Prices, tally: Tally, limit: int):
        self._prices, self._tally, self.limit = prices, tally, limit
        self._each = _STRUCTURE + max(prices.lists, default=0) // _POSITIONS
        self._start = self._worked

    @property
    def _worked(self) -> int:
        return self._tally.work + self._each * self._prices.known

    @property
    def taken(self) -> int:
        """The number of product lookups, with eliminations and new structures converted to lookups."""
        return self._worked - self._start

    @property
    def is_left(self) -> bool:
        return self.taken < self.limit


def _cheapest_mixed(
    graph: ComputationGraph, tally: Tally, effort: Effort, vertices: tuple[int, ...], least: int
) -> tuple[int, ...]:
    """The cheapest among an order and mixed orders."""
    best = vertices
    for order in mixed_orders(graph):
        count = spent = 0
        while count < len(order) and spent < least and effort.is_left:
            spent += tally.eliminate(order[count])
            count += 1
        tally.rewind(count)
        if count == len(order) and spent < least:
            best, least = order, spent
        if effort.taken > _MIXED * effort.limit:
            break
    return best


class _Walk:
    """An order on its way to a better one.

    Attributes:
        order, prices: the vertices, and the operations of eliminating each at its place.
    """

    def __init__(self, tally: Tally, effort: Effort, vertices: Sequence[int]):
        self._tally, self._effort = tally, effort
        self.order = list(vertices)
        self.prices = self._eliminated(vertices)
        self._tally.rewind(len(self.order))
        self._place = {vertex: place for place, vertex in enumerate(vertices)}
        self._open: set[int] = set()
        self._reach = 0

    def _eliminated(self, vertices: Iterable[int]) -> list[int]:
        return [self._tally.eliminate(vertex) for vertex in vertices]

    def descend(self, reach: int) -> None:
        """Move vertices by up to ``reach`` places as long as it pays off and there is effort left."""
        self._reach = reach
        # Vertices at which a move may pay off. Where none did, a vertex is skipped until something moves near it.
        self._open = set(self.order)
        while self._sweep():
            pass

    def _sweep(self) -> bool:
        """Walk along the order once. Returns whether anything was moved and there is effort left to go on."""
        moved = False
        for cursor in range(len(self.order)):
            while self.order[cursor] in self._open:
                if not self._effort.is_left:
                    self._tally.rewind(cursor)
                    return False
                if self._improve(cursor):
                    moved = True
                else:
                    self._open.remove(self.order[cursor])
            self._tally.eliminate(self.order[cursor])
        self._tally.rewind(len(self.order))
        return moved

    def _improve(self, cursor: int) -> bool:
        """Make a move at the cursor that pays off. Returns whether there is one."""
        places = self._connected(cursor)
        if not places:
            return False
        if self._push(cursor, places):
            return True
        vertex, near = self.order[cursor], set(places)
        beside = (*self._tally.predecessors[vertex], *self._tally.successors[vertex])
        ends = sorted(near.intersection(self._place.get(neighbour, -1) for neighbour in beside))
        return any(self._pull(cursor, [place for place in places if place <= end]) for end in ends)

    def _connected(self, cursor: int) -> list[int]:
        """The places within reach after the cursor that are connected with it through others within reach.

        Eliminations of vertices that share no edge commute, so other places need not be considered.
        """
        predecessors, successors, place = self._tally.predecessors, self._tally.successors, self._place
        end = cursor + self._reach
        todo, found = [self.order[cursor]], {cursor}
        while todo:
            vertex = todo.pop()
            for neighbour in (*predecessors[vertex], *successors[vertex]):
                at = place.get(neighbour, -1)
                if cursor < at <= end and at not in found:
                    found.add(at)
                    todo.append(neighbour)
        found.remove(cursor)
        return sorted(found)

    def _push(self, cursor: int, places: list[int]) -> bool:
        """Move the vertex at the cursor to the cheapest place after a neighbour, if that pays off."""
        tally, vertex = self._tally, self.order[cursor]
        spent, before, least = 0, self.prices[cursor], 0
        passed = best = 0
        for place in places:
            other = self.order[place]
            is_beside = other in tally.successors[vertex] or vertex in tally.successors[other]
            spent += tally.eliminate(other)
            before += self.prices[place]
            passed += 1
            if spent > before:
                break
            if is_beside:
                change = spent + tally.eliminate(vertex) - before
                self._tally.rewind(1)
                if change < least:
                    best, least = passed, change
        self._tally.rewind(passed)
        return best > 0 and self._move(cursor, places[best - 1])

    def _pull(self, cursor: int, places: list[int]) -> bool:
        """Move the vertex at the last of the places to the cursor, if that pays off."""
        before = self.prices[cursor] + sum(self.prices[place] for place in places)
        spent = passed = 0
        for place in (places[-1], cursor, *places[:-1]):
            spent += self._tally.eliminate(self.order[place])
            passed += 1
            if spent >= before:
                break
        self._tally.rewind(passed)
        return spent < before and self._move(places[-1], cursor)

    def _move(self, start: int, end: int) -> bool:
        """Move a vertex from one place to another, if the whole order improves. Returns whether it was moved."""
        first, last = min(start, end), max(start, end)
        old = self.order[first : last + 1]
        new = old.copy()
        new.insert(end - first, new.pop(start - first))
        prices = self._eliminated(new)
        left = self._tally.changed(len(new))
        self._tally.rewind(len(new))
        self._eliminated(old)
        is_same = left == self._tally.changed(len(old))
        self._tally.rewind(len(old))
        if not is_same:
            # If blocks differ from here on, later eliminations may cost something else.
            new += self.order[last + 1 :]
            prices = self._eliminated(new)
            self._tally.rewind(len(new))
        behind = first + len(new)
        if sum(prices) >= sum(self.prices[first:behind]):
            return False
        self.order[first:behind], self.prices[first:behind] = new, prices
        self._place.update((vertex, first + n) for n, vertex in enumerate(new))
        self._open.update(self.order[max(0, first - self._reach) : last + 1])
        return True
