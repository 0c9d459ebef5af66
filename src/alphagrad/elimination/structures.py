"""Structures as numbers, with their products and sums in one table for kernels, game and page.

Kernels request products and sums as they meet them, and distinguish structures by their known coefficients. The game
and the page need everything in advance, for every elimination order, where coefficients would lead to an unlimited
number of structures. In their tables a number stands for a structure whose coefficient is *some* known number, or for
one with values. The effect of a product or a sum on coefficients is the same for all of them. It is found by composing
and adding representatives with `graphax.structure`.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, lru_cache
from typing import NamedTuple

from graphax import ComputationGraph
from graphax.bundles import AnyEdge, add, compose
from graphax.structure import Structure

from ..errors import AlphagradError

MOST_STRUCTURES = 1 << 12
NO_EDGE = 0

# Not plus or minus one, and never made so by the size of an axis.
_OTHER_COEFFICIENT = 3.0

Members = frozenset[int]


class ProductEntry(NamedTuple):
    """The result of composing two structures.

    Attributes:
        result: the number of the structure; `NO_EDGE` if the product is zero everywhere.
        factor: the contribution of summation to the coefficient.
        multiplications: the number of folded multiplications.
        if_scaled: whether this number only applies if the coefficient of the product is not plus or minus one.
        raw_multiplications, additions: their numbers, independent of coefficients.
    """

    result: int = NO_EDGE
    factor: int = 0
    multiplications: int = 0
    if_scaled: bool = False
    raw_multiplications: int = 0
    additions: int = 0

    def counted(self, counting: str) -> int:
        return self.multiplications if counting == "folded" else self.raw_multiplications


class SumEntry(NamedTuple):
    """The result of adding two structures, for equal and for different coefficients.

    Attributes:
        equal, different: the number of the structure in either case.
        equal_additions, different_additions: the number of additions in either case.
        adds: whether the coefficient is the sum of both.
        keeps: whether the coefficient is kept if it is the same in both.
    """

    equal: int
    different: int
    equal_additions: int = 0
    different_additions: int = 0
    adds: bool = False
    keeps: bool = False


class StructureTable:
    """Structures by number, from 1 on, and their products and sums, each computed on first use.

    Args:
        coefficients: whether structures that differ in their known coefficient get separate numbers. Entries are for
            equal coefficients then.
        most_structures, most_entries: the maximum numbers of structures, and of products and sums. Beyond them an
            `AlphagradError` is raised.
    """

    def __init__(self, coefficients: bool, most_structures: float = math.inf, most_entries: float = math.inf):
        self._coefficients, self._most_structures, self._most_entries = coefficients, most_structures, most_entries
        self._structures: list[AnyEdge] = []
        self._numbers: dict[AnyEdge, int] = {}
        self.products: dict[tuple[int, int], ProductEntry] = {}
        self.sums: dict[tuple[int, int], SumEntry] = {}

    def __len__(self) -> int:
        """The number of numbers, including `NO_EDGE`."""
        return 1 + len(self._structures)

    def numbered(self, first: int = 1) -> Iterator[tuple[int, AnyEdge]]:
        """The structures from number ``first`` on, with their numbers."""
        return enumerate(self._structures[first - 1 :], start=first)

    def number(self, structure: AnyEdge) -> int:
        if not self._coefficients:
            structure = with_coefficient(structure, 1.0)
        number = self._numbers.get(structure)
        if number is None:
            number = len(self)
            if number >= self._most_structures:
                raise AlphagradError(
                    f"the edges of the graph can take on more than {self._most_structures} structures, "
                    f"too many for a table"
                )
            self._structures.append(structure)
            self._numbers[structure] = number
        return number

    def product(self, outer: int, inner: int) -> ProductEntry:
        if (outer, inner) not in self.products:
            self._check_entries()
            self.products[outer, inner] = self._composed(self._structures[outer - 1], self._structures[inner - 1])
        return self.products[outer, inner]

    def sum(self, left: int, right: int) -> SumEntry:
        if (left, right) not in self.sums:
            self._check_entries()
            self.sums[left, right] = self._added(self._structures[left - 1], self._structures[right - 1])
        return self.sums[left, right]

    def _composed(self, outer: AnyEdge, inner: AnyEdge) -> ProductEntry:
        product = compose(outer, inner)
        scaled = product if self._coefficients else compose(_scaled(outer), _scaled(inner))
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

    def _added(self, left: AnyEdge, right: AnyEdge) -> SumEntry:
        equal = add(left, right)
        computed = equal.structure.scale is None
        different = equal if computed or self._coefficients else add(left, _scaled(right))
        return SumEntry(
            self.number(equal.structure),
            self.number(different.structure),
            equal.additions,
            different.additions,
            adds=different.structure.scale is not None,
            keeps=not computed and different.structure.scale is None,
        )

    def _check_entries(self) -> None:
        if len(self.products) + len(self.sums) >= self._most_entries:
            raise AlphagradError(f"the structures of the graph have more than {self._most_entries:,} products and sums")


def with_coefficient(structure: AnyEdge, scale: float) -> AnyEdge:
    """The structure with this number as its coefficient, if its coefficient is known at all."""
    return (
        replace(structure, scale=scale)
        if isinstance(structure, Structure) and structure.scale is not None
        else structure
    )


def _scaled(structure: AnyEdge) -> AnyEdge:
    return with_coefficient(structure, _OTHER_COEFFICIENT)


@lru_cache(64)
def closed_table(graph: ComputationGraph, most_entries: float = math.inf) -> StructureTable:
    """All structures that the edges of a graph can take on, and the products and sums that can occur.

    Sources and targets are visited from the closest to the farthest, because paths between two vertices are joined from
    shorter ones.

    Raises:
        AlphagradError: if there are more structures than a table has room for, or more products and sums than allowed.
    """
    if graph.has_loops:
        raise AlphagradError("the graph has a loop, so the structures of its edges cannot be listed in advance")
    table = StructureTable(False, MOST_STRUCTURES, most_entries)

    # Most vertices have the same few sets.
    @cache
    def products(outer: Members, inner: Members) -> Members:
        results = {table.product(left, right).result for left in outer for right in inner}
        return frozenset(results - {NO_EDGE})

    @cache
    def closed(initial: int | None, fills: Members) -> Members:
        """The structures that an edge can take on by any number of additions."""
        found = set(fills) if initial is None else {initial, *fills}
        todo = list(found)
        while todo:
            existing = todo.pop()
            for fill in fills:
                entry = table.sum(existing, fill)
                new = {entry.equal, entry.different} - found
                found |= new
                todo.extend(new)
        return frozenset(found)

    numbers, eliminable = sorted(graph.vertices), set(graph.intermediates)
    reachable: dict[int, dict[int, Members]] = {}
    for place, target in enumerate(numbers):
        sources = reachable[target] = {}
        for source in reversed(numbers[:place]):
            between = [v for v in sources if v in eliminable and source in reachable[v]]
            fills: Members = frozenset().union(*(products(sources[v], reachable[v][source]) for v in between))
            initial = graph.edges.get((target, source))
            if initial is not None or fills:
                sources[source] = closed(None if initial is None else table.number(initial), fills)
    return table
