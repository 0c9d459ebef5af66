"""The table with which the page itself eliminates vertices.

On the page an edge is a pair: the number of its structure without the known coefficient, and that coefficient, or none
if there are values. A `StructureTable` holds the effects of products and sums on both.
"""

from math import isfinite
from typing import Any

from graphax import ComputationGraph

from ..elimination.structures import StructureTable, closed_table
from ..errors import AlphagradError

# Larger tables take long to find and to load, so the page then shows only the given orders.
MOST_ENTRIES = 20_000
# How the coefficient of a sum follows from those of the summands, if both are known.
NEW_VALUES, ADDS, KEEPS = 0, 1, 2


def described(structures: StructureTable) -> list[list[Any]]:
    """Per structure, the name of its values, if any, its labels, and the number of values that it stores."""
    rows: list[list[Any]] = []
    for _, structure in structures.numbered():
        values, bracket, labels = str(structure).partition("[")
        rows.append([values if structure.scale is None else None, bracket + labels, structure.stored])
    return rows


def algebra_of(graph: ComputationGraph, counting: str, structures: StructureTable) -> dict[str, Any]:
    """All products and sums that can occur in a graph, or the reason why they are ``unavailable``.

    Numbers are those of the page's ``structures``, counted from 0. Structures of the graph are added to them.

    Returns:
        products: rows of outer and inner structure, the result or -1 for zero, the factor that summation contributes,
            multiplications, whether those are free if the coefficient is plus or minus one, and additions.
        sums: rows of two structures, the results for equal and for different coefficients, additions in either case,
            and how the coefficient is computed.
    """
    if not all(s.scale is None or isfinite(s.scale) for s in graph.edges.values()):
        return {"unavailable": "a coefficient of the graph is infinite or not a number"}
    try:
        table = closed_table(graph, MOST_ENTRIES)
    except AlphagradError as error:
        return {"unavailable": str(error)}
    numbers = [-1, *(structures.number(structure) - 1 for _, structure in table.numbered())]
    products = [
        (numbers[outer], numbers[inner], numbers[entry.result], entry.factor, entry.counted(counting),
         int(counting == "folded" and entry.if_scaled), entry.additions)
        for (outer, inner), entry in table.products.items()
    ]  # fmt: skip
    sums = [
        (numbers[left], numbers[right], numbers[entry.equal], numbers[entry.different], entry.equal_additions,
         entry.different_additions, ADDS if entry.adds else KEEPS if entry.keeps else NEW_VALUES)
        for (left, right), entry in table.sums.items()
    ]  # fmt: skip
    return {"products": products, "sums": sums}
