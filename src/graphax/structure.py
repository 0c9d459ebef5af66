"""Structures: the shape of a Jacobian block and which of its entries can differ from zero.

A block is an einsum term. Every axis of the output and of the input carries labels (see `graphax.axes`); a label
on both sides *is* a Kronecker delta; a label that the values lack is replication. A block whose coefficient is a
known number has no values at all, and with coefficient 1 it only renames.

    J[out, inp] = coefficient * values[labels of the values] * deltas

Here is the whole algebra: `compose` (the chain rule), `add` (two paths between the same vertices), and the cost of
each. Nothing here touches an array; `graphax.block` executes what this module decides.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import prod
from typing import ClassVar

import numpy as np

from .axes import Axis, Digit, Disjoint, Relabelling, Unrepresentable, axis_size, labels_of, shifted, whole
from .positions import Listed, Positions, as_array, highest, join, listed, lowest, meet

_CACHE = 1 << 14


@dataclass(frozen=True, eq=False)
class Structure:
    """The static part of a Jacobian block.

    Attributes:
        out, inp: one `Axis` for each axis of the output and of the input.
        sizes: the size of each label; labels are numbered by first appearance in ``out``, then ``inp``.
        values: the labels of the value array, ascending.
        scale: the coefficient if it is a number known before execution (then there is no value array), else None.
        renaming: True for a coefficient 1 that stems from moving entries about (transpose, slice, ...) rather
            than from arithmetic; raw counting does not count it.
    """

    out: tuple[Axis, ...]
    inp: tuple[Axis, ...]
    sizes: tuple[int, ...]
    values: tuple[int, ...] = ()
    scale: float | None = None
    renaming: bool = False
    _key: tuple = field(init=False, repr=False)
    _hash: int = field(init=False, repr=False)

    def __post_init__(self):
        if self.scale is not None and self.values:
            raise ValueError("a block with a known coefficient has no values")
        # Structures are dictionary keys everywhere, so their hash is computed once.
        key = (self.out, self.inp, self.sizes, self.values, self.scale, self.renaming)
        object.__setattr__(self, "_key", key)
        object.__setattr__(self, "_hash", hash(key))

    def __reduce__(self):
        # Hashes differ from process to process.
        return Structure, self._key

    def __hash__(self):
        return self._hash

    def __eq__(self, other):
        if self is other:
            return True
        return isinstance(other, Structure) and self._hash == other._hash and self._key == other._key

    @property
    def out_shape(self) -> tuple[int, ...]:
        """The shape of the output."""
        return tuple(axis_size(axis) for axis in self.out)

    @property
    def inp_shape(self) -> tuple[int, ...]:
        """The shape of the input."""
        return tuple(axis_size(axis) for axis in self.inp)

    @property
    def value_shape(self) -> tuple[int, ...]:
        """The shape of the value array."""
        return tuple(self.sizes[label] for label in self.values)

    @cached_property
    def stored(self) -> int:
        """How many numbers the block holds."""
        return 0 if self.scale is not None else prod(self.value_shape)

    @property
    def transposed(self) -> "Structure":
        """With output and input exchanged."""
        return canonical(self.inp, self.out, self.sizes, self.values, self.scale, self.renaming)[0]

    def __str__(self):
        names = "ijklmnopqrstuvwxyzabcdefgh"

        def name(label: int) -> str:
            return names[label] if label < len(names) else f"<{label}>"

        def axis_text(axis: Axis) -> str:
            parts = []
            for label, at, size in axis:
                text = "" if label is None else name(label)
                if isinstance(at, Listed):
                    text += "@list"
                elif at != range(size):
                    step = "" if abs(at.step) == 1 or len(at) == 1 else f":{abs(at.step)}"
                    text += f"@{lowest(at)}{step}" if len(at) == 1 or at.step > 0 else f"@{highest(at)}:-{abs(at.step)}"
                parts.append(text)
            return "·".join(parts) if parts else "1"

        out, inp = (",".join(axis_text(axis) for axis in side) for side in (self.out, self.inp))
        coefficient = f"{self.scale:g}" if self.scale is not None else "v" + "".join(name(v) for v in self.values)
        return f"{coefficient}[{out}|{inp}]"


def canonical(
    out: Iterable[Axis],
    inp: Iterable[Axis],
    sizes: Sequence[int],
    values: Iterable[int],
    scale: float | None,
    renaming: bool = False,
) -> tuple[Structure, list[int]]:
    """The structure with labels numbered by first appearance, and the old labels in that order."""
    out, inp = tuple(out), tuple(inp)
    old = labels_of(out + inp)
    new = {label: number for number, label in enumerate(old)}

    structure = Structure(
        _renumbered(out, old),
        _renumbered(inp, old),
        tuple(sizes[label] for label in old),
        tuple(sorted(new[label] for label in values)),
        scale,
        renaming,
    )
    return structure, old


def _renumbered(axes: Iterable[Axis], old: Sequence[int]) -> tuple[Axis, ...]:
    new = {label: number for number, label in enumerate(old)}
    return tuple(tuple(d if d.label is None else d._replace(label=new[d.label]) for d in axis) for axis in axes)


def identity(shape: Sequence[int], scale: float = 1.0, renaming: bool = False) -> Structure:
    axes = tuple(() if size == 1 else (whole(number, size),) for number, size in enumerate(shape))
    return canonical(axes, axes, shape, (), scale, renaming)[0]


def zero(out_shape: Sequence[int], inp_shape: Sequence[int]) -> Structure:
    """No entry at all: what an output that does not depend on an input has."""
    return dense(out_shape, inp_shape, scale=0.0)


def dense(out_shape: Sequence[int], inp_shape: Sequence[int], scale: float | None = None) -> Structure:
    shape = (*out_shape, *inp_shape)
    axes = tuple(() if size == 1 else (whole(number, size),) for number, size in enumerate(shape))
    values = () if scale is not None else labels_of(axes)
    return canonical(axes[: len(out_shape)], axes[len(out_shape) :], shape, values, scale)[0]


@dataclass(frozen=True)
class Recast:
    """A block rewritten with another structure: its values, placed along ``axes`` (in the old labels)."""

    structure: Structure
    axes: tuple[Axis, ...]


@lru_cache(_CACHE)
def freed(structure: Structure, out: tuple[int, ...], inp: tuple[int, ...]) -> Recast:
    """Give the named axes a label of their own and move what tied them to the others into the values."""
    sizes = list(structure.sizes)
    tied = {"out": out, "inp": inp}
    sides: dict[str, list[Axis]] = {}
    placed: list[tuple[int, Axis]] = []
    for side, axes in (("out", structure.out), ("inp", structure.inp)):
        sides[side] = list(axes)
        for number in tied[side]:
            if axes[number]:
                label = len(sizes)
                sizes.append(axis_size(axes[number]))
                sides[side][number] = (whole(label, sizes[label]),)
                placed.append((label, axes[number]))
    remaining = set(labels_of((*sides["out"], *sides["inp"])))
    carried = {*structure.values, *labels_of(axis for _, axis in placed)} & remaining
    values = {label: (whole(label, sizes[label]),) for label in carried} | dict(placed)
    result, old = canonical(sides["out"], sides["inp"], sizes, values, None)
    return Recast(result, tuple(values[old[label]] for label in result.values))


@dataclass(frozen=True)
class Compaction:
    """Values along one label that belong to the same entries, summed: ``groups`` says where each of them goes."""

    label: int
    groups: Listed
    count: int


@lru_cache(_CACHE)
def compacted(structure: Structure) -> tuple[Structure, tuple[Compaction, ...]]:
    """The structure without entries that its lists name more than once, and how to get there."""
    steps: list[Compaction] = []
    for label in sorted({d.label for d in _digits(structure) if isinstance(d.at, Listed) and d.label is not None}):
        if label not in structure.values:
            continue
        tied = [d for d in _digits(structure) if d.label == label]
        keys = np.ravel_multi_index([as_array(d.at) for d in tied], [d.size for d in tied])
        if np.all(keys[1:] > keys[:-1]):
            continue
        entries, groups = np.unique(keys, return_inverse=True)
        rows = iter(np.unravel_index(entries, [d.size for d in tied]))

        def listed_anew(axes: tuple[Axis, ...], label: int = label, rows: Iterator = rows) -> list[Axis]:
            return [tuple(d._replace(at=listed(next(rows))) if d.label == label else d for d in axis) for axis in axes]

        sizes = [len(entries) if n == label else size for n, size in enumerate(structure.sizes)]
        structure = replace(
            structure,
            out=tuple(listed_anew(structure.out)),
            inp=tuple(listed_anew(structure.inp)),
            sizes=tuple(sizes),
        )
        steps.append(Compaction(label, Listed(groups.ravel()), sizes[label]))
    return structure, tuple(steps)


def _digits(structure: Structure) -> Iterator[Digit]:
    return (digit for axis in structure.out + structure.inp for digit in axis)


@dataclass(frozen=True)
class Product:
    """How to compose two blocks, and what that costs.

    ``left`` and ``right`` say what the axes of each value array mean in the labels of the product (None where a
    block has no values); labels from ``len(structure.sizes)`` on are summed over.
    """

    structure: Structure
    left: tuple[Axis, ...] | None
    right: tuple[Axis, ...] | None
    factor: float
    multiplications: int
    raw_multiplications: int
    additions: int
    free: tuple[int, ...] = ()
    compactions: tuple[Compaction, ...] = ()
    is_sum: ClassVar[bool] = False


@lru_cache(_CACHE)
def compose(left: Structure, right: Structure) -> Product | None:
    """The block of ``left`` after ``right``; None if it is zero everywhere."""
    try:
        return _compose(left, right)
    except Disjoint:
        return None
    except Unrepresentable:
        free = tuple(n for n, pair in enumerate(zip(left.inp, right.out, strict=True)) if not _plainly_equal(*pair))
        explicit = _compose(freed(left, (), free).structure, freed(right, free, ()).structure)
        return replace(explicit, free=free)


def _plainly_equal(first: Axis, second: Axis) -> bool:
    return len(first) == len(second) <= 1 and all(d.at == range(d.size) for d in first + second)


def _compose(left: Structure, right: Structure) -> Product:
    offset = len(left.sizes)
    labels = Relabelling(left.sizes + right.sizes)
    for inner, outer in zip(left.inp, shifted(right.out, offset), strict=True):
        labels.equate(inner, outer)
    out = [labels.resolve(axis) for axis in left.out]
    inp = [labels.resolve(axis) for axis in shifted(right.inp, offset)]
    # A list may name the point that it meets more than once, so the labels of both sides count.
    middle = [labels.resolve(axis) for axis in (*left.inp, *shifted(right.out, offset))]
    left_axes = [labels.resolve((whole(n, left.sizes[n]),)) for n in left.values]
    right_axes = [labels.resolve((whole(n + offset, right.sizes[n]),)) for n in right.values]

    kept = set(labels_of(out + inp))
    in_left, in_right = set(labels_of(left_axes)), set(labels_of(right_axes))
    carried = in_left | in_right
    both_known = left.scale is not None and right.scale is not None
    # A summed label that no value has contributes its size.
    factor = _known(left) * _known(right)
    factor *= prod(labels.sizes[n] for n in set(labels_of(middle)) - kept - carried)
    structure, old = canonical(
        out,
        inp,
        labels.sizes,
        carried & kept,
        factor if both_known else None,
        left.renaming and right.renaming and factor == 1,
    )
    old += [label for label in labels_of(left_axes + right_axes) if label not in kept]

    def size(of: set[int]) -> int:
        return prod(labels.sizes[n] for n in of)

    # Labels that only one side has and the result lacks are summed first; the rest meet in one contraction.
    left_sum, right_sum = in_left - kept - in_right, in_right - kept - in_left
    met = carried - left_sum - right_sum
    both_valued = left.scale is None and right.scale is None
    scaling = size(met & kept) if not both_known and abs(factor) != 1 else 0
    before = structure.stored
    structure, compactions = compacted(structure)
    return Product(
        structure,
        None if left.scale is not None else _renumbered(left_axes, old),
        None if right.scale is not None else _renumbered(right_axes, old),
        factor,
        multiplications=(size(met) if both_valued else 0) + scaling,
        raw_multiplications=0 if left.renaming or right.renaming else size(met),
        additions=size(in_left)
        - size(in_left - left_sum)
        + size(in_right)
        - size(in_right - right_sum)
        + size(met)
        - size(met & kept)
        + before
        - structure.stored,
        compactions=compactions,
    )


def _known(structure: Structure) -> float:
    return 1.0 if structure.scale is None else structure.scale


@dataclass(frozen=True)
class Refinement:
    """A block whose digits were split: what the axes of its values mean in the labels of the new structure."""

    structure: Structure
    axes: tuple[Axis, ...]


@dataclass(frozen=True)
class Sum:
    """How to add two blocks: the place of each one's values in those of the sum (in the labels of each summand).

    ``beside`` names the axis along which the two do not overlap and are laid side by side instead of added.
    ``left_first`` and ``right_first`` bring the summands to common digits where they differ.
    """

    structure: Structure
    left: tuple[Axis, ...]
    right: tuple[Axis, ...]
    additions: int
    # A sum of two blocks multiplies nothing.
    multiplications: ClassVar[int] = 0
    raw_multiplications: ClassVar[int] = 0
    is_sum: ClassVar[bool] = True
    beside: int | None = None
    left_first: Recast | Refinement | None = None
    right_first: Recast | Refinement | None = None


def without_lists(structure: Structure) -> Recast:
    """The block with labels of their own for axes that are lists."""
    out, inp = (
        tuple(n for n, axis in enumerate(axes) if any(isinstance(d.at, Listed) for d in axis))
        for axes in (structure.out, structure.inp)
    )
    return freed(structure, out, inp)


@lru_cache(_CACHE)
def add(left: Structure, right: Structure, anyway: bool = True) -> Sum | None:
    """The block of two parallel paths: entries that either has.

    One structure cannot hold two lists. Without ``anyway`` the sum is None then, otherwise it is dense along them.
    """
    left_first, right_first = _aligned(left, right)
    total = _add(left_first.structure, right_first.structure)
    if total is None and anyway:
        left_first, right_first = _all_freed(left), _all_freed(right)
        total = _add(left_first.structure, right_first.structure)
    if total is None:
        return None
    return replace(
        total,
        left_first=None if left_first.structure == left else left_first,
        right_first=None if right_first.structure == right else right_first,
    )


def hull(left: Structure, right: Structure) -> Structure:
    """The smallest structure that holds both."""
    total = add(left, right)
    assert total is not None
    return total.structure


def _aligned(left: Structure, right: Structure) -> tuple[Recast | Refinement, Recast | Refinement]:
    """Both structures with the same digits on every axis."""
    ours, theirs = Relabelling(left.sizes), Relabelling(right.sizes)
    mine, yours = list(left.out + left.inp), list(right.out + right.inp)
    count = -1
    try:
        # Splitting a label on one axis splits it on others, so this goes round until nothing changes.
        while count != (count := sum(map(len, mine + yours))):
            for n in range(len(mine)):
                mine[n] = ours.refine(mine[n], [d.size for d in theirs.resolve(yours[n])])
                yours[n] = theirs.refine(yours[n], [d.size for d in mine[n]])
        return _refined(left, ours, mine), _refined(right, theirs, yours)
    except Unrepresentable:
        # An axis that cannot follow the others is rare; then all axes are set free.
        return _all_freed(left), _all_freed(right)


def _all_freed(structure: Structure) -> Recast:
    return freed(structure, tuple(range(len(structure.out))), tuple(range(len(structure.inp))))


def _refined(structure: Structure, labels: Relabelling, axes: list[Axis]) -> Refinement:
    axes = [labels.resolve(axis) for axis in axes]
    values = [labels.resolve((whole(n, structure.sizes[n]),)) for n in structure.values]
    rank = len(structure.out)
    result, old = canonical(
        axes[:rank], axes[rank:], labels.sizes, labels_of(values), structure.scale, structure.renaming
    )
    return Refinement(result, _renumbered(values, old))


def _add(left: Structure, right: Structure) -> Sum | None:
    """The sum of two structures whose axes have the same digits."""
    ours = [d for axis in left.out + left.inp for d in axis]
    theirs = [d for axis in right.out + right.inp for d in axis]
    # Positions that each summand ties together stay tied, as long as both tie them in the same way.
    groups: dict[tuple, list[int]] = {}
    for slot, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        still = a.label is None and b.label is None and a.at == b.at
        groups.setdefault((a.label, b.label, slot if still else None), []).append(slot)

    sizes: list[int] = []
    digits = dict(enumerate(ours))
    left_place: list[Digit] = []
    right_place: list[Digit] = []
    for (left_label, right_label, still), slots in groups.items():
        if still is not None:
            continue
        hulls = {}
        for slot in slots:
            joined = join(ours[slot].at, theirs[slot].at)
            if joined is None:
                return None
            hulls[slot] = joined
        tied = len({(len(hull), i, j) for hull, i, j in hulls.values()}) == 1
        for group in [slots] if tied else [[slot] for slot in slots]:
            hull, i, j = hulls[group[0]]
            left_place.append(Digit(left_label, i, len(hull)))
            right_place.append(Digit(right_label, j, len(hull)))
            digits |= {slot: Digit(len(sizes), hulls[slot][0], ours[slot].size) for slot in group}
            sizes.append(len(hull))

    remaining = iter(digits.values())
    out = [tuple(next(remaining) for _ in axis) for axis in left.out]
    inp = [tuple(next(remaining) for _ in axis) for axis in left.inp]
    carried = _carried(left, left_place) | _carried(right, right_place)
    scale, renaming = _known_sum(left, right, [(left_place[n], right_place[n]) for n in carried])
    structure, old = canonical(out, inp, sizes, carried if scale is None else (), scale, renaming)
    order = [old[label] for label in structure.values]
    left_axes, right_axes = [left_place[n] for n in order], [right_place[n] for n in order]
    beside = _beside(left_axes, right_axes)
    return Sum(
        structure,
        tuple((d,) for d in left_axes),
        tuple((d,) for d in right_axes),
        additions=0 if beside is not None else structure.stored,
        beside=beside,
    )


def _carried(structure: Structure, place: list[Digit]) -> set[int]:
    """The labels of a sum along which the values of this summand vary."""
    labels = [digit.label for digit in place]
    return {
        number
        for number, (label, at, size) in enumerate(place)
        if len(at) < size or label in structure.values or (label is not None and labels.count(label) > 1)
    }


def _known_sum(left: Structure, right: Structure, carried: list[tuple[Digit, Digit]]) -> tuple[float | None, bool]:
    """The coefficient of a sum of two known coefficients, where it is one number, and whether it only renames."""
    if left.scale is None or right.scale is None:
        return None, False
    if not carried:
        return left.scale + right.scale, False
    if left.scale == right.scale and len(carried) == 1:
        ((a, b),) = carried
        if len(a.at) + len(b.at) == a.size and not len(meet(a.at, b.at)[0]):
            return left.scale, left.renaming and right.renaming
    return None, False


def _beside(left: list[Digit], right: list[Digit]) -> int | None:
    """An axis along which the two summands lie apart, each in one piece."""
    for number, (a, b) in enumerate(zip(left, right, strict=True)):
        apart = highest(a.at) < lowest(b.at) or highest(b.at) < lowest(a.at)
        if apart and _in_one_piece(a, left) and _in_one_piece(b, right):
            return number
    return None


def _in_one_piece(digit: Digit, axes: list[Digit]) -> bool:
    contiguous = isinstance(digit.at, range) and (len(digit.at) == 1 or digit.at.step == 1)
    return contiguous and (digit.label is None or sum(d.label == digit.label for d in axes) == 1)


@dataclass(frozen=True)
class Union:
    """How to add two blocks whose entries are listed along one label each: one list after the other, then compacted.

    ``label`` is the label of the sum along which they stand; ``compactions`` speak of its labels.
    """

    structure: Structure
    label: int
    additions: int
    compactions: tuple[Compaction, ...]
    multiplications: ClassVar[int] = 0
    raw_multiplications: ClassVar[int] = 0
    is_sum: ClassVar[bool] = True


@lru_cache(_CACHE)
def unite(left: Structure, right: Structure) -> Union | None:
    """The sum of two blocks by the union of their lists; None if they differ in more than one label, or have none."""
    first, second = list(_digits(left)), list(_digits(right))
    if not any(isinstance(d.at, Listed) for d in first + second) or [d.size for d in first] != [d.size for d in second]:
        return None
    if [len(axis) for axis in left.out + left.inp] != [len(axis) for axis in right.out + right.inp]:
        return None
    differing = {n for n, (a, b) in enumerate(zip(first, second, strict=True)) if a != b}
    labels = {d.label for n in differing for d in (first[n],) if d.label is not None}
    others = {d.label for n in differing for d in (second[n],) if d.label is not None}
    if not labels and not others:
        labels = others = {d.label for d in first if isinstance(d.at, Listed) and d.label is not None}
    if labels != others or len(labels) != 1:
        return None
    (label,) = labels
    slots = {n for n, d in enumerate(first) if d.label == label} | differing
    if any(d.label not in (label, None) for n in slots for d in (first[n], second[n])):
        return None
    alike = set(left.values) | {label} == set(right.values) | {label}
    if not alike or len(left.sizes) != len(right.sizes):
        return None
    lengths = left.sizes[label], right.sizes[label]

    def column(n: int) -> Positions:
        parts = [
            np.broadcast_to(as_array(d.at), length) if d.label is None else as_array(d.at)
            for d, length in zip((first[n], second[n]), lengths, strict=True)
        ]
        return listed(np.concatenate(parts))

    merged = iter([d._replace(label=label, at=column(n)) if n in slots else d for n, d in enumerate(first)])
    out = [tuple(next(merged) for _ in axis) for axis in left.out]
    inp = [tuple(next(merged) for _ in axis) for axis in left.inp]
    sizes = [sum(lengths) if n == label else size for n, size in enumerate(left.sizes)]
    values = {*left.values, *right.values, label}
    stacked = Structure(tuple(out), tuple(inp), tuple(sizes), tuple(sorted(values)))
    structure, compactions = compacted(stacked)
    return Union(structure, label, stacked.stored - structure.stored, compactions)
