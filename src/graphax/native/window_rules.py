"""Windows that slide along axes: their sums and extremes, and convolutions, written out tap by tap."""

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from .. import _jax
from ..errors import NativeError
from .contraction_rules import contracted
from .unroll import Numbers, Unrolling
from .unroll_rules import padded, rule

_COMBINED = {"reduce_window_sum": "add", "reduce_window_max": "max", "reduce_window_min": "min"}


@rule(*_COMBINED)
def _reduce_window(u: Unrolling, eqn: Any, x: Numbers) -> Numbers:
    """Entries of a window are combined in order. The padding takes no part in it."""
    params, operation = eqn.params, _COMBINED[eqn.primitive.name]
    start = {"add": 0, "max": -np.inf, "min": np.inf}[operation]
    dtype = np.dtype(_jax.dtype(eqn.invars[0]))
    if 0 in (*params["window_dimensions"], *_jax.shape(eqn.outvars[0])):
        raise NativeError("windows without entries are not supported")
    if dtype.kind != "f":
        raise NativeError("windows of whole numbers are not supported")
    x = padded(x, u.constants(start, dtype), _config(params["padding"], params["base_dilation"]))
    taps = _taps(x, params["window_dimensions"], params["window_strides"], params["window_dilation"],
                 _jax.shape(eqn.outvars[0]))  # fmt: skip
    total = next(taps)
    for tap in taps:
        total = u.apply(operation, total, tap)
    return total


@rule("conv_general_dilated")
def _convolution(u: Unrolling, eqn: Any, lhs: Numbers, rhs: Numbers) -> Numbers:
    """Products of patches with kernels, with the groups as a shared axis. Nothing is multiplied by the padding."""
    params, dtype = eqn.params, _jax.dtype(eqn.outvars[0])
    if params["batch_group_count"] != 1:
        raise NativeError("convolutions of batches in groups are not supported")
    if any(_jax.dtype(atom) != dtype for atom in eqn.invars):
        raise NativeError("convolutions of numbers of several types are not supported")
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    lhs, rhs = lhs.transpose(lhs_spec), rhs.transpose(rhs_spec)
    shape = tuple(_jax.shape(eqn.outvars[0])[n] for n in out_spec)
    if 0 in shape:
        return np.zeros(_jax.shape(eqn.outvars[0]), np.int64)
    groups, sizes = params["feature_group_count"], rhs.shape[2:]
    absent = np.array(u.builder.nothing(dtype))
    lhs = padded(lhs, absent, [(0, 0, 0), (0, 0, 0), *_config(params["padding"], params["lhs_dilation"])])
    taps = _taps(lhs, (1, 1, *sizes), (1, 1, *params["window_strides"]), (1, 1, *params["rhs_dilation"]),
                 (*lhs.shape[:2], *shape[2:]))  # fmt: skip
    # The axes of the patches are taps, points, groups, channels and positions.
    patches = np.stack(list(taps)).reshape(prod(sizes), shape[0], groups, rhs.shape[1], prod(shape[2:]))
    patches = patches.transpose(3, 0, 2, 1, 4).reshape(rhs.shape[1] * prod(sizes), groups, shape[0] * prod(shape[2:]))
    kernels = rhs.reshape(groups, shape[1] // groups, rhs.shape[1] * prod(sizes)).transpose(2, 0, 1)
    result = contracted(u, patches, kernels, dtype).reshape(groups, shape[0], prod(shape[2:]), -1)
    # The result of a window that lies in the padding is a number like any other.
    zero = u.builder.constant(0, dtype)
    result = u.elements(lambda n: zero if u.builder.is_nothing(n) else n, result)
    return result.transpose(1, 0, 3, 2).reshape(shape).transpose(np.argsort(out_spec))


def _config(padding: Sequence[tuple[int, int]], dilation: Sequence[int]) -> list[tuple[int, int, int]]:
    return [(low, high, step - 1) for (low, high), step in zip(padding, dilation, strict=True)]


def _taps(
    x: Numbers, sizes: Sequence[int], strides: Sequence[int], dilations: Sequence[int], shape: Sequence[int]
) -> Iterator[Numbers]:
    """For each entry of a window, the array of what all windows have there."""
    for at in np.ndindex(*sizes):
        starts = [n * dilation for n, dilation in zip(at, dilations, strict=True)]
        parts = zip(starts, strides, shape, strict=True)
        yield x[tuple(slice(start, start + (count - 1) * stride + 1, stride) for start, stride, count in parts)]
