"""Arrays whose axes carry labels.

`view` reads an array by labels, `place` is its inverse and writes labelled values into a larger array of zeros,
`contract` multiplies and sums. The first two do no arithmetic, so the multiplications and additions executed are those
that `graphax.structure` counts.
"""

from collections.abc import Sequence
from functools import partial, reduce
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .axes import Axis, Digit, axis_size, flat_positions, labels_of, whole
from .positions import Listed, as_array, highest, listed, lowest, step_of

# So many numbers are always gathered: kernels take gathers by known indices, and no scatters.
_FEW = 1 << 14


def view(values: Any, axes: Sequence[Axis]) -> tuple[Any, list[int]]:
    """Read an array whose axes are ``axes`` by label: cut out windows and points, take diagonals of repeated labels."""
    digits = [digit for axis in axes for digit in axis]
    values = reshaped(values, [d.size for d in digits])
    if any(isinstance(d.at, Listed) for d in digits):
        values, digits = _picked(values, digits)
    if any(d.at != range(d.size) for d in digits):
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


def _picked(values: Any, digits: list[Digit]) -> tuple[Any, list[Digit]]:
    """Read by lists: afterwards every label of a list has one axis, along which it runs from end to end."""
    for label in labels_of([tuple(d for d in digits if isinstance(d.at, Listed))]):
        here = [n for n, d in enumerate(digits) if d.label == label]
        rest = [n for n in range(len(digits)) if n not in here]
        values = transposed(values, [*rest, *here])
        values = reshaped(values, [*(digits[n].size for n in rest), prod(digits[n].size for n in here)])
        indices = np.zeros((), np.int64)
        for n in here:
            indices = indices * digits[n].size + as_array(digits[n].at)
        at = listed(indices)
        digits = [*(digits[n] for n in rest), Digit(label, at, values.shape[-1])]
        if isinstance(at, Listed):
            values = picked(values, at.array)
            digits[-1] = whole(label, len(at))
    return values, digits


def picked(values: Any, indices: np.ndarray) -> jax.Array:
    """The values at known indices along the last axis."""
    rest = np.shape(values)[:-1]
    numbers = lax.GatherDimensionNumbers(tuple(range(len(rest))), (len(rest),), (len(rest),))
    where = indices.astype(np.int32 if np.shape(values)[-1] <= np.iinfo(np.int32).max else np.int64)[:, None]
    return lax.gather(values, where, numbers, (*rest, 1), mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS)


def _added(values: Any, labels: Sequence[int], axes: Sequence[Axis]) -> jax.Array:
    """Add values into an array of zeros, at positions that may be listed more than once."""
    sizes: dict[int, int] = {d.label: len(d.at) for axis in axes for d in axis if d.label is not None}
    own = sorted(sizes)
    shape = [sizes[n] for n in own]
    where = flat_positions(axes, own, shape)
    total = prod(axis_size(axis) for axis in axes)
    numbers = spread(jnp.asarray(values), list(labels), own, shape)
    dense = summed_in_groups(reshaped(numbers, (where.size,)), 0, where, total)
    return reshaped(dense, [axis_size(axis) for axis in axes])


def summed_in_groups(values: Any, axis: int, groups: np.ndarray, count: int) -> jax.Array:
    """Sums of the values along an axis that are in the same group; of truth values, whether any of them is true.

    The members of each group are gathered side by side, with zeros where a group has fewer than others, so that nothing
    is scattered. Where groups differ much in size, that would take longer.
    """
    sizes = np.bincount(groups, minlength=count)
    most = int(sizes.max())
    values = jnp.moveaxis(jnp.asarray(values), axis, -1)
    if most * count > max(4 * len(groups), _FEW):
        into = jnp.zeros((*values.shape[:-1], count), values.dtype).at[..., groups]
        total = (into.max if values.dtype == bool else into.add)(values, mode="promise_in_bounds")
        return jnp.moveaxis(total, -1, axis)
    order = np.argsort(groups, kind="stable")
    within = np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    members = np.full((most, count), len(groups))
    members[within, groups[order]] = order
    members[0, sizes == 0] += 1
    if not (sizes == most).all():
        # Adding a negative zero changes nothing, not even a zero; a sum of nothing is a zero.
        for zero in (-0.0, 0.0):
            values = lax.pad(
                values, like(values, zero), [(0, int(n == values.ndim - 1), 0) for n in range(values.ndim)]
            )
    plus = lax.bitwise_or if values.dtype == bool else lax.add
    return jnp.moveaxis(reduce(plus, [picked(values, row) for row in members]), -1, axis)


def place(values: Any, labels: Sequence[int], axes: Sequence[Axis]) -> jax.Array:
    """Write values with ``labels`` into an array whose axes are ``axes``, zero wherever no label points."""
    digits = [digit for axis in axes for digit in axis]
    if any(isinstance(d.at, Listed) for d in digits):
        return _added(values, labels, axes)
    first: dict[int | None, int] = {}
    for slot, digit in enumerate(digits):
        first.setdefault(digit.label, slot)
    shape = [len(d.at) for d in digits]
    slots = [first[label] for label in labels]
    order = sorted(range(len(slots)), key=slots.__getitem__)
    values = lax.broadcast_in_dim(transposed(values, order), shape, [slots[n] for n in order])
    tied = [(first[d.label], slot) for slot, d in enumerate(digits) if d.label is not None and first[d.label] != slot]
    if tied:
        position = partial(lax.broadcasted_iota, np.int32, shape)
        where = [lax.eq(position(dimension=a), position(dimension=b)) for a, b in tied]
        mask = where[0]
        for other in where[1:]:
            mask = lax.bitwise_and(mask, other)
        values = lax.select(mask, values, lax.full_like(values, 0))
    backward = [n for n, d in enumerate(digits) if step_of(d.at) < 0]
    if backward:
        values = lax.rev(values, backward)
    if any(len(d.at) < d.size for d in digits):
        margins = [(lowest(d.at), d.size - 1 - highest(d.at), abs(step_of(d.at)) - 1) for d in digits]
        values = lax.pad(values, like(values, 0), margins)
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
    """The dtype of a sum or product, whatever promotion the user allows in their own code."""
    if arrays and all(array.dtype == arrays[0].dtype for array in arrays):
        return arrays[0].dtype
    with jax.numpy_dtype_promotion("standard"):
        return jnp.result_type(*arrays or [float])


def of_dtype(values: Any, dtype: Any) -> Any:
    """Values as numbers of a dtype, and never of a weak type, which would give way to others."""
    strong = values.dtype == dtype and not getattr(values, "weak_type", False)
    return values if strong else lax.convert_element_type(values, dtype)


def sum_out(values: Any, labels: list[int], keep: set[int]) -> tuple[Any, list[int]]:
    axes = [n for n, label in enumerate(labels) if label not in keep]
    if not axes:
        return values, labels
    return lax.reduce_sum(values, axes), [label for label in labels if label in keep]


def spread(values: Any, labels: list[int], out: Sequence[int], shape: Sequence[int]) -> jax.Array:
    """Values laid out along the labels ``out``, repeated along those they lack."""
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
