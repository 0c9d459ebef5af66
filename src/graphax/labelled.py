"""Arrays whose axes carry labels.

`view` reads an array by labels. `place` is its inverse: it writes labelled values into a larger array of zeros.
`contract` multiplies and sums. The first two do no arithmetic, so the executed multiplications and additions are those
that `graphax.structure` counts.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, reduce
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import _jax
from .axes import Axis, Digit, axis_size, flat_positions, labels_of, whole
from .positions import Dynamic, Listed, Positions, as_array, highest, listed, lowest, step_of

Lists = Mapping[Hashable, Any]
NONE: Lists = {}

# Up to this many numbers may be gathered even if most of them are not entries.
_FEW = 1 << 14
# Up to this many members of a group are gathered side by side; only one if each is a row of `_LONG_ROW` or more
# numbers.
_MOST_SIDE_BY_SIDE, _LONG_ROW = 4, 64


def view(values: Any, axes: Sequence[Axis], lists: Lists = NONE) -> tuple[Any, list[int]]:
    """Read an array with axes ``axes`` by label: cut out windows and points, and take diagonals of repeated labels."""
    digits = [digit for axis in axes for digit in axis]
    values = reshaped(values, [d.size for d in digits])
    if not all(isinstance(d.at, range) for d in digits):
        values, digits = _picked(values, digits, lists)
    if any(d.at != range(d.size) or d.label is None for d in digits):
        low, high = [lowest(d.at) for d in digits], [highest(d.at) + 1 for d in digits]
        values = lax.slice(values, low, high, [abs(step_of(d.at)) for d in digits])
        values = lax.rev(values, [n for n, d in enumerate(digits) if step_of(d.at) < 0])
        values = reshaped(values, [len(d.at) for d in digits if d.label is not None])
    labels = [d.label for d in digits if d.label is not None]
    while len(set(labels)) < len(labels):
        first = next(n for n, label in enumerate(labels) if label in labels[n + 1 :])
        second = labels.index(labels[first], first + 1)
        rest = [n for n in range(len(labels)) if n not in (first, second)]
        size = values.shape[first]
        values = lax.transpose(values, [*rest, first, second])
        values = reshaped(values, (*values.shape[:-2], size * size))
        values = values[..., :: size + 1]
        labels = [labels[n] for n in rest] + [labels[first]]
    return values, labels


def _picked(values: Any, digits: list[Digit], lists: Lists) -> tuple[Any, list[Digit]]:
    """Read by lists. Afterwards, every label of a list has one axis, along which it runs from end to end."""
    for slot in reversed([n for n, d in enumerate(digits) if d.label is None and isinstance(d.at, Dynamic)]):
        index = positions_of(digits[slot].at, lists)[0]
        values = lax.dynamic_index_in_dim(values, index, slot, keepdims=False)
        digits = digits[:slot] + digits[slot + 1 :]
    for label in labels_of([tuple(d for d in digits if not isinstance(d.at, range))]):
        here = [n for n, d in enumerate(digits) if d.label == label]
        rest = [n for n in range(len(digits)) if n not in here]
        values = transposed(values, [*rest, *here])
        values = reshaped(values, [*(digits[n].size for n in rest), prod(digits[n].size for n in here)])
        indices: Any = np.zeros((), np.int64)
        for n in here:
            indices = indices * digits[n].size + positions_of(digits[n].at, lists)
        at = listed(indices) if isinstance(indices, np.ndarray) else None
        digits = [*(digits[n] for n in rest), whole(label, len(indices))]
        if isinstance(at, range):
            digits[-1] = Digit(label, at, values.shape[-1])
        else:
            values = picked(values, indices)
    return values, digits


def positions_of(at: Positions, lists: Lists) -> Any:
    """The positions as an array: a NumPy array if they are known already."""
    if not isinstance(at, Dynamic):
        return as_array(at)
    positions = lists[at.name]
    for step, operand in at.steps:
        if step == "of" and isinstance(operand, range):
            positions = operand.start + operand.step * positions
        elif step == "of":
            positions = jnp.asarray(operand.array.astype(positions.dtype))[positions]
        elif step == "at":
            positions = positions[positions_of(operand, lists)]
        else:
            positions = positions // operand if step == "div" else positions % operand
    return positions


def picked(values: Any, indices: Any) -> jax.Array:
    """The values at indices along the last axis. All indices must be inside it."""
    rest = np.shape(values)[:-1]
    numbers = lax.GatherDimensionNumbers(tuple(range(len(rest))), (len(rest),), (len(rest),))
    where = indices if isinstance(indices, jax.Array) else indices.astype(index_type(np.shape(values)[-1]))
    where = where[:, None]
    return lax.gather(values, where, numbers, (*rest, 1), mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS)


def index_type(size: int) -> Any:
    """The integer type for the positions along an axis."""
    return np.int32 if size <= np.iinfo(np.int32).max else np.int64


def _added(values: Any, labels: Sequence[int], axes: Sequence[Axis], lists: Lists) -> jax.Array:
    """Add values into an array of zeros, at positions that may be listed more than once."""
    sizes: dict[int, int] = {d.label: len(d.at) for axis in axes for d in axis if d.label is not None}
    digits = [digit for axis in axes for digit in axis]
    beside = _beside_lists(digits)
    rest = [n for n in range(len(digits)) if n not in beside]
    # Whole digits that are not tied to a list are moved in rows, so only each row of them needs a position.
    kept = [label for n in beside if (label := digits[n].label) is not None]
    own = sorted(label for label in sizes if label not in kept)
    shape = [sizes[n] for n in own]
    where = flat_positions([tuple(digits[n] for n in rest)], own, shape, partial(positions_of, lists=lists))
    numbers = spread(jnp.asarray(values), list(labels), [*own, *kept], [*shape, *(sizes[n] for n in kept)])
    numbers = reshaped(numbers, (where.size, *(sizes[n] for n in kept)))
    dense = summed_in_groups([numbers], 0, where, prod(digits[n].size for n in rest))
    order = [*rest, *beside]
    dense = transposed(reshaped(dense, [digits[n].size for n in order]), np.argsort(order).tolist())
    return reshaped(dense, [axis_size(axis) for axis in axes])


def _beside_lists(digits: Sequence[Digit]) -> list[int]:
    """The digits that follow a label of their own from end to end."""
    count = Counter(digit.label for digit in digits)
    return [n for n, d in enumerate(digits) if d.at == range(d.size) and d.label is not None and count[d.label] == 1]


def summed_in_groups(pieces: Sequence[Any], axis: int, groups: Any, count: int) -> jax.Array:
    """Sums of the values in each group, where the pieces are concatenated along an axis.

    For truth values, the result is whether any value is true. The members of small groups are gathered side by side, so
    nothing is scattered. If group sizes differ a lot, most of what is gathered would not be entries, and scattering is
    faster. Scattering is also faster for large groups, because XLA recomputes a gathered sum for every entry that reads
    it. Groups that are known only at run time, which must be of one piece, are scattered as well.
    """
    pieces = [jnp.asarray(piece) for piece in pieces]
    known = isinstance(groups, np.ndarray)
    if known and len(pieces) > 1 and len(np.unique(groups)) == len(groups):
        # Nothing is summed, so one gather brings all pieces into order.
        pieces = [lax.concatenate(pieces, axis)]
    ends = np.cumsum([piece.shape[axis] for piece in pieces])
    parts = list(zip(pieces, np.split(groups, ends[:-1]) if known else [groups], strict=True))
    sizes = [np.bincount(group, minlength=count) for _, group in parts] if known else []
    truth = pieces[0].dtype == bool
    most, row = sum(int(n.max()) for n in sizes), prod(np.delete(pieces[0].shape, axis).tolist())
    limit = _MOST_SIDE_BY_SIDE if row < _LONG_ROW else 1
    if not known or most > limit or count * most > max(2 * len(groups), _FEW):
        shape = (count, *np.delete(pieces[0].shape, axis))
        total = jnp.zeros(shape, pieces[0].dtype)
        for piece, group in parts:
            into = total.at[group.astype(index_type(count))]
            total = (into.max if truth else into.add)(jnp.moveaxis(piece, axis, 0), mode="promise_in_bounds")
        return jnp.moveaxis(total, 0, axis)
    terms: list[Any] = []
    for (piece, group), size in zip(parts, sizes, strict=True):
        for row in _members(group, size):
            # Adding a negative zero changes nothing, not even a zero; an empty sum is a zero.
            terms.append(
                _picked_or(jnp.moveaxis(piece, axis, -1), row, like(piece, -0.0) if terms else nothing_like(piece))
            )
    return jnp.moveaxis(reduce(lax.bitwise_or if truth else lax.add, terms), -1, axis)


def _members(groups: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The members of all groups: row n has the n-th member of each, or an index past the end if a group has fewer."""
    order = np.argsort(groups, kind="stable")
    within = np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    members = np.full((int(sizes.max()), len(sizes)), len(groups))
    members[within, groups[order]] = order
    return members


def _picked_or(values: Any, indices: np.ndarray, other: Any) -> jax.Array:
    """The values at known indices along the last axis, and ``other`` where an index is past its end."""
    length = np.shape(values)[-1]
    inside = indices < length
    if inside.all():
        return picked(values, indices)
    found = picked(values, np.where(inside, indices, 0))
    return lax.select(np.broadcast_to(inside, found.shape), found, lax.broadcast(other, found.shape))


def _joined(digits: list[Digit]) -> tuple[list[Digit], list[int]]:
    """Digits that a label runs through together, like the hands of a clock, joined into one digit after the others.

    Returns the digits, and the order of the original digits in this arrangement.
    """
    for label in labels_of([tuple(d for d in digits if isinstance(d.at, Listed))]):
        here = [n for n, d in enumerate(digits) if d.label == label and not isinstance(d.at, Dynamic)]
        at = listed(flat_positions([tuple(digits[n] for n in here)], [label], [len(digits[here[0]].at)]))
        if len(here) > 1 and isinstance(at, range):
            rest = [n for n in range(len(digits)) if n not in here]
            whole_digit = Digit(label, at, prod(digits[n].size for n in here))
            return [*(digits[n] for n in rest), whole_digit], [*rest, *here]
    return digits, list(range(len(digits)))


def place(values: Any, labels: Sequence[int], axes: Sequence[Axis], lists: Lists = NONE) -> jax.Array:
    """Write values with ``labels`` into an array with axes ``axes``. Entries that no label points to are zero."""
    digits = [digit for axis in axes for digit in axis]
    joined, order = _joined(digits)
    if len(joined) < len(digits):
        parts = place(values, labels, [(digit,) for digit in joined], lists)
        parts = transposed(reshaped(parts, [digits[n].size for n in order]), np.argsort(order).tolist())
        return reshaped(parts, [axis_size(axis) for axis in axes])
    first: dict[int | None, int] = {}
    for slot, digit in enumerate(digits):
        if digit.label is not None and isinstance(digit.at, range):
            first.setdefault(digit.label, slot)
    searched = [n for n, d in enumerate(digits) if isinstance(d.at, Dynamic)]
    if any(isinstance(d.at, Listed) for d in digits) or any(digits[n].label not in {None, *first} for n in searched):
        return _added(values, labels, axes, lists)
    # Comparing run-time positions with all positions is faster than scattering.
    sought = {n: (digits[n].label, positions_of(digits[n].at, lists)) for n in searched}
    digits = [whole(-n - 1, d.size) if n in sought else d for n, d in enumerate(digits)]
    shape = [len(d.at) for d in digits]
    slots = [first[label] for label in labels]
    order = sorted(range(len(slots)), key=slots.__getitem__)
    values = lax.broadcast_in_dim(transposed(values, order), shape, [slots[n] for n in order])
    position = partial(lax.broadcasted_iota, np.int32, shape)
    tied = [(first[d.label], slot) for slot, d in enumerate(digits) if first.get(d.label, slot) != slot]
    where = [lax.eq(position(dimension=a), position(dimension=b)) for a, b in tied]
    for slot, (label, wanted) in sought.items():
        along = () if label is None else (first[label],)
        wanted = lax.broadcast_in_dim(wanted.astype(np.int32) if along else wanted[0].astype(np.int32), shape, along)
        where.append(lax.eq(position(dimension=slot), wanted))
    if where:
        values = lax.select(reduce(lax.bitwise_and, where), values, lax.broadcast(nothing_like(values), values.shape))
    backward = [n for n, d in enumerate(digits) if step_of(d.at) < 0]
    if backward:
        values = lax.rev(values, backward)
    if any(len(d.at) < d.size for d in digits):
        margins = [(lowest(d.at), d.size - 1 - highest(d.at), abs(step_of(d.at)) - 1) for d in digits]
        values = lax.pad(values, nothing_like(values), margins)
    target = [axis_size(axis) for axis in axes]
    return reshaped(values, target)


def contract(left: tuple[Any, list[int]], right: tuple[Any, list[int]], out: Sequence[int]) -> jax.Array:
    """Multiply two labelled arrays and sum over the labels that ``out`` lacks."""
    kept = set(out)
    a, a_labels = sum_out(*left, keep=kept | set(right[1]))
    b, b_labels = sum_out(*right, keep=kept | set(left[1]))
    dtype = common_dtype(a, b)
    a, b = of_dtype(a, dtype), of_dtype(b, dtype)
    shared = [label for label in a_labels if label in b_labels]
    summed = [label for label in shared if label not in kept]
    if not summed:
        sizes = dict(zip(a_labels, a.shape, strict=True)) | dict(zip(b_labels, b.shape, strict=True))
        shape = [sizes[label] for label in out]
        return lax.mul(*(spread(values, labels, out, shape) for values, labels in ((a, a_labels), (b, b_labels))))
    batch = [label for label in shared if label in kept]
    numbers = tuple(
        ([labels.index(n) for n in summed], [labels.index(n) for n in batch]) for labels in (a_labels, b_labels)
    )
    product = lax.dot_general(a, b, ((numbers[0][0], numbers[1][0]), (numbers[0][1], numbers[1][1])))
    labels = batch + [n for n in a_labels if n not in shared] + [n for n in b_labels if n not in shared]
    return arranged(product, labels, out)


def common_dtype(*arrays: Any) -> Any:
    """The dtype of a sum or product, independent of the promotion that the user allows in their own code."""
    if arrays and all(array.dtype == arrays[0].dtype for array in arrays):
        return arrays[0].dtype
    with jax.numpy_dtype_promotion("standard"):
        return jnp.result_type(*arrays or [float])


def of_dtype(values: Any, dtype: Any) -> Any:
    """Values converted to a dtype. The result never has a weak type, which would give way to others."""
    strong = values.dtype == dtype and not getattr(values, "weak_type", False)
    return values if strong else lax.convert_element_type(values, dtype)


def sum_out(values: Any, labels: list[int], keep: set[int]) -> tuple[Any, list[int]]:
    axes = [n for n, label in enumerate(labels) if label not in keep]
    if not axes:
        return values, labels
    return lax.reduce_sum(values, axes), [label for label in labels if label in keep]


def spread(values: Any, labels: list[int], out: Sequence[int], shape: Sequence[int]) -> jax.Array:
    """Values laid out along the labels ``out``, and repeated along labels that they lack."""
    order = sorted(range(len(labels)), key=lambda n: out.index(labels[n]))
    values = transposed(values, order)
    if values.shape == tuple(shape):
        return values
    return lax.broadcast_in_dim(values, tuple(shape), [out.index(labels[n]) for n in order])


def arranged(values: Any, labels: Sequence[int], out: Sequence[int]) -> Any:
    return transposed(values, [list(labels).index(label) for label in out])


def reshaped(values: Any, shape: Sequence[int]) -> Any:
    return values if np.shape(values) == tuple(shape) else lax.reshape(values, shape)


def transposed(values: Any, order: Sequence[int]) -> Any:
    return values if list(order) == list(range(len(order))) else lax.transpose(values, order)


def like(values: Any, number: float) -> np.ndarray:
    return np.asarray(number, values.dtype)


# A zero that stands for the absence of an entry. To XLA it is zero; kernels save arithmetic with it.
NOTHING = "graphax_nothing"
_nothing = _jax.define_number(NOTHING, 0)
_told_apart: ContextVar[bool] = ContextVar("told_apart", default=False)


@contextmanager
def nothing_told_apart(told: bool = True) -> Iterator[None]:
    """Set whether traced code distinguishes absent entries from zeros, as code that may become a kernel does."""
    before = _told_apart.set(told)
    try:
        yield
    finally:
        _told_apart.reset(before)


def nothing_like(values: Any) -> Any:
    """The value that stands for an absent entry, for blocks with values like these."""
    told = _told_apart.get() and jax.dtypes.issubdtype(values.dtype, np.inexact)
    return _nothing(values.dtype) if told else like(values, 0)
