"""Products of structures: the chain rule and its cost."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import ClassVar

import numpy as np

from .axes import Axis, Disjoint, Relabelling, Unrepresentable, labels_of, shifted, whole
from .keys import distinct, keys_of, sketch
from .positions import Dynamic, Listed, as_array, listed
from .structure import CACHE, Structure, canonical, digits_of, freed, renumbered

# Up to this fraction of repeated entries in a list is tolerated: moving all values to sum so few is not worthwhile.
_REPEATED = 1 / 16


@dataclass(frozen=True)
class Compaction:
    """A sum of the values along one label that belong to the same entries. ``groups`` says where each value goes."""

    label: int
    groups: Listed
    count: int


@lru_cache(CACHE)
def compacted(structure: Structure) -> tuple[Structure, tuple[Compaction, ...]]:
    """The structure without entries that its lists name more than once, and the steps that lead to it."""
    steps: list[Compaction] = []
    for label in sorted({d.label for d in digits_of(structure) if isinstance(d.at, Listed) and d.label is not None}):
        if label not in structure.values:
            continue
        tied = [d for d in digits_of(structure) if d.label == label]
        if any(isinstance(d.at, Dynamic) for d in tied):
            continue
        columns = [as_array(d.at) for d in tied]
        # A list that two axes share adds no information the second time.
        different = {d.at: d.size for d in tied}
        keys = keys_of([as_array(at) for at in different], list(different.values()))
        if np.all(keys[1:] > keys[:-1]) or sketch(keys).distinct >= 1 - _REPEATED:
            continue
        entries, first, groups = distinct(keys)
        rows = iter([column[first] for column in columns])

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


@dataclass(frozen=True)
class Product:
    """How to compose two blocks, and what that costs.

    ``left`` and ``right`` express the axes of each value array in the labels of the product (None if a block has no
    values). Labels from ``len(structure.sizes)`` on are summed over. Each of ``guards`` is 1 where there are entries,
    which is known only at run time.
    """

    structure: Structure
    left: tuple[Axis, ...] | None
    right: tuple[Axis, ...] | None
    factor: float
    multiplications: int
    raw_multiplications: int
    additions: int
    free: tuple[int, ...] = ()
    guards: tuple[Axis, ...] = ()
    compactions: tuple[Compaction, ...] = ()
    is_sum: ClassVar[bool] = False


# Where digits do not suffice, products of fewer numbers are written with separate labels, larger ones with lists.
LARGE = 2_048


@lru_cache(CACHE)
def compose(left: Structure, right: Structure) -> Product | None:
    """The product of ``left`` after ``right``; None if it is zero everywhere."""
    try:
        return _compose(left, right)
    except Disjoint:
        return None
    except Unrepresentable:
        free = tuple(n for n, pair in enumerate(zip(left.inp, right.out, strict=True)) if not _plainly_equal(*pair))
        explicit = _compose(freed(left, (), free).structure, freed(right, free, ()).structure)
        listed = _listed(left, right) if explicit.structure.stored >= LARGE else None
        if listed is not None and listed.structure.stored < explicit.structure.stored:
            return listed
        return replace(explicit, free=free)


def _listed(left: Structure, right: Structure) -> Product | None:
    """The product by lists, where digits do not suffice; None if lists do not either."""
    try:
        return _compose(left, right, listing=True)
    except Unrepresentable:
        return None


def _plainly_equal(first: Axis, second: Axis) -> bool:
    return len(first) == len(second) <= 1 and all(d.at == range(d.size) for d in first + second)


def _compose(left: Structure, right: Structure, listing: bool = False) -> Product:
    offset = len(left.sizes)
    labels = Relabelling(left.sizes + right.sizes, listing)
    for inner, outer in zip(left.inp, shifted(right.out, offset), strict=True):
        labels.equate(inner, outer)
    out = [labels.resolve(axis) for axis in left.out]
    inp = [labels.resolve(axis) for axis in shifted(right.inp, offset)]
    # A list may name the point that it meets more than once, so the labels of both sides count.
    middle = [labels.resolve(axis) for axis in (*left.inp, *shifted(right.out, offset))]
    left_axes = [labels.resolve((whole(n, left.sizes[n]),)) for n in left.values]
    right_axes = [labels.resolve((whole(n + offset, right.sizes[n]),)) for n in right.values]

    kept = set(labels_of(out + inp))
    guards = [labels.resolve((guard,)) for guard in labels.guards]
    guarded = set(labels_of(guards))
    if not guarded <= kept:
        raise Unrepresentable
    in_left, in_right = set(labels_of(left_axes)), set(labels_of(right_axes))
    carried = in_left | in_right | guarded
    both_known = left.scale is not None and right.scale is not None and not guards
    # A summed label that no value has contributes its size as a factor.
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
        None if left.scale is not None else renumbered(left_axes, old),
        None if right.scale is not None else renumbered(right_axes, old),
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
        guards=renumbered(guards, old),
        compactions=compactions,
    )


def _known(structure: Structure) -> float:
    return 1.0 if structure.scale is None else structure.scale
