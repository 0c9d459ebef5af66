"""Structures as numbers for the page, and the table by which it eliminates vertices itself.

On the page an edge is a pair: the number of its structure without the known coefficient, and that coefficient, or none
where there are values. What products and sums do to both is in a `alphagrad.closure.Closure`.
"""

from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from graphax import ComputationGraph, Structure

from ..elimination.closure import Closure
from ..errors import AlphagradError

# Tables beyond this size take long to find and to load; the page then shows the given orders only.
MOST_ENTRIES = 20_000
# How the coefficient of a sum comes from those of the summands, if both are known.
NEW_VALUES, ADDS, KEEPS = 0, 1, 2


class Catalogue:
    """Structures by number, whatever their known coefficients; numbers are given as structures are met."""

    def __init__(self) -> None:
        self.structures: list[Structure] = []
        self._numbers: dict[Structure, int] = {}

    def number(self, structure: Structure) -> int:
        if structure.scale not in (None, 1.0):
            structure = replace(structure, scale=1.0)
        if structure not in self._numbers:
            self._numbers[structure] = len(self.structures)
            self.structures.append(structure)
        return self._numbers[structure]

    def described(self) -> list[list[Any]]:
        """For each structure: the name of its values, if it has any, its labels, and how many numbers it holds."""
        rows: list[list[Any]] = []
        for structure in self.structures:
            values, bracket, labels = str(structure).partition("[")
            rows.append([values if structure.scale is None else None, bracket + labels, structure.stored])
        return rows


@dataclass(frozen=True)
class Algebra:
    """All products and sums that can occur in a graph, or why there is no such table.

    Attributes:
        products: rows of outer and inner structure, the result or -1 for zero, the factor that summation contributes,
            multiplications, whether those are free if the coefficient is plus or minus one, additions.
        sums: rows of two structures, the result if coefficients are equal and if not, additions in either case, and how
            the coefficient comes about.
    """

    products: tuple[tuple[int, ...], ...] = ()
    sums: tuple[tuple[int, ...], ...] = ()
    unavailable: str = ""

    def as_data(self) -> dict[str, Any]:
        if self.unavailable:
            return {"unavailable": self.unavailable}
        return {"products": self.products, "sums": self.sums}


def algebra_of(graph: ComputationGraph, counting: str, catalogue: Catalogue) -> Algebra:
    """The table of a graph; its structures are added to the catalogue."""
    if not all(s.scale is None or isfinite(s.scale) for s in graph.edges.values()):
        return Algebra(unavailable="a coefficient of the graph is infinite or no number")
    try:
        closure = Closure(graph, MOST_ENTRIES)
    except AlphagradError as error:
        return Algebra(unavailable=str(error))
    numbers = [-1, *(catalogue.number(s) for s in closure.structures if s is not None)]
    products = []
    for (outer, inner), entry in closure.products.items():
        folded = counting == "folded"
        multiplications = entry.multiplications if folded else entry.raw_multiplications
        products.append(
            (numbers[outer], numbers[inner], numbers[entry.result], entry.factor, multiplications,
             int(folded and entry.if_scaled), entry.additions)
        )  # fmt: skip
    sums = [
        (numbers[left], numbers[right], numbers[entry.equal], numbers[entry.different], entry.equal_additions,
         entry.different_additions, ADDS if entry.adds else KEEPS if entry.keeps else NEW_VALUES)
        for (left, right), entry in closure.sums.items()
    ]  # fmt: skip
    return Algebra(tuple(products), tuple(sums))
