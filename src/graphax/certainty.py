"""Known numbers that are certain in folded counting, which charges nothing for factors of plus or minus one.

During an elimination, a block between two vertices is a sum over the paths between them. If a single path of known
numbers connects them, the block holds the product of these numbers, unless it holds values. If there are several, their
sum may be plus or minus one, so bounds have to assume that it is free.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from .products import Product
from .structure import Structure
from .terms import AnyStructure, Terms, terms_of

# The coefficient of a known number that may be any other. Its products with known numbers are uncertain, too.
_ANY = 0.0


@lru_cache(1 << 14)
def uncertain(structure: AnyStructure) -> AnyStructure:
    """The structure with known numbers that may be any numbers."""
    if isinstance(structure, Terms):
        known = [replace(term, scale=_ANY) if term.scale is not None else term for term in structure.terms]
        return Terms(tuple(known))
    return structure if structure.scale is None else replace(structure, scale=_ANY)


def is_free(structure: Structure) -> bool:
    """Whether products with a known number may be free."""
    return structure.scale is not None and (structure.scale == _ANY or abs(structure.scale) == 1)


def least_multiplications(product: Product, left: Structure, right: Structure) -> int:
    """The multiplications that folded counting charges at least for a product of blocks that contain these two."""
    known = [block.scale for block in (left, right) if block.scale is not None]
    if not known:
        return product.raw_multiplications
    # A label that is summed multiplies the coefficient by its size, unless the other block has values along it.
    is_certain = len(known) == 1 and known[0] != _ANY and product.factor == known[0]
    return product.multiplications if is_certain else 0


def known_paths(edges: Iterable[tuple[int, int, AnyStructure]], count: int) -> np.ndarray:
    """[targets, sources]: the number of paths of known numbers between two vertices; 2 stands for several.

    ``edges`` are (target, source, structure), where vertices are numbers below ``count`` in the order of the graph.
    """
    paths = np.zeros((count, count), np.uint8)
    for target, source, edge in sorted(edges, key=lambda edge: edge[0]):
        if any(term.scale is not None for term in terms_of(edge)):
            # An edge of several terms is more than the known number in one of them.
            several = 1 if isinstance(edge, Structure) else 2
            paths[target] += several * paths[source]
            paths[target, source] += several
            np.minimum(paths[target], 2, out=paths[target])
    return paths
