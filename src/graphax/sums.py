"""Sums of structures: two paths between the same vertices, and the cost of adding them."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np

from .axes import Axis, Digit, Relabelling, Unrepresentable, labels_of, whole
from .keys import Sketch, keys_of, sketch
from .positions import Dynamic, Listed, as_array, highest, join, listed, lowest, meet
from .products import Compaction, compacted
from .structure import CACHE, Recast, Structure, canonical, digits_of, freed, renumbered


@dataclass(frozen=True)
class Refinement:
    """A block whose digits were split: its value axes, expressed in the labels of the new structure."""

    structure: Structure
    axes: tuple[Axis, ...]


@dataclass(frozen=True)
class Sum:
    """How to add two blocks: the place of the values of each in the sum (in the labels of each summand).

    ``beside`` is the axis along which the two do not overlap and are laid side by side instead of added. ``left_first``
    and ``right_first`` bring the summands to common digits if they differ.
    """

    structure: Structure
    left: tuple[Axis, ...]
    right: tuple[Axis, ...]
    additions: int
    # Adding two blocks takes no multiplications.
    multiplications: ClassVar[int] = 0
    raw_multiplications: ClassVar[int] = 0
    is_sum: ClassVar[bool] = True
    beside: int | None = None
    left_first: Recast | Refinement | None = None
    right_first: Recast | Refinement | None = None


@lru_cache(CACHE)
def add(left: Structure, right: Structure, anyway: bool = True) -> Sum | None:
    """The sum of two blocks, with the entries of both, for two parallel paths.

    One structure cannot hold two lists. In that case the sum is None without ``anyway``, and dense along the lists
    otherwise.
    """
    left_first, right_first = _aligned(left, right)
    total = _add(left_first.structure, right_first.structure)
    if total is None and anyway:
        left_first, right_first = _lists_freed(left, right)
        total = _add(left_first.structure, right_first.structure)
    if total is None:
        return None
    return replace(
        total,
        left_first=None if left_first.structure == left else left_first,
        right_first=None if right_first.structure == right else right_first,
    )


def hull(left: Structure, right: Structure) -> Structure:
    """The smallest structure that contains both."""
    total = add(left, right)
    assert total is not None
    return total.structure


def _aligned(left: Structure, right: Structure) -> tuple[Recast | Refinement, Recast | Refinement]:
    """Both structures with the same digits on every axis."""
    ours, theirs = Relabelling(left.sizes), Relabelling(right.sizes)
    mine, yours = list(left.out + left.inp), list(right.out + right.inp)
    count = -1
    try:
        # Splitting a label on one axis splits it on others, so repeat until nothing changes.
        while count != (count := sum(map(len, mine + yours))):
            for n in range(len(mine)):
                mine[n] = ours.refine(mine[n], [d.size for d in theirs.resolve(yours[n])])
                yours[n] = theirs.refine(yours[n], [d.size for d in mine[n]])
        return _refined(left, ours, mine), _refined(right, theirs, yours)
    except Unrepresentable:
        # An axis that cannot follow the others is rare; free all axes then.
        return _all_freed(left), _all_freed(right)


def _lists_freed(left: Structure, right: Structure) -> tuple[Recast, Recast]:
    """Both structures with separate labels for axes on which one has a list, or for all axes if that is not enough."""
    out, inp = (
        tuple(
            n
            for n, pair in enumerate(zip(*axes, strict=True))
            if any(not isinstance(d.at, range) for d in sum(pair, ()))
        )
        for axes in ((left.out, right.out), (left.inp, right.inp))
    )
    ours, theirs = freed(left, out, inp), freed(right, out, inp)
    if [d.size for d in digits_of(ours.structure)] == [d.size for d in digits_of(theirs.structure)]:
        return ours, theirs
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
    return Refinement(result, renumbered(values, old))


def _add(left: Structure, right: Structure) -> Sum | None:
    """The sum of two structures whose axes have the same digits."""
    ours = [d for axis in left.out + left.inp for d in axis]
    theirs = [d for axis in right.out + right.inp for d in axis]
    # Positions that each summand ties together stay tied if both tie them in the same way.
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
    """The coefficient of a sum of two known coefficients, if it is one number, and whether the sum only renames."""
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
    """An axis along which the two summands lie apart, each in one piece; None if there is none."""
    for number, (a, b) in enumerate(zip(left, right, strict=True)):
        some = len(a.at) and len(b.at)
        apart = some and (highest(a.at) < lowest(b.at) or highest(b.at) < lowest(a.at))
        if apart and _in_one_piece(a, left) and _in_one_piece(b, right):
            return number
    return None


def _in_one_piece(digit: Digit, axes: list[Digit]) -> bool:
    contiguous = isinstance(digit.at, range) and (len(digit.at) == 1 or digit.at.step == 1)
    return contiguous and (digit.label is None or sum(d.label == digit.label for d in axes) == 1)


@dataclass(frozen=True)
class Union:
    """How to add two blocks whose entries are listed along one label each: concatenate the lists, then compact them.

    ``label`` is the label of the sum that the lists follow; ``compactions`` refer to the labels of the sum.
    """

    structure: Structure
    label: int
    additions: int
    compactions: tuple[Compaction, ...]
    multiplications: ClassVar[int] = 0
    raw_multiplications: ClassVar[int] = 0
    is_sum: ClassVar[bool] = True


@lru_cache(CACHE)
def unite(left: Structure, right: Structure) -> Union | None:
    """The sum of two blocks by the union of their lists.

    Returns None if they have no lists or differ in more than one label.
    """
    found = _listed_alike(left, right)
    if found is None:
        return None
    label, slots = found
    columns = [_columns(structure, label, slots) for structure in (left, right)]
    merged = list(digits_of(left))
    for n, parts in zip(slots, zip(*columns, strict=True), strict=True):
        merged[n] = merged[n]._replace(label=label, at=listed(np.concatenate(parts)))
    digits = iter(merged)
    out = [tuple(next(digits) for _ in axis) for axis in left.out]
    inp = [tuple(next(digits) for _ in axis) for axis in left.inp]
    sizes = [size + right.sizes[n] if n == label else size for n, size in enumerate(left.sizes)]
    values = {*left.values, *right.values, label}
    stacked = Structure(tuple(out), tuple(inp), tuple(sizes), tuple(sorted(values)))
    structure, compactions = compacted(stacked)
    return Union(structure, label, stacked.stored - structure.stored, compactions)


def coinciding(left: Structure, right: Structure) -> float:
    """The fraction of the shorter of two lists that the other contains; 0 for blocks that `unite` cannot unite."""
    found = _listed_alike(left, right)
    if found is None:
        return 0.0
    label, slots = found
    shorter, longer = sorted((left, right), key=lambda structure: structure.sizes[label])
    return _sketch(shorter, label, slots).coinciding(_sketch(longer, label, slots))


@lru_cache(CACHE)
def _sketch(structure: Structure, label: int, slots: tuple[int, ...]) -> Sketch:
    sizes = [digit.size for digit in digits_of(structure)]
    return sketch(keys_of(_columns(structure, label, slots), [sizes[n] for n in slots]))


def _columns(structure: Structure, label: int, slots: tuple[int, ...]) -> list[np.ndarray]:
    """The positions of some digits, which follow a label or are constant, per value of the label."""
    digits = list(digits_of(structure))
    return [np.broadcast_to(as_array(digits[n].at), structure.sizes[label]) for n in slots]


def _listed_alike(left: Structure, right: Structure) -> tuple[int, tuple[int, ...]] | None:
    """The only label along which two blocks have lists, and the digits that follow it in either; None otherwise."""
    first, second = list(digits_of(left)), list(digits_of(right))
    if not any(isinstance(d.at, Listed) for d in first + second) or [d.size for d in first] != [d.size for d in second]:
        return None
    if [len(axis) for axis in left.out + left.inp] != [len(axis) for axis in right.out + right.inp]:
        return None
    differing = {n for n, (a, b) in enumerate(zip(first, second, strict=True)) if a != b}
    labels, others = ({label for n in differing if (label := side[n].label) is not None} for side in (first, second))
    if not labels and not others:
        labels = others = {d.label for d in first if isinstance(d.at, Listed) and d.label is not None}
    if labels != others or len(labels) != 1:
        return None
    (label,) = labels
    slots = {n for n, d in enumerate(first) if d.label == label} | differing
    joined = [digits[n] for n in slots for digits in (first, second)]
    if any(d.label not in (label, None) or isinstance(d.at, Dynamic) for d in joined):
        return None
    alike = set(left.values) | {label} == set(right.values) | {label}
    return (label, tuple(sorted(slots))) if alike and len(left.sizes) == len(right.sizes) else None
