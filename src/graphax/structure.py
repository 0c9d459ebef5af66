"""Structures: the shape of a Jacobian block and the entries that can differ from zero.

A block is an einsum term. Every axis of the output and of the input carries labels (see `graphax.axes`). A label on
both sides *is* a Kronecker delta; a label that the values lack is replication. A block whose coefficient is a known
number has no values at all, and with coefficient 1 it only renames.

    J[out, inp] = coefficient * values[labels of the values] * deltas

Nothing in this module, `graphax.products` or `graphax.sums` touches an array. These modules work out products and sums
of blocks and their costs; `graphax.part` carries them out.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import prod

import numpy as np

from .axes import Axis, Digit, Disjoint, Relabelling, Unrepresentable, axis_size, labels_of, shifted, whole
from .keys import keys_of
from .positions import Dynamic, Listed, as_array, highest, lowest

CACHE = 1 << 14


@dataclass(frozen=True, eq=False)
class Structure:
    """The static part of a Jacobian block.

    Attributes:
        out, inp: one `Axis` per axis of the output and of the input.
        sizes: the size of each label; labels are numbered by first appearance in ``out``, then ``inp``.
        values: the labels of the value array, ascending.
        scale: the coefficient if it is a number known before execution (then there is no value array), else None.
        renaming: True for a coefficient 1 that comes from moving entries (transpose, slice, ...) rather than from
            arithmetic. Raw counting does not count it.
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
        # Structures are used as dictionary keys everywhere, so their hash is computed once.
        key = (self.out, self.inp, self.sizes, self.values, self.scale, self.renaming)
        object.__setattr__(self, "_key", key)
        object.__setattr__(self, "_hash", hash(key))

    def __reduce__(self):
        # Hashes differ between processes.
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
        """The number of values that the block stores."""
        return 0 if self.scale is not None else prod(self.value_shape)

    @cached_property
    def names(self) -> frozenset[Hashable]:
        """The names of the lists known only at run time."""
        return frozenset[Hashable]().union(*(d.at.names for d in digits_of(self) if isinstance(d.at, Dynamic)))

    @property
    def transposed(self) -> "Structure":
        """The structure with output and input exchanged."""
        return turned(self)[0]

    def __str__(self):
        names = "ijklmnopqrstuvwxyzabcdefgh"

        def name(label: int) -> str:
            return names[label] if label < len(names) else f"<{label}>"

        def axis_text(axis: Axis) -> str:
            parts = []
            for label, at, size in axis:
                text = "" if label is None else name(label)
                if not isinstance(at, range):
                    text += "@list" if isinstance(at, Listed) else "@run"
                elif at != range(size):
                    step = "" if abs(at.step) == 1 or len(at) == 1 else f":{abs(at.step)}"
                    text += f"@{lowest(at)}{step}" if len(at) == 1 or at.step > 0 else f"@{highest(at)}:-{abs(at.step)}"
                parts.append(text)
            return "·".join(parts) if parts else "1"

        out, inp = (",".join(axis_text(axis) for axis in side) for side in (self.out, self.inp))
        coefficient = f"{self.scale:g}" if self.scale is not None else "v" + "".join(name(v) for v in self.values)
        return f"{coefficient}[{out}|{inp}]"


def turned(structure: Structure) -> tuple[Structure, list[int]]:
    """The structure with output and input exchanged, and the permutation of the axes of its values."""
    found, old = canonical(
        structure.inp, structure.out, structure.sizes, structure.values, structure.scale, structure.renaming
    )
    return found, [structure.values.index(old[label]) for label in found.values]


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
        renumbered(out, old),
        renumbered(inp, old),
        tuple(sizes[label] for label in old),
        tuple(sorted(new[label] for label in values)),
        scale,
        renaming,
    )
    return structure, old


def renumbered(axes: Iterable[Axis], old: Sequence[int]) -> tuple[Axis, ...]:
    new = {label: number for number, label in enumerate(old)}
    return tuple(tuple(d if d.label is None else d._replace(label=new[d.label]) for d in axis) for axis in axes)


def identity(shape: Sequence[int], scale: float = 1.0, renaming: bool = False) -> Structure:
    axes = tuple(() if size == 1 else (whole(number, size),) for number, size in enumerate(shape))
    return canonical(axes, axes, shape, (), scale, renaming)[0]


def zero(out_shape: Sequence[int], inp_shape: Sequence[int]) -> Structure:
    """The structure without entries, for an output that does not depend on an input."""
    return dense(out_shape, inp_shape, scale=0.0)


def dense(out_shape: Sequence[int], inp_shape: Sequence[int], scale: float | None = None) -> Structure:
    shape = (*out_shape, *inp_shape)
    axes = tuple(() if size == 1 else (whole(number, size),) for number, size in enumerate(shape))
    values = () if scale is not None else labels_of(axes)
    return canonical(axes[: len(out_shape)], axes[len(out_shape) :], shape, values, scale)[0]


@dataclass(frozen=True)
class Recast:
    """A block rewritten with another structure: its values are placed along ``axes`` (in the old labels)."""

    structure: Structure
    axes: tuple[Axis, ...]


@lru_cache(CACHE)
def freed(structure: Structure, out: tuple[int, ...], inp: tuple[int, ...]) -> Recast:
    """Give the named axes labels of their own, and move their ties to other axes into the values."""
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


def without_lists(structure: Structure, kinds: tuple[type, ...] = (Listed, Dynamic)) -> Recast:
    """The block with separate labels for axes that are lists of the given kinds."""
    out, inp = (
        tuple(n for n, axis in enumerate(axes) if any(isinstance(d.at, kinds) for d in axis))
        for axes in (structure.out, structure.inp)
    )
    return freed(structure, out, inp)


@lru_cache(CACHE)
def renamed(structure: Structure, prefix: Hashable) -> Structure:
    """The structure with ``prefix`` added to the names of positions known only at run time."""

    def anew(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
        return tuple(
            tuple(d._replace(at=d.at.renamed(prefix)) if isinstance(d.at, Dynamic) else d for d in axis)
            for axis in axes
        )

    return replace(structure, out=anew(structure.out), inp=anew(structure.inp)) if structure.names else structure


def tied_alike(structure: Structure) -> Structure:
    """A pattern that contains this one, in which digits that follow the same list share a new label instead.

    This way, entries of a batch that are picked by lists stay in their batch, whatever else the lists do.
    """
    lists = [d for d in digits_of(structure) if not isinstance(d.at, range)]
    sizes = list(structure.sizes)
    labels: dict[Digit, int] = {}
    for digit in lists:
        if lists.count(digit) > 1 and digit not in labels:
            labels[digit] = len(sizes)
            sizes.append(digit.size)

    def anew(axes: tuple[Axis, ...]) -> list[Axis]:
        return [tuple(whole(labels[d], d.size) if d in labels else d for d in axis) for axis in axes]

    if not labels:
        return structure
    out, inp = anew(structure.out), anew(structure.inp)
    return canonical(out, inp, sizes, labels_of((*out, *inp)), None)[0]


def repeats_entries(structure: Structure) -> bool:
    """True if lists name an entry more than once."""
    for label in range(len(structure.sizes)):
        digits = [digit for digit in digits_of(structure) if digit.label == label]
        if digits and all(isinstance(digit.at, Listed) for digit in digits):
            keys = keys_of([as_array(digit.at) for digit in digits], [digit.size for digit in digits])
            if len(np.unique(keys)) < len(keys):
                return True
    return False


def overlap(left: Structure, right: Structure) -> bool:
    """True if two blocks may have an entry in common."""
    labels = Relabelling(left.sizes + right.sizes)
    try:
        for one, other in zip(left.out + left.inp, shifted(right.out + right.inp, len(left.sizes)), strict=True):
            labels.equate(one, other)
    except Disjoint:
        return False
    except Unrepresentable:
        return True
    return True


def digits_of(structure: Structure) -> Iterator[Digit]:
    return (digit for axis in structure.out + structure.inp for digit in axis)
