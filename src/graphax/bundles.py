"""Edges of all kinds: between values, between bundles of values, and edges that are programs.

A loop reads and returns several values at once, so it has two vertices that are bundles: one of its operands and one of
its results. An edge that begins or ends at a bundle is a matrix of structures (`Bundle`). The edge between the two
bundles is not a matrix but a program (`Passage`), through which other edges are pushed or pulled. `compose` and `add`
accept all kinds of edges; for two plain structures they are the functions of `graphax.terms`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from . import terms
from .products import Product
from .structure import Structure
from .sums import Sum, Union
from .terms import AnyStructure, Recipe

if TYPE_CHECKING:
    from .order import Order

# The numbers of a target and of a source within their bundles; `ALONE` for a value outside of any bundle.
Key = tuple[int, int]
ALONE = -1
PLAIN: Key = (ALONE, ALONE)

_CACHE = 1 << 12


@dataclass(frozen=True, eq=False)
class Bundle:
    """Structures by (member of the target, member of the source). Absent members are zero."""

    members: tuple[tuple[Key, AnyStructure], ...]
    # A bundle has no coefficient of its own.
    scale: ClassVar[None] = None

    @staticmethod
    def of(members: Mapping[Key, AnyStructure]) -> "AnyEdge":
        """The edge with these members. A single member between plain values is the structure itself."""
        if tuple(members) == (PLAIN,):
            return members[PLAIN]
        return Bundle(tuple(sorted(members.items(), key=lambda item: item[0])))

    @cached_property
    def _hash(self) -> int:
        return hash(self.members)

    def __hash__(self):
        return self._hash

    def __getstate__(self):
        # A hash may be valid within one process only.
        return {"members": self.members}

    def __eq__(self, other):
        return self is other or (isinstance(other, Bundle) and self.members == other.members)

    @property
    def renaming(self) -> bool:
        return all(structure.renaming for _, structure in self.members)

    @cached_property
    def stored(self) -> int:
        return sum(structure.stored for _, structure in self.members)

    def __str__(self):
        return "{" + ", ".join(str(structure) for _, structure in self.members) + "}"


class Passage:
    """An edge from one bundle to another that is a program."""

    scale: ClassVar[None] = None
    renaming: ClassVar[bool] = False
    stored: ClassVar[int] = 0

    @property
    def digest(self) -> str:
        """Identifies the results and the costs of pushing edges through the passage."""
        raise NotImplementedError

    @property
    def fingerprint(self) -> str:
        """Identifies the meaning of orders of the body."""
        raise NotImplementedError

    def with_order(self, order: "Order") -> "Passage":
        """The same passage, with its steps planned by ``order``."""
        raise NotImplementedError

    def pushed(self, behind: Mapping[Key, AnyStructure]) -> "Passing | None":
        """The product of the passage with an edge into its first bundle; None if it is zero."""
        raise NotImplementedError

    def pulled(self, before: Mapping[Key, AnyStructure]) -> "Passing | None":
        """The product of an edge out of the second bundle with the passage; None if it is zero."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Passing:
    """A product with a passage: its structure, its cost, and the data that the passage needs to compute it.

    It takes ``length`` steps, in which ``moved`` numbers are written or read again because they cannot all be held at
    once. If ``unbounded``, the number of steps is known only at run time, and ``length`` is an assumption.
    """

    structure: "AnyEdge"
    multiplications: int
    raw_multiplications: int
    additions: int
    forward: bool
    how: Any
    length: int
    moved: int
    unbounded: bool = False
    factor: ClassVar[float] = 1.0
    is_sum: ClassVar[bool] = False


@dataclass(frozen=True, eq=False)
class Pick:
    """One of several products with a passage that are computed together.

    The joint cost is counted with the first product.
    """

    structure: "AnyEdge"
    passing: Passing
    index: int
    factor: ClassVar[float] = 1.0
    is_sum: ClassVar[bool] = False

    @property
    def multiplications(self) -> int:
        return 0 if self.index else self.passing.multiplications

    @property
    def raw_multiplications(self) -> int:
        return 0 if self.index else self.passing.raw_multiplications

    @property
    def additions(self) -> int:
        return 0 if self.index else self.passing.additions


@dataclass(frozen=True)
class Turned:
    """The transpose of a block, which takes no arithmetic."""

    structure: "AnyEdge"
    multiplications: int = 0
    raw_multiplications: int = 0
    additions: int = 0
    factor: ClassVar[float] = 1.0
    is_sum: ClassVar[bool] = False


@dataclass(frozen=True)
class Mirrored(Turned):
    """A block that equals its transpose up to rounding, made exactly equal to it.

    Kernels do not compute the half that is replaced, so the cost is negative: it is the saving on the block.
    """


AnyEdge = AnyStructure | Bundle | Passage
PlainOperation = Product | Sum | Union | Recipe


@dataclass(frozen=True, slots=True)
class MemberStep:
    """``values[key] = left[...] * right[...]``, added to the existing value if there is a ``total``; or a plain sum."""

    key: Key
    left: Key | None
    right: Key | None
    product: Product | Recipe | None
    total: Sum | Union | Recipe | None


@dataclass(frozen=True)
class Memberwise:
    """A product or a sum of bundles, member by member."""

    structure: "AnyEdge"
    code: tuple[MemberStep, ...]
    is_sum: bool
    factor: ClassVar[float] = 1.0

    @property
    def _operations(self) -> Iterable[PlainOperation]:
        return (operation for step in self.code for operation in (step.product, step.total) if operation is not None)

    @cached_property
    def multiplications(self) -> int:
        return sum(operation.multiplications for operation in self._operations)

    @cached_property
    def raw_multiplications(self) -> int:
        return sum(operation.raw_multiplications for operation in self._operations)

    @cached_property
    def additions(self) -> int:
        return sum(operation.additions for operation in self._operations)


ProductOperation = Product | Recipe | Memberwise | Pick | Turned
SumOperation = Sum | Union | Recipe | Memberwise
Operation = ProductOperation | SumOperation


def members_of(edge: AnyEdge) -> dict[Key, AnyStructure]:
    assert not isinstance(edge, Passage)
    return dict(edge.members) if isinstance(edge, Bundle) else {PLAIN: edge}


def terms_in(edge: AnyEdge) -> Iterator[Structure]:
    """Yield all terms of an edge. A passage has none."""
    if not isinstance(edge, Passage):
        for structure in members_of(edge).values():
            yield from terms.terms_of(structure)


def compose(left: AnyEdge, right: AnyEdge, whole: bool = True) -> ProductOperation | None:
    """The product of ``left`` after ``right``; None if it is zero everywhere."""
    if isinstance(left, (Bundle, Passage)) or isinstance(right, (Bundle, Passage)):
        return _compose(left, right, whole)
    return terms.compose(left, right, whole)


@lru_cache(_CACHE)
def _compose(left: AnyEdge, right: AnyEdge, whole: bool) -> ProductOperation | None:
    if isinstance(left, Passage):
        return passed(left, (right,), forward=True)[0]
    if isinstance(right, Passage):
        return passed(right, (left,), forward=False)[0]
    found: dict[Key, AnyStructure] = {}
    code = []
    for (target, inner), outer in members_of(left).items():
        for (middle, source), before in members_of(right).items():
            product = terms.compose(outer, before, whole) if middle == inner else None
            if product is not None:
                key, total = (target, source), None
                if key in found:
                    total = terms.add(found[key], product.structure, whole)
                found[key] = (total or product).structure
                code.append(MemberStep(key, (target, inner), (middle, source), product, total))
    return Memberwise(Bundle.of(found), tuple(code), is_sum=False) if found else None


# Multiples of this offset distinguish the members of several edges that pass together.
APART = 1 << 20


@lru_cache(_CACHE)
def passed(passage: Passage, edges: tuple[AnyEdge, ...], forward: bool) -> tuple[Pick | None, ...]:
    """The products of a passage with several edges into it or out of it; None for products that are zero."""
    together = {
        apart(key, n, forward): structure for n, edge in enumerate(edges) for key, structure in members_of(edge).items()
    }
    passing = passage.pushed(together) if forward else passage.pulled(together)
    picks: list[Pick | None] = []
    for n in range(len(edges)):
        found = {} if passing is None else picked(members_of(passing.structure), n, forward)
        pick = Pick(Bundle.of(found), passing, sum(p is not None for p in picks)) if found and passing else None
        picks.append(pick)
    return tuple(picks)


def apart(key: Key, number: int, forward: bool) -> Key:
    """The key of a member of edge ``number`` when several edges pass together."""
    target, source = key
    return (target, source + number * APART) if forward else (target + number * APART, source)


def picked(members: Mapping[Key, Any], number: int, forward: bool) -> dict[Key, Any]:
    """The members of edge ``number`` among those of several edges, under their own keys."""
    found = {}
    for (target, source), member in members.items():
        which = source if forward else target
        if (which + 1) // APART == number:
            found[(target, source - number * APART) if forward else (target - number * APART, source)] = member
    return found


def add(left: AnyEdge, right: AnyEdge, whole: bool = True) -> SumOperation:
    """The sum of two edges, for two parallel paths."""
    assert not isinstance(left, Passage)
    assert not isinstance(right, Passage)
    if isinstance(left, Bundle) or isinstance(right, Bundle):
        return _add(left, right, whole)
    return terms.add(left, right, whole)


@lru_cache(_CACHE)
def _add(left: AnyStructure | Bundle, right: AnyStructure | Bundle, whole: bool) -> Memberwise:
    first, second = members_of(left), members_of(right)
    found = dict(first)
    code = [MemberStep(key, key, None, None, None) for key in first if key not in second]
    for key, structure in second.items():
        total = terms.add(first[key], structure, whole) if key in first else None
        found[key] = structure if total is None else total.structure
        code.append(MemberStep(key, key if total else None, key, None, total))
    return Memberwise(Bundle.of(found), tuple(code), is_sum=True)
