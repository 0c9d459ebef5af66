"""The entries that a gather reads and a scatter writes, for known indices. NumPy computes what XLA would do.

Places are positions in the flattened array. Negative places are outside of it.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

OUTSIDE = -1


def places_of_gather(eqn: Any, shape: Sequence[int], indices: np.ndarray) -> np.ndarray:
    """Per entry of the result of a gather, its place in the operand of the given shape."""
    numbers, sizes = eqn.params["dimension_numbers"], eqn.params["slice_sizes"]
    gone = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    batches = zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
    windows = _windows(shape, indices, numbers.start_index_map, batches, sizes, eqn.params["mode"])
    return _arranged(windows, indices.ndim - 1, gone, numbers.offset_dims)


def places_of_scatter(eqn: Any, shape: Sequence[int], indices: np.ndarray, updates: Sequence[int]) -> np.ndarray:
    """Per update of a scatter, its place in the operand of the given shape."""
    numbers = eqn.params["dimension_numbers"]
    gone = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    lengths = iter(updates[axis] for axis in numbers.update_window_dims)
    sizes = [1 if axis in gone else next(lengths) for axis in range(len(shape))]
    batches = zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True)
    windows = _windows(shape, indices, numbers.scatter_dims_to_operand_dims, batches, sizes, eqn.params["mode"])
    return _arranged(windows, indices.ndim - 1, gone, numbers.update_window_dims)


def places_of_slice(shape: Sequence[int], starts: Sequence[Any], sizes: Sequence[int]) -> np.ndarray:
    """The places of a window that begins at ``starts``, moved inside the array if necessary."""
    begun = [np.clip(int(start), 0, n - size) for start, n, size in zip(starts, shape, sizes, strict=True)]
    window = tuple(slice(start, start + size) for start, size in zip(begun, sizes, strict=True))
    return np.arange(prod(shape)).reshape(tuple(shape))[window]


def _windows(
    shape: Sequence[int], indices: np.ndarray, along: Sequence[int], batches: Any, sizes: Sequence[int], mode: Any
) -> np.ndarray:
    """The places of windows. The axes along which windows stand side by side come first, then the axes of a window."""
    loops = indices.shape[:-1]
    starts = np.zeros((*loops, len(shape)), np.int64)
    starts[..., list(along)] = indices
    for axis, loop in batches:
        starts[..., axis] = np.indices(loops)[loop]
    last = np.array(shape, np.int64) - np.array(sizes, np.int64)
    inside = np.all((starts >= 0) & (starts <= last), axis=-1)
    strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    within = np.zeros(tuple(sizes), np.int64)
    for axis, offsets in enumerate(np.indices(tuple(sizes))):
        within = within + offsets * strides[axis]
    first = np.clip(starts, 0, last) @ np.array(strides, np.int64).reshape(len(shape))
    places = first.reshape(*loops, *(1 for _ in sizes)) + within
    if leaves_out(mode):
        places = np.where(inside.reshape(*loops, *(1 for _ in sizes)), places, OUTSIDE)
    return places


def _arranged(windows: np.ndarray, loops: int, gone: Sequence[int], offsets: Sequence[int]) -> np.ndarray:
    """Windows without the axes ``gone``, and with their other axes moved to ``offsets`` among the loop axes."""
    kept = [size for axis, size in enumerate(windows.shape) if axis - loops not in gone]
    found = windows.reshape(kept)
    before = [axis for axis in range(found.ndim) if axis not in offsets]
    return np.moveaxis(found, range(found.ndim), [*before, *offsets])


def leaves_out(mode: Any) -> bool:
    """Whether windows that leave the array are left out. Otherwise they are moved inside."""
    return "FILL" in str(mode).upper() or "DROP" in str(mode).upper()
