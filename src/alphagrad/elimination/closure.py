"""All structures that the edges of a graph can take on, in whatever order its vertices are eliminated.

Known coefficients are left out, because they would make endlessly many structures: a number stands for a structure
whose coefficient is *some* known number, or for one with values. What a product or a sum does to coefficients is the
same for all of them and is found by asking `graphax.structure` about representatives.
"""

from dataclasses import replace
from functools import cache, lru_cache
from typing import NamedTuple

from graphax import ComputationGraph, Structure
from graphax.structure import add, compose

from ..errors import AlphagradError

MOST_STRUCTURES = 1 << 12
NO_EDGE = 0

# Not plus or minus one, and not made so by any size of an axis.
_OTHER_COEFFICIENT = 3.0

Members = frozenset[int]


class ProductEntry(NamedTuple):
    """What composing two structures gives.

    Attributes:
        result: number of the structure; `NO_EDGE` if the product is zero everywhere.
        factor: what summation contributes to the coefficient.
        multiplications: how many there are, folded.
        if_scaled: whether that is only so if the coefficient of the product is not plus or minus one.
        raw_multiplications, additions: how many there are, whatever the coefficients.
    """

    result: int = NO_EDGE
    factor: int = 0
    multiplications: int = 0
    if_scaled: bool = False
    raw_multiplications: int = 0
    additions: int = 0


class SumEntry(NamedTuple):
    """What adding two structures gives, for equal and for different coefficients.

    Attributes:
        equal, different: number of the structure in either case.
        equal_additions, different_additions: how many there are.
        adds: whether the coefficient is the sum of both.
        keeps: whether the coefficient, if it is the same in both, stays.
    """

    equal: int
    different: int
    equal_additions: int = 0
    different_additions: int = 0
    adds: bool = False
    keeps: bool = False


class Closure:
    """Structures by number, and the products and sums that can occur.

    Raises:
        AlphagradError: if there are more structures than a table has room for, or more products and sums than wanted.
    """

    def __init__(self, graph: ComputationGraph, most_entries: int | None = None):
        self._most_entries = most_entries
        self.structures: list[Structure | None] = [None]
        self._numbers: dict[Structure, int] = {}
        self.products: dict[tuple[int, int], ProductEntry] = {}
        self.sums: dict[tuple[int, int], SumEntry] = {}
        self._explore(graph)

    def number(self, structure: Structure) -> int:
        """The number of a structure, whatever its known coefficient."""
        if structure.scale not in (None, 1.0):
            structure = replace(structure, scale=1.0)
        if structure not in self._numbers:
            if len(self.structures) == MOST_STRUCTURES:
                raise AlphagradError(
                    f"the edges of the graph can take on more than {MOST_STRUCTURES} structures, too many for a table"
                )
            self._numbers[structure] = len(self.structures)
            self.structures.append(structure)
        return self._numbers[structure]

    def _explore(self, graph: ComputationGraph) -> None:
        """Sources and targets from the closest to the farthest: paths between two vertices are shorter ones, joined."""
        # Most vertices see the same few sets.
        products_of, closed = cache(self._products), cache(self._closed)
        numbers, eliminable = sorted(graph.vertices), set(graph.intermediates)
        reachable: dict[int, dict[int, Members]] = {}
        for place, target in enumerate(numbers):
            sources = reachable[target] = {}
            for source in reversed(numbers[:place]):
                between = [v for v in sources if v in eliminable and source in reachable[v]]
                fills: Members = frozenset().union(*(products_of(sources[v], reachable[v][source]) for v in between))
                initial = graph.edges.get((target, source))
                if initial is not None or fills:
                    sources[source] = closed(None if initial is None else self.number(initial), fills)

    def _products(self, outer: Members, inner: Members) -> Members:
        results = {self._product(left, right).result for left in outer for right in inner}
        return frozenset(results - {NO_EDGE})

    def _closed(self, initial: int | None, fills: Members) -> Members:
        """What an edge can become by any number of additions."""
        members = set(fills) if initial is None else {initial, *fills}
        todo = list(members)
        while todo:
            existing = todo.pop()
            for fill in fills:
                entry = self._sum(existing, fill)
                new = {entry.equal, entry.different} - members
                members |= new
                todo.extend(new)
        return frozenset(members)

    def _product(self, left: int, right: int) -> ProductEntry:
        if (left, right) not in self.products:
            self._check_entries()
            self.products[left, right] = self._composed(self._structure(left), self._structure(right))
        return self.products[left, right]

    def _composed(self, left: Structure, right: Structure) -> ProductEntry:
        product = compose(left, right)
        scaled = compose(with_coefficient(left, _OTHER_COEFFICIENT), with_coefficient(right, _OTHER_COEFFICIENT))
        if product is None or scaled is None:
            return ProductEntry()
        return ProductEntry(
            self.number(product.structure),
            int(product.factor),
            scaled.multiplications,
            scaled.factor != product.factor,
            product.raw_multiplications,
            product.additions,
        )

    def _sum(self, left: int, right: int) -> SumEntry:
        if (left, right) not in self.sums:
            self._check_entries()
            self.sums[left, right] = self._added(self._structure(left), self._structure(right))
        return self.sums[left, right]

    def _added(self, left: Structure, right: Structure) -> SumEntry:
        equal = add(left, right)
        if equal.structure.scale is None:
            number = self.number(equal.structure)
            return SumEntry(number, number, equal.additions, equal.additions)
        different = add(left, with_coefficient(right, _OTHER_COEFFICIENT))
        return SumEntry(
            self.number(equal.structure),
            self.number(different.structure),
            equal.additions,
            different.additions,
            adds=different.structure.scale is not None,
            keeps=different.structure.scale is None,
        )

    def _check_entries(self) -> None:
        if self._most_entries is not None and len(self.products) + len(self.sums) >= self._most_entries:
            raise AlphagradError(f"the structures of the graph have more than {self._most_entries:,} products and sums")

    def _structure(self, number: int) -> Structure:
        structure = self.structures[number]
        assert structure is not None
        return structure


def with_coefficient(structure: Structure, scale: float) -> Structure:
    """The structure with this number as its coefficient, if that is known at all."""
    return structure if structure.scale is None else replace(structure, scale=scale)


@lru_cache(64)
def closure_of(graph: ComputationGraph) -> Closure:
    return Closure(graph)
