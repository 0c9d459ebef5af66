"""What eliminations cost, counted without writing a plan.

Structures are numbered, and what two of them cost together is looked up by their numbers. That takes a fifth of the
time that a plan takes, so presets and `graphax.refine` can compare many orders.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, lru_cache
from math import inf
from threading import Lock
from typing import TYPE_CHECKING

from .bundles import AnyEdge, Operation, Pick, ProductOperation, add, compose, terms_in
from .plan import Edge, products_at
from .positions import Listed
from .structure import digits_of

if TYPE_CHECKING:
    from .graph import ComputationGraph

# A number that is written and read again takes as long as so many operations.
_MOVING = 4
# The number of a structure, and the operations that making it takes.
Priced = tuple[int, int]
# What a product has for the number of its structure if it is zero everywhere.
_ZERO = -1
# To eliminate a vertex and to take that back takes as long as to look up so many products, besides its own.
_ELIMINATION = 8
# To pass a loop takes as long as so many products: there is a step to plan.
_PASSAGE = 100


class Prices:
    """The structures that come up in a graph, numbered, and what products and sums of two of them cost."""

    def __init__(self, graph: ComputationGraph):
        # Threads that plan equal graphs share prices.
        self._lock = Lock()
        self.structures: list[AnyEdge] = []
        self._numbers: dict[AnyEdge, int] = {}
        # By the number of the left operand, then by that of the right one.
        self.products: list[dict[int, Priced]] = []
        self.sums: list[dict[int, Priced]] = []
        self._raw: list[dict[int, int]] = []
        # By a vertex beside a loop, and its edges.
        self.passages: dict[tuple[int, tuple[Edge, ...]], dict[Edge, Priced]] = {}
        # How many of all of these are known so far.
        self.known = 0
        self.edges = [(target, source, self.number(edge)) for (target, source), edge in graph.edges.items()]
        self.vertices = tuple(graph.vertices)
        self.beside_loops = frozenset(vertex for edge in graph.loops for vertex in edge)

    @cached_property
    def lists(self) -> tuple[int, ...]:
        """How many positions each list of the graph has."""
        terms = (term for _, _, number in self.edges for term in terms_in(self.structures[number]))
        return tuple(len(d.at) for term in terms for d in digits_of(term) if isinstance(d.at, Listed))

    def number(self, structure: AnyEdge) -> int:
        found = self._numbers.get(structure)
        return self._new_number(structure) if found is None else found

    def _new_number(self, structure: AnyEdge) -> int:
        with self._lock:
            if structure in self._numbers:
                return self._numbers[structure]
            # In this order nothing is out of step if it is interrupted: what is too long has no number.
            for empty in (self.products, self.sums, self._raw):
                empty.append({})
            self.structures.append(structure)
            number = self._numbers[structure] = len(self.structures) - 1
            return number

    def product(self, outer: int, inner: int) -> Priced:
        """The product of two structures, which is looked up in ``products`` from now on."""
        made = compose(self.structures[outer], self.structures[inner])
        found = (_ZERO, 0) if made is None else (self.number(made.structure), operations(made))
        self.products[outer][inner] = found
        self.known += 1
        self._raw[outer][inner] = 0 if made is None else made.raw_multiplications
        return found

    def sum(self, left: int, right: int) -> Priced:
        """The sum of two structures, which is looked up in ``sums`` from now on."""
        made = add(self.structures[left], self.structures[right])
        found = self.sums[left][right] = (self.number(made.structure), operations(made))
        self.known += 1
        return found

    def raw(self, outer: int, inner: int) -> int:
        """The raw multiplications of a product."""
        if inner not in self._raw[outer]:
            self.product(outer, inner)
        return self._raw[outer][inner]


def operations(operation: Operation) -> int:
    """What an operation counts for an order: arithmetic, and what loops move."""
    counted = operation.multiplications + operation.additions
    if isinstance(operation, Pick) and operation.index == 0:
        counted += _MOVING * operation.passing.moved
    return counted


@lru_cache(16)
def prices_of(graph: ComputationGraph) -> Prices:
    """The prices of a graph; all orders of it share them."""
    return Prices(graph)


class Tally:
    """A graph on its way to becoming bipartite, of which only the operations are counted. Eliminations can be undone.

    ``predecessors`` are the numbers of structures by target and source.
    """

    def __init__(self, prices: Prices):
        self._prices = prices
        self.predecessors: dict[int, dict[int, int]] = {v: {} for v in self._prices.vertices}
        self.successors: dict[int, set[int]] = {v: set() for v in self._prices.vertices}
        for target, source, structure in self._prices.edges:
            self.predecessors[target][source] = structure
            self.successors[source].add(target)
        # Products that were looked up so far, and eliminations in terms of them.
        self.work = 0
        self._done: list[tuple[int, dict[int, int], dict[int, int], list[tuple[int, int, int | None]]]] = []

    def eliminate(self, vertex: int) -> int:
        """Connect every predecessor of ``vertex`` with every successor and remove it; the operations of that."""
        predecessors, successors, prices = self.predecessors, self.successors, self._prices
        passed = self._passed(vertex) if vertex in prices.beside_loops else None
        before = predecessors.pop(vertex)
        after = {target: predecessors[target].pop(vertex) for target in successors.pop(vertex)}
        for source in before:
            successors[source].remove(vertex)
        self.work += _ELIMINATION + len(before) * len(after)
        changes: list[tuple[int, int, int | None]] = []
        spent = 0
        for target, outer in after.items():
            row, products = predecessors[target], prices.products[outer]
            for source, inner in before.items():
                if passed is None:
                    new, price = products.get(inner) or prices.product(outer, inner)
                else:
                    new, price = passed[target, source]
                if new == _ZERO:
                    continue
                spent += price
                old = row.get(source)
                if old is None:
                    successors[source].add(target)
                else:
                    new, price = prices.sums[old].get(new) or prices.sum(old, new)
                    spent += price
                row[source] = new
                changes.append((target, source, old))
        self._done.append((vertex, before, after, changes))
        return spent

    def _passed(self, vertex: int) -> dict[Edge, Priced]:
        entering, leaving = self.predecessors[vertex].items(), self.successors[vertex]
        edges = (*sorted(entering), *sorted((target, self.predecessors[target][vertex]) for target in leaving))
        passages, number = self._prices.passages, self._prices.number
        if (vertex, edges) not in passages:
            made = self._together(vertex).items()
            priced = {edge: (number(p.structure), operations(p)) if p else (_ZERO, 0) for edge, p in made}
            passages[vertex, edges] = priced
            self._prices.known += _PASSAGE
        return passages[vertex, edges]

    def _together(self, vertex: int) -> dict[Edge, ProductOperation | None]:
        """The products at a vertex beside a loop: all of them pass through it in one go."""
        known = self._prices.structures
        before = {source: known[edge] for source, edge in self.predecessors[vertex].items()}
        after = {target: known[self.predecessors[target][vertex]] for target in self.successors[vertex]}
        return products_at(before, after)

    def rewind(self, count: int) -> None:
        """Take back the last few eliminations."""
        for _ in range(count):
            self._undo()

    def _undo(self) -> None:
        vertex, before, after, changes = self._done.pop()
        for target, source, old in changes:
            if old is None:
                del self.predecessors[target][source]
                self.successors[source].remove(target)
            else:
                self.predecessors[target][source] = old
        for target, outer in after.items():
            self.predecessors[target][vertex] = outer
        for source in before:
            self.successors[source].add(vertex)
        self.predecessors[vertex], self.successors[vertex] = before, set(after)

    def changed(self, count: int) -> dict[Edge, int]:
        """The edges that the last few eliminations have changed or made, as far as they are still there."""
        rows = self.predecessors
        edges = {(target, source) for *_, changes in self._done[-count:] for target, source, _ in changes}
        return {(t, s): rows[t][s] for t, s in edges if t in rows and s in rows[t]}

    def last_stored(self) -> tuple[int, int]:
        """By how many numbers the last elimination made edges grow, and how many are in those that it removed."""
        _, before, after, changes = self._done[-1]
        structures = self._prices.structures
        made = sum(structures[self.predecessors[target][source]].stored for target, source, _ in changes)
        replaced = sum(structures[old].stored for _, _, old in changes if old is not None)
        return made - replaced, sum(structures[number].stored for number in (*before.values(), *after.values()))

    @property
    def written(self) -> int:
        """How many products and sums all eliminations have taken."""
        return sum(1 + (old is not None) for *_, changes in self._done for _, _, old in changes)

    def degree(self, vertex: int) -> int:
        """The raw multiplications that eliminating ``vertex`` now would take: its Markowitz degree."""
        if vertex in self._prices.beside_loops:
            return sum(product.raw_multiplications for product in self._together(vertex).values() if product)
        raw, before = self._prices.raw, self.predecessors[vertex].values()
        outers = [self.predecessors[target][vertex] for target in self.successors[vertex]]
        return sum(raw(outer, inner) for outer in outers for inner in before)


def counted(prices: Prices, vertices: Iterable[int], most: float = inf) -> float:
    """The operations that eliminating in this order takes, with what loops move; infinite if more than ``most``."""
    tally, spent = Tally(prices), 0
    for vertex in vertices:
        spent += tally.eliminate(vertex)
        if spent > most:
            return inf
    return spent


def peak(prices: Prices, vertices: Iterable[int]) -> int:
    """The most numbers held at any time of eliminating in this order, like `Plan.peak`."""
    tally, structures = Tally(prices), prices.structures
    most = live = sum(structures[number].stored for _, _, number in prices.edges)
    for vertex in vertices:
        tally.eliminate(vertex)
        made, gone = tally.last_stored()
        most = max(most, live + made)
        live += made - gone
    return most
