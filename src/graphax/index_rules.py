"""Rules for primitives that move entries about by indices, which are operands: known now, or only when run."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax import lax

from .axes import Digit, axis_along
from .block import JacobianBlock
from .positions import listed, progression
from .rule import LinearCall, renaming_rules_for, rules_for


@renaming_rules_for("dynamic_slice")
def _dynamic_slice(call):
    starts = _clamped(call.operands[1:], call.shape, call.out_shape)
    if starts is not None:
        return call.window(starts, [1] * len(starts))
    return call.linked([(n, n) for n in range(len(call.shape))])


@renaming_rules_for("dynamic_update_slice")
def _dynamic_update_slice(call):
    axes = range(len(call.out_shape))
    if call.position == 0:
        return call.pattern(axes, axes)
    starts = _clamped(call.operands[2:], call.out_shape, call.shape)
    if starts is None:
        return call.linked([(n, n) for n in axes])
    at = [progression(start, 1, size) for start, size in zip(starts, call.shape, strict=True)]
    return call.renaming([axis_along(n, at[n], call.out_shape[n]) for n in axes], axes)


def _clamped(starts: Sequence[Any], shape: Sequence[int], window: Sequence[int]) -> list[int] | None:
    """The start of a window, moved inside the array as XLA does, if it is known now."""
    if any(start is None or isinstance(start, jax.core.Tracer) for start in starts):
        return None
    return [max(0, min(int(s), n - w)) for s, n, w in zip(starts, shape, window, strict=True)]


@renaming_rules_for("gather")
def _gather(call):
    numbers, sizes = call.params["dimension_numbers"], call.params["slice_sizes"]
    gone = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    offsets = dict(zip([d for d in range(len(call.shape)) if d not in gone], numbers.offset_dims, strict=True))
    loops = [d for d in range(len(call.out_shape)) if d not in numbers.offset_dims]
    batches = dict(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True))
    known = _known_windows(call, call.shape, sizes, numbers.start_index_map, batches)
    if known is None:
        pairs = [(o, d) for d, o in offsets.items() if sizes[d] == call.shape[d]]
        return call.linked(pairs + [(loops[n], d) for d, n in batches.items()])
    sides = _windows(call.shape, call.out_shape, sizes, *known, loops, offsets)
    return None if sides is None else call.renaming(sides[1], sides[0])


def _known_windows(call: LinearCall, big: Sequence[int], sizes: Sequence[int], along: Sequence[int],
                   batches: dict[int, int]) -> tuple[dict[int, Any], list[Any]] | None:  # fmt: skip
    """Where the windows of a gather or scatter begin, by axis of the array ``big``, and their places among the loops.

    None if that is not known now. Windows that leave the array are moved inside or left out, as the mode says.
    """
    indices = call.operands[1]
    if indices is None or isinstance(indices, jax.core.Tracer):
        return None
    indices = np.asarray(indices).astype(np.int64)
    places = [grid.ravel() for grid in np.indices(indices.shape[:-1])]
    starts = {d: indices[..., n].ravel() for n, d in enumerate(along)} | {d: places[n] for d, n in batches.items()}
    last = {d: big[d] - sizes[d] for d in starts}
    if call.params["mode"] == lax.GatherScatterMode.CLIP:
        return {d: np.clip(start, 0, last[d]) for d, start in starts.items()}, places
    inside = np.all([(start >= 0) & (start <= last[d]) for d, start in starts.items()], axis=0)
    return {d: start[inside] for d, start in starts.items()}, [place[inside] for place in places]


def _windows(
    big: Sequence[int], small: Sequence[int], sizes: Sequence[int], starts: dict[int, Any], places: Sequence[Any],
    loops: Sequence[int], offsets: dict[int, int],
) -> tuple[list[Any], list[Any]] | None:  # fmt: skip
    """The axes of an array and of its windows, which stand side by side along ``loops``; None if there is no window."""
    count = len(places[0]) if places else 1
    if count == 0:
        return None
    # A window that begins somewhere else each time has its elements listed; one at a fixed place is a range.
    wandering = [d for d in offsets if sizes[d] > 1 and d in starts and np.any(starts[d] != starts[d][0])]
    shape = (count, *(sizes[d] for d in wandering))

    def spread(values: Any, axis: int = 0) -> np.ndarray:
        ordered = np.asarray(values).reshape([-1 if n == axis else 1 for n in range(len(shape))])
        return np.broadcast_to(ordered, shape).ravel()

    def digit(values: np.ndarray, size: int) -> tuple[Digit, ...]:
        return axis_along("window", listed(values), size)

    outer: list[Any] = [None] * len(big)
    inner: list[Any] = [None] * len(small)
    for loop, place in zip(loops, places, strict=True):
        inner[loop] = digit(spread(place), small[loop])
    for d, size in enumerate(sizes):
        start = starts.get(d, np.zeros(count, np.int64))
        if d in wandering:
            within = spread(np.arange(size), 1 + wandering.index(d))
            outer[d], inner[offsets[d]] = digit(spread(start) + within, big[d]), digit(within, size)
        elif size > 1:
            outer[d] = axis_along(("offset", d), progression(int(start[0]), 1, size), big[d])
            inner[offsets[d]] = axis_along(("offset", d), range(size), size)
        else:
            outer[d] = digit(spread(start), big[d])
            if d in offsets:
                inner[offsets[d]] = ()
    return outer, inner


@rules_for("scatter-add")
def _scatter_add(call):
    axes = range(len(call.out_shape))
    return call.renaming(axes, axes) if call.position == 0 else _scattered(call)


@renaming_rules_for("scatter")
def _scatter(call):
    axes = range(len(call.out_shape))
    if call.position:
        return _scattered(call)
    return call.pattern(axes, axes)


def _scattered(call: LinearCall) -> JacobianBlock | None:
    """The block of a scatter by its updates: each window goes where its index says."""
    numbers, axes = call.params["dimension_numbers"], range(len(call.out_shape))
    gone = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    offsets = dict(zip([d for d in axes if d not in gone], numbers.update_window_dims, strict=True))
    loops = [d for d in range(len(call.shape)) if d not in numbers.update_window_dims]
    batches = dict(zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True))
    sizes = [call.shape[offsets[d]] if d in offsets else 1 for d in axes]
    known = _known_windows(call, call.out_shape, sizes, numbers.scatter_dims_to_operand_dims, batches)
    if known is None:
        return call.linked([*offsets.items(), *((d, loops[n]) for d, n in batches.items())])
    sides = _windows(call.out_shape, call.shape, sizes, *known, loops, offsets)
    return None if sides is None else call.renaming(*sides)
