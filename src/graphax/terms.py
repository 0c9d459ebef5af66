"""Sums of structures, for edges where a single einsum term would be mostly zeros.

A shifted diagonal is one structure, and so is a row or a corner. Their sum is not: the smallest structure that holds a
diagonal and its neighbour is dense. So a sum stays a sum, a list of **terms**, wherever a single structure would store
more than the terms do. Products distribute over terms. A `Recipe` says which terms to multiply and which results to
add.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, reduce
from math import prod
from typing import ClassVar

import numpy as np

from . import products, structure as structures, sums
from .products import Product
from .structure import Structure
from .sums import Sum, Union

_CACHE = 1 << 14
# Terms that one structure could hold stay apart only if that saves this many numbers: small arrays are faster whole.
WORTH_KEEPING_APART = 512
# Edges with more terms than this become one structure.
MOST_TERMS = 48
# Long lists are merged only if at least this fraction of the shorter list is in the other. Otherwise merging would save
# nothing, and values would have to be moved.
_COINCIDING = 1 / 8


@dataclass(frozen=True, eq=False)
class Terms:
    """A sum of structures that are kept apart because merging any two of them would store more."""

    terms: tuple[Structure, ...]
    _hash: int = field(init=False, repr=False)
    # A sum of terms has no coefficient of its own.
    scale: ClassVar[None] = None

    def __post_init__(self):
        object.__setattr__(self, "_hash", hash(self.terms))

    def __reduce__(self):
        return Terms, (self.terms,)

    def __hash__(self):
        return self._hash

    def __eq__(self, other):
        return self is other or (isinstance(other, Terms) and self._hash == other._hash and self.terms == other.terms)

    @property
    def out_shape(self) -> tuple[int, ...]:
        return self.terms[0].out_shape

    @property
    def inp_shape(self) -> tuple[int, ...]:
        return self.terms[0].inp_shape

    @property
    def renaming(self) -> bool:
        return all(term.renaming for term in self.terms)

    @cached_property
    def stored(self) -> int:
        """The number of values that all terms store."""
        return sum(term.stored for term in self.terms)

    @property
    def transposed(self) -> "Terms":
        return Terms(tuple(term.transposed for term in self.terms))

    def __str__(self):
        return " + ".join(map(str, self.terms))


AnyStructure = Structure | Terms


def terms_of(structure: AnyStructure) -> tuple[Structure, ...]:
    return structure.terms if isinstance(structure, Terms) else (structure,)


def transposed(structure: AnyStructure) -> AnyStructure:
    """The structure with output and input exchanged."""
    return structure.transposed


@lru_cache(_CACHE)
def priced_kind(structure: AnyStructure, folded: bool) -> AnyStructure:
    """The part of a structure that determines its cost.

    Raw counting does not distinguish known numbers, unless they only rename. Folded counting does not distinguish
    renamings.
    """
    if isinstance(structure, Terms) or structure.scale is None:
        return structure
    if folded:
        return replace(structure, renaming=False)
    return structure if structure.renaming else replace(structure, scale=1.0)


def is_symmetric(structure: AnyStructure) -> bool:
    """True if every symmetric block of this structure is its own transpose, term by term."""
    found = set(terms_of(structure))
    return found == {term.transposed for term in found} and is_unambiguous(structure)


@lru_cache(_CACHE)
def is_unambiguous(structure: AnyStructure) -> bool:
    """True if no entry is the sum of several numbers.

    Otherwise, terms that are each other's transpose need not have equal values: a row and a column may share their
    corner in any proportion.
    """
    terms = terms_of(structure)
    single = not any(term.names or structures.repeats_entries(term) for term in terms)
    return single and not any(structures.overlap(a, b) for n, a in enumerate(terms) for b in terms[:n])


def replaced(structure: AnyStructure) -> int:
    """The number of values of a symmetric block that are not read, because others are equal to them."""
    count, seen = 0, set[Structure]()
    for term in terms_of(structure):
        turned, order = structures.turned(term)
        if turned in seen:
            count += term.stored
        elif turned == term and term.scale is None:
            places = np.arange(term.stored).reshape(term.value_shape)
            count += int((places > places.transpose(order)).sum())
        seen.add(term)
    return count


def pattern_of(structure: AnyStructure) -> Structure:
    """The smallest structure without lists that contains all terms, with values along all labels."""
    plain = [structures.without_lists(structures.tied_alike(term)).structure for term in terms_of(structure)]
    whole = reduce(sums.hull, plain)
    return replace(whole, scale=None, renaming=False, values=tuple(range(len(whole.sizes))))


def renamed(structure: AnyStructure, prefix: Hashable) -> AnyStructure:
    """The structure with ``prefix`` added to the names of positions known only at run time."""
    if isinstance(structure, Structure):
        return structures.renamed(structure, prefix)
    return Terms(tuple(structures.renamed(term, prefix) for term in structure.terms))


@dataclass(frozen=True, slots=True)
class TermStep:
    """``values[result] = values[left] * values[right]``, or ``+``, on terms."""

    result: int
    left: int
    right: int
    operation: Product | Sum | Union


@dataclass(frozen=True)
class Recipe:
    """How to multiply or add two sums of terms, as straight-line code on terms.

    Values are numbered: the terms of the left operand, those of the right operand, then the results of the steps.
    ``outputs`` are the values that form the terms of the result.
    """

    structure: AnyStructure
    code: tuple[TermStep, ...]
    outputs: tuple[int, ...]
    is_sum: bool
    # The terms have factors of their own.
    factor: ClassVar[float] = 1.0

    @cached_property
    def multiplications(self) -> int:
        return sum(step.operation.multiplications for step in self.code)

    @cached_property
    def raw_multiplications(self) -> int:
        return sum(step.operation.raw_multiplications for step in self.code)

    @cached_property
    def additions(self) -> int:
        return sum(step.operation.additions for step in self.code)


class _Writer:
    """Writes a recipe: adds terms one after the other, and merges them with existing ones."""

    def __init__(self, given: Sequence[Structure], whole: bool):
        self.worth_keeping_apart = WORTH_KEEPING_APART if whole else 1
        self.structures: list[Structure] = list(given)
        self.code: list[TermStep] = []
        self.kept: list[int] = []

    def multiply(self, left: int, right: int, product: Product) -> int:
        return self._write(left, right, product)

    def keep(self, value: int) -> None:
        """Add a term to the sum."""
        found = self._partner(value, forced=len(self.kept) >= MOST_TERMS)
        if found is None:
            self.kept.append(value)
            return
        other, total = found
        self.kept.remove(other)
        # A merged term may now fit another term.
        self.keep(self._write(other, value, total))

    def _partner(self, value: int, forced: bool) -> tuple[int, Sum | Union] | None:
        """The term that ``value`` is best merged with, and how; None if there is none."""
        new = self.structures[value]
        best, least = None, float("inf") if forced else self.worth_keeping_apart
        for other in self.kept:
            known = self.structures[other]
            # Small arrays with positions known only at run time are kept whole like any others.
            anyway = forced or (self.worth_keeping_apart > 1 and bool(known.names | new.names))
            # A plain sum moves no values, so it is tried first.
            for total in (sums.add(known, new, anyway), self._united(known, new, forced)):
                if total is not None and (waste := _waste(total.structure, known, new)) < least:
                    best, least = (other, total), waste
        return best

    def _united(self, left: Structure, right: Structure, forced: bool) -> Union | None:
        """The union of two lists; None if it is not worthwhile."""
        few = max(prod(left.sizes), prod(right.sizes)) < self.worth_keeping_apart
        return sums.unite(left, right) if forced or few or sums.coinciding(left, right) >= _COINCIDING else None

    def _write(self, left: int, right: int, operation: Product | Sum | Union) -> int:
        self.code.append(TermStep(len(self.structures), left, right, operation))
        self.structures.append(operation.structure)
        return len(self.structures) - 1

    def recipe(self, is_sum: bool) -> Recipe:
        structures = [self.structures[value] for value in self.kept]
        whole = structures[0] if len(structures) == 1 else Terms(tuple(structures))
        return Recipe(whole, tuple(self.code), tuple(self.kept), is_sum)


def _waste(whole: Structure, left: Structure, right: Structure) -> int:
    """The number of values, or of entries that repeat them, by which the merged structure exceeds the two."""
    stored = whole.stored - left.stored - right.stored
    return max(stored, prod(whole.sizes) - prod(left.sizes) - prod(right.sizes))


@lru_cache(_CACHE)
def compose(left: AnyStructure, right: AnyStructure, whole: bool = True) -> Product | Recipe | None:
    """The product of ``left`` after ``right``; None if it is zero everywhere.

    With ``whole``, terms of small arrays become one structure, even if it has entries that neither operand has.
    """
    if isinstance(left, Structure) and isinstance(right, Structure):
        return products.compose(left, right)
    lefts, rights = terms_of(left), terms_of(right)
    writer = _Writer((*lefts, *rights), whole)
    made = []
    for i, outer in enumerate(lefts):
        for j, inner in enumerate(rights):
            product = products.compose(outer, inner)
            if product is not None:
                made.append(writer.multiply(i, len(lefts) + j, product))
    for value in made:
        writer.keep(value)
    return writer.recipe(is_sum=False) if made else None


@lru_cache(_CACHE)
def add(left: AnyStructure, right: AnyStructure, whole: bool = True) -> Sum | Union | Recipe:
    """The sum of two blocks, with the entries of both, for two parallel paths."""
    lefts, rights = terms_of(left), terms_of(right)
    writer = _Writer((*lefts, *rights), whole)
    writer.kept = list(range(len(lefts)))
    for value in range(len(lefts), len(lefts) + len(rights)):
        writer.keep(value)
    recipe = writer.recipe(is_sum=True)
    if len(lefts) == len(rights) == len(recipe.code) == 1:
        # One structure holds both.
        operation = recipe.code[0].operation
        assert not isinstance(operation, Product)
        return operation
    return recipe
