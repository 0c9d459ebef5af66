"""Costs of eliminations, counted without writing a plan.

Structures are numbered, and the cost of combining two of them is looked up by number. This takes a fifth of the time of
a plan, so presets and `graphax.refine` can compare many orders.
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

# The time to write and read a number again, in operations.
_MOVING = 4
# The number of a structure, and the operations that making it takes.
Priced = tuple[int, int]
# The structure number of a product that is zero everywhere.
_ZERO = -1
# The time to eliminate a vertex and to undo it, in lookups of products, besides the products of the vertex itself.
_ELIMINATION = 8
# The time to pass a loop, in lookups of products: a step has to be planned.
_PASSAGE = 100


class Prices:
    """The numbered structures that occur in a graph, and the costs of products and sums of two of them."""

    def __init__(self, graph: ComputationGraph):
        # Threads that plan equal graphs share prices.
        self._lock = Lock()
        self.structures: list[AnyEdge] = []
        self._numbers: dict[AnyEdge, int] = {}
        # By the number of the left operand, then by the number of the right operand.
        self.products: list[dict[int, Priced]] = []
        self.sums: list[dict[int, Priced]] = []
        self._raw: list[dict[int, int]] = []
        # By a vertex next to a loop and its edges.
        self.passages: dict[tuple[int, tuple[Edge, ...]], dict[Edge, Priced]] = {}
        # The number of all of these that are known so far.
        self.known = 0
        self.edges = [(target, source, self.number(edge)) for (target, source), edge in graph.edges.items()]
        self.vertices = tuple(graph.vertices)
        self.beside_loops = frozenset(vertex for edge in graph.loops for vertex in edge)

    @cached_property
    def lists(self) -> tuple[int, ...]:
        """The number of positions of each list in the graph."""
        terms = (term for _, _, number in self.edges for term in terms_in(self.structures[number]))
        return tuple(len(d.at) for term in terms for d in digits_of(term) if isinstance(d.at, Listed))

    def number(self, structure: AnyEdge) -> int:
        found = self._numbers.get(structure)
        return self._new_number(structure) if found is None else found

    def _new_number(self, structure: AnyEdge) -> int:
        with self._lock:
            if structure in self._numbers:
                return self._numbers[structure]
            # In this order an interruption leaves nothing inconsistent: surplus entries have no number.
            for empty in (self.products, self.sums, self._raw):
                empty.append({})
            self.structures.append(structure)
            number = self._numbers[structure] = len(self.structures) - 1
            return number

    def product(self, outer: int, inner: int) -> Priced:
        """The product of two structures. It is stored in ``products`` for later lookups."""
        made = compose(self.structures[outer], self.structures[inner])
        found = (_ZERO, 0) if made is None else (self.number(made.structure), operations(made))
        self.products[outer][inner] = found
        self.known += 1
        self._raw[outer][inner] = 0 if made is None else made.raw_multiplications
        return found

    def sum(self, left: int, right: int) -> Priced:
        """The sum of two structures. It is stored in ``sums`` for later lookups."""
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
    """The cost of an operation to an order: arithmetic, and the numbers that loops move."""
    counted = operation.multiplications + operation.additions
    if isinstance(operation, Pick) and operation.index == 0:
        counted += _MOVING * operation.passing.moved
    return counted


@lru_cache(16)
def prices_of(graph: ComputationGraph) -> Prices:
    """The prices of a graph, which all its orders share."""
    return Prices(graph)


class Tally:
    """A graph during elimination that only counts operations. Eliminations can be undone.

    ``predecessors`` holds the numbers of structures by target and source.
    """

    def __init__(self, prices: Prices):
        self._prices = prices
        self.predecessors: dict[int, dict[int, int]] = {v: {} for v in self._prices.vertices}
        self.successors: dict[int, set[int]] = {v: set() for v in self._prices.vertices}
        for target, source, structure in self._prices.edges:
            self.predecessors[target][source] = structure
            self.successors[source].add(target)
        # The number of products looked up so far, with eliminations converted to lookups.
        self.work = 0
        self._done: list[tuple[int, dict[int, int], dict[int, int], list[tuple[int, int, int | None]]]] = []

    def eliminate(self, vertex: int) -> int:
        """Connect every predecessor of ``vertex`` with every successor and remove it. Returns the operations."""
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
        """The products at a vertex next to a loop, which all pass through the loop together."""
        known = self._prices.structures
        before = {source: known[edge] for source, edge in self.predecessors[vertex].items()}
        after = {target: known[self.predecessors[target][vertex]] for target in self.successors[vertex]}
        return products_at(before, after)

    def rewind(self, count: int) -> None:
        """Undo the last ``count`` eliminations."""
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
        """The edges that the last ``count`` eliminations have changed or made and that still exist."""
        rows = self.predecessors
        edges = {(target, source) for *_, changes in self._done[-count:] for target, source, _ in changes}
        return {(t, s): rows[t][s] for t, s in edges if t in rows and s in rows[t]}

    def last_stored(self) -> tuple[int, int]:
        """The numbers by which edges grew in the last elimination, and those in the edges that it removed."""
        _, before, after, changes = self._done[-1]
        structures = self._prices.structures
        made = sum(structures[self.predecessors[target][source]].stored for target, source, _ in changes)
        replaced = sum(structures[old].stored for _, _, old in changes if old is not None)
        return made - replaced, sum(structures[number].stored for number in (*before.values(), *after.values()))

    @property
    def written(self) -> int:
        """The number of products and sums of all eliminations."""
        return sum(1 + (old is not None) for *_, changes in self._done for _, _, old in changes)

    def degree(self, vertex: int) -> int:
        """The raw multiplications of eliminating ``vertex`` now: its Markowitz degree."""
        if vertex in self._prices.beside_loops:
            return sum(product.raw_multiplications for product in self._together(vertex).values() if product)
        raw, before = self._prices.raw, self.predecessors[vertex].values()
        outers = [self.predecessors[target][vertex] for target in self.successors[vertex]]
        return sum(raw(outer, inner) for outer in outers for inner in before)


def counted(prices: Prices, vertices: Iterable[int], most: float = inf) -> float:
    """The operations of eliminating in this order, including moves of loops; infinite if more than ``most``."""
    tally, spent = Tally(prices), 0
    for vertex in vertices:
        spent += tally.eliminate(vertex)
        if spent > most:
            return inf
    return spent


def peak(prices: Prices, vertices: Iterable[int]) -> int:
    """The largest number of values held at any time of this order, like `Plan.peak`."""
    tally, structures = Tally(prices), prices.structures
    most = live = sum(structures[number].stored for _, _, number in prices.edges)
    for vertex in vertices:
        tally.eliminate(vertex)
        made, gone = tally.last_stored()
        most = max(most, live + made)
        live += made - gone
    return most
