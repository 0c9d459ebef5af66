"""Blocks that are contained in others: what remains of the blocks of a graph if some of its vertices are left out.

A block is **contained** in another if it has no other entries, its values vary along no other labels, and it is known
wherever the other is. Products keep this: if both factors are contained in others, so is the product, and it takes no
more multiplications. The sum of two blocks is contained in every block that contains both, provided that such a block
is one term. Otherwise one of the summands stands for the sum. A block that consists of several terms contains what one
of its terms contains.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from enum import Enum
from math import prod
from typing import TYPE_CHECKING

from . import products, sums, terms
from .bundles import AnyEdge, Bundle, Passage
from .certainty import is_free, known_paths, least_multiplications, uncertain
from .structure import Structure, digits_of
from .terms import AnyStructure, priced_kind, terms_of

if TYPE_CHECKING:
    from .graph import ComputationGraph
    from .plan import Edge

# The number of a product that is zero everywhere, or that is left out.
NOTHING = -1


class Link(Enum):
    """Blocks that take no multiplications, and blocks that may take one per entry: equal numbers, or different ones."""

    FREE, KNOWN, VALUES = range(3)


class Algebra:
    """Numbered structures, their products and sums, and the multiplications that products take."""

    def __init__(self, graph: ComputationGraph, counting: str):
        self._folded = counting == "folded"
        places = self._places = {vertex: place for place, vertex in enumerate(sorted(graph.vertices))}
        edges = [(places[target], places[source], _plain(edge)) for (target, source), edge in graph.edges.items()]
        self._known_paths = known_paths(edges, len(places))
        self._structures: list[Structure] = []
        self._numbers: dict[Structure, int] = {}
        self._products: dict[tuple[int, int], tuple[int, int]] = {}
        self._sums: dict[tuple[int, int], int] = {}
        self._merges = not _may_make_lists(graph)

    def number(self, structure: Structure) -> int:
        kind = priced_kind(structure, self._folded)
        assert isinstance(kind, Structure)
        if kind not in self._numbers:
            self._numbers[kind] = len(self._structures)
            self._structures.append(kind)
        return self._numbers[kind]

    def between(self, target: int, source: int, block: int) -> int:
        """A block between two vertices. Its known numbers are uncertain if there are several paths of them."""
        if not self._folded or self._known_paths[self._places[target], self._places[source]] < 2:
            return block
        kind = uncertain(self._structures[block])
        assert isinstance(kind, Structure)
        return self.number(kind)

    def product(self, outer: int, inner: int) -> tuple[int, int]:
        """The product of two structures, and the multiplications that it takes at least."""
        if (outer, inner) not in self._products:
            self._products[outer, inner] = self._product(self._structures[outer], self._structures[inner])
        return self._products[outer, inner]

    def _product(self, outer: Structure, inner: Structure) -> tuple[int, int]:
        made = products.compose(outer, inner)
        # If the product has entries that its factors do not imply, other ways of bracketing may avoid them.
        if made is None or made.free or has_lists(made.structure):
            return NOTHING, 0
        least = least_multiplications(made, outer, inner) if self._folded else made.raw_multiplications
        return self.number(made.structure), least

    def link(self, block: int) -> Link | None:
        """How a block links two vertices in a row.

        None if it does not have exactly one entry per row and column, or if folded counting charges for its number.
        """
        structure = self._structures[block]
        if not _is_permutation(structure):
            return None
        if structure.scale is not None:
            if self._folded:
                return Link.FREE if is_free(structure) else None
            return Link.FREE if structure.renaming else Link.KNOWN
        return Link.VALUES if structure.stored == prod(structure.sizes) else None

    def moved(self, target: int, source: int, block: int, link: int) -> int:
        """``block`` after ``link``, where ``link`` counts as moving numbers only; nothing if that is uncertain."""
        mover = replace(self._structures[link], values=(), scale=1.0, renaming=True)
        moved = self.product(self.number(mover), block)[0]
        return moved if moved == NOTHING else self.between(target, source, moved)

    def sum(self, left: int, right: int) -> int:
        """A structure contained in every block that contains both."""
        if left == right:
            return left
        if (left, right) not in self._sums:
            self._sums[left, right] = self._sum(self._structures[left], self._structures[right])
        return self._sums[left, right]

    def _sum(self, left: Structure, right: Structure) -> int:
        entries = prod(left.out_shape) * prod(left.inp_shape)
        both_known = left.scale is not None and right.scale is not None
        whole = sums.hull(left, right)
        # Blocks of few entries are always one term. Known numbers may add up to known numbers together with others.
        if self._merges and entries < terms.WORTH_KEEPING_APART and not (both_known and whole.scale is None):
            return self.number(whole)
        return self.number(max(left, right, key=lambda block: (block.stored, prod(block.sizes))))


def _is_permutation(block: Structure) -> bool:
    """Whether every row and every column of a block has exactly one entry."""
    for axes in (block.out, block.inp):
        digits = [digit for axis in axes for digit in axis]
        if sorted(-1 if digit.label is None else digit.label for digit in digits) != list(range(len(block.sizes))):
            return False
        if any(len(digit.at) < digit.size for digit in digits):
            return False
    return True


def has_lists(edge: AnyEdge) -> bool:
    """Whether an edge has positions that are not a progression, or is not a plain block."""
    if isinstance(edge, (Bundle, Passage)):
        return True
    return not all(isinstance(digit.at, range) for term in terms_of(edge) for digit in digits_of(term))


def _may_make_lists(graph: ComputationGraph) -> bool:
    """Whether an elimination may write a block with lists. A block might not be merged with lists that it is added to.

    Axes of several digits are split where they meet others. Lists arise if such an axis meets a window, and in large
    products if it cannot be split.
    """
    several = {edge for edge, block in graph.edges.items() if _has_several_digits(block)}
    if not several and not any(_repeats_labels(block) for block in graph.edges.values()):
        return False
    largest = max(prod(vertex.shape) for vertex in graph.vertices.values())
    windows = {edge for edge, block in graph.edges.items() if _has_windows(block)}
    return largest**2 >= products.LARGE or bool(_between(graph, several) & _between(graph, windows))


def _between(graph: ComputationGraph, edges: Iterable[Edge]) -> set[Edge]:
    """The pairs of an output and an input that are connected through one of the edges."""
    inputs: dict[int, set[int]] = {vertex: {vertex} for vertex in graph.inputs}
    outputs: dict[int, set[int]] = {vertex: {vertex} for vertex in graph.outputs if vertex is not None}
    for target, source in sorted(graph.edges):
        inputs.setdefault(target, set()).update(inputs.get(source, ()))
    for target, source in sorted(graph.edges, key=lambda edge: -edge[1]):
        outputs.setdefault(source, set()).update(outputs.get(target, ()))
    return {
        (last, first)
        for target, source in edges
        for last in outputs.get(target, ())
        for first in inputs.get(source, ())
    }


def _has_several_digits(edge: AnyEdge) -> bool:
    return any(len(axis) > 1 for term in terms_of(_plain(edge)) for axis in (*term.out, *term.inp))


def _has_windows(edge: AnyEdge) -> bool:
    return any(digit.at != range(digit.size) for term in terms_of(_plain(edge)) for digit in digits_of(term))


def _repeats_labels(edge: AnyEdge) -> bool:
    sides = (side for term in terms_of(_plain(edge)) for side in (term.out, term.inp))
    found = ([digit.label for axis in side for digit in axis if digit.label is not None] for side in sides)
    return any(len(set(labels)) < len(labels) for labels in found)


def _plain(edge: AnyEdge) -> AnyStructure:
    assert not isinstance(edge, (Bundle, Passage))
    return edge
