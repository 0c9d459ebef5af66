"""Rules for primitives that move entries by index operands, which are known in advance or only at run time."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .axes import Axis, axis_along
from .block import JacobianBlock
from .labelled import Lists, index_type
from .positions import Dynamic, Positions, listed, progression
from .rule import LinearCall, renaming_rules_for, rules_for


@renaming_rules_for("dynamic_slice")
def _dynamic_slice(call):
    axes = range(len(call.shape))
    if None in call.operands[1:]:
        return call.linked([(n, n) for n in axes])
    inside, lists = _inside(call, call.operands[1:], call.shape, call.out_shape)
    return call.renaming(axes, inside, lists)


@renaming_rules_for("dynamic_update_slice")
def _dynamic_update_slice(call):
    axes = range(len(call.out_shape))
    if call.position == 0:
        return call.pattern(axes, axes)
    if None in call.operands[2:]:
        return call.linked([(n, n) for n in axes])
    inside, lists = _inside(call, call.operands[2:], call.out_shape, call.shape)
    return call.renaming(inside, axes, lists)


def _inside(
    call: LinearCall, starts: Sequence[Any], shape: Sequence[int], window: Sequence[int]
) -> tuple[list[Axis], Lists]:
    """The axes of the array that a window lies on. As in XLA, the window is moved inside the array."""
    axes, lists = [], {}
    for axis, (start, size, length) in enumerate(zip(starts, shape, window, strict=True)):
        at: Positions
        if size == length or not isinstance(start, jax.core.Tracer):
            at = progression(max(0, min(int(start), size - length)) if size > length else 0, 1, length)
        else:
            at = Dynamic(length, (call.name, axis))
            lists[at.name] = _clipped(start, size - length, size) + np.arange(length, dtype=index_type(size))
        axes.append(axis_along(axis, at, size))
    return axes, lists


def _clipped(start: Any, last: int, size: int) -> Any:
    """Indices clipped to 0, ..., ``last``, as integers wide enough for ``size`` positions."""
    return jnp.clip(start, 0, min(last, jnp.iinfo(start.dtype).max)).astype(index_type(size))


@dataclass(frozen=True, eq=False)
class _Windows:
    """Windows of a large array that stand side by side in a small one, as a gather reads and a scatter writes them.

    Attributes:
        large, small: the shapes of the arrays.
        sizes: the shape of a window, by axis of the large array.
        starts: the start of each window, by axis of the large array; axes with a constant start of 0 may be absent.
        places: the position of each window, by axis in ``loops``.
        loops: the axes of the small array along which windows stand side by side.
        offsets: maps axes of the large array to axes of the small array.
        inside: whether each window exists, if that is known only at run time.
    """

    large: Sequence[int]
    small: Sequence[int]
    sizes: Sequence[int]
    starts: dict[int, Any]
    places: Sequence[np.ndarray]
    loops: Sequence[int]
    offsets: dict[int, int]
    inside: Any = None

    def axes(self, name: Any) -> tuple[list[Any], list[Any], Lists]:
        """The axes of both arrays, and the positions known only at run time, whose names begin with ``name``."""
        outer: list[Any] = [None] * len(self.large)
        inner: list[Any] = [None] * len(self.small)
        lists: dict[Any, Any] = {}

        def along(d: int, positions: Any, size: int) -> Axis:
            if not isinstance(positions, np.ndarray):
                lists[name, d] = positions
                return axis_along("window", Dynamic(len(positions), (name, d)), size)
            return axis_along("window", listed(positions), size)

        for loop, place in zip(self.loops, self.places, strict=True):
            inner[loop] = along(loop, self._spread(place), self.small[loop])
        for d, size in enumerate(self.sizes):
            start = self.starts.get(d, np.zeros(self.count, np.int64))
            if d in self.wandering:
                within = self._spread(np.arange(size), 1 + self.wandering.index(d))
                outer[d] = along(d, self._spread(start) + within.astype(start.dtype), self.large[d])
                inner[self.offsets[d]] = along(d, within, size)
            elif size > 1:
                outer[d] = axis_along(("offset", d), progression(int(start[0]), 1, size), self.large[d])
                inner[self.offsets[d]] = axis_along(("offset", d), range(size), size)
            else:
                outer[d] = along(d, self._spread(start), self.large[d])
                if d in self.offsets:
                    inner[self.offsets[d]] = ()
        return outer, inner, lists

    @property
    def count(self) -> int:
        positions = [*self.places, *self.starts.values()]
        return len(positions[0]) if positions else 1

    @property
    def wandering(self) -> list[int]:
        """Axes along which windows of several elements have varying starts. Their elements are listed individually."""

        def wanders(start: Any) -> bool:
            return not isinstance(start, np.ndarray) or bool(np.any(start != start[0]))

        return [d for d in self.offsets if self.sizes[d] > 1 and d in self.starts and wanders(self.starts[d])]

    def mask(self) -> Any:
        """Per element of a window, whether it exists."""
        return self._spread(self.inside)

    def _spread(self, values: Any, axis: int = 0) -> Any:
        shape = (self.count, *(self.sizes[d] for d in self.wandering))
        ordered = values.reshape([-1 if n == axis else 1 for n in range(len(shape))])
        broadcast_to = np.broadcast_to if isinstance(values, np.ndarray) else jnp.broadcast_to
        return broadcast_to(ordered, shape).ravel()


@renaming_rules_for("gather")
def _gather(call):
    numbers, sizes = call.params["dimension_numbers"], call.params["slice_sizes"]
    gone = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    offsets = dict(zip([d for d in range(len(call.shape)) if d not in gone], numbers.offset_dims, strict=True))
    loops = [d for d in range(len(call.out_shape)) if d not in numbers.offset_dims]
    batches = dict(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True))
    if call.operands[1] is None:
        pairs = [(o, d) for d, o in offsets.items() if sizes[d] == call.shape[d]]
        return call.linked(pairs + [(loops[n], d) for d, n in batches.items()])
    starts = _starts(call, call.shape, sizes, numbers.start_index_map, batches)
    return _moved(call, _Windows(call.shape, call.out_shape, sizes, *starts[:2], loops, offsets, starts[2]), True)


def _starts(
    call: LinearCall, large: Sequence[int], sizes: Sequence[int], along: Sequence[int], batches: dict[int, int]
) -> tuple[dict[int, Any], list[np.ndarray], Any]:
    """The starts of the windows of a gather or scatter, their places, and which of them exist.

    Starts are given by axis of the array ``large``, and places by axis among the loops. The last result is None unless
    it is known only at run time which windows exist. Windows that leave the array are moved inside or left out,
    depending on the mode.
    """
    indices, mode = call.operands[1], call.params["mode"]
    dynamic = isinstance(indices, jax.core.Tracer)
    if not dynamic:
        indices = np.asarray(indices).astype(np.int64)
    places = [grid.ravel() for grid in np.indices(indices.shape[:-1])]
    count = prod(indices.shape[:-1])
    starts = {d: indices[..., n].reshape(count) for n, d in enumerate(along)}
    starts |= {d: places[n] for d, n in batches.items()}
    last = {d: large[d] - sizes[d] for d in starts}
    every = mode in (lax.GatherScatterMode.CLIP, lax.GatherScatterMode.PROMISE_IN_BOUNDS)
    moved = {
        d: np.clip(start, 0, last[d]) if isinstance(start, np.ndarray) else _clipped(start, last[d], large[d])
        for d, start in starts.items()
    }
    if every or not along:
        return moved, places, None
    there = [(start >= 0) & (start <= last[d]) for d, start in starts.items()]
    if dynamic:
        return moved, places, jnp.all(jnp.stack(there), axis=0)
    inside = np.all(there, axis=0)
    return {d: start[inside] for d, start in starts.items()}, [place[inside] for place in places], None


def _moved(call: LinearCall, windows: _Windows, reads: bool) -> JacobianBlock | None:
    """The block of a result that reads windows of the operand, or into whose windows the operand is written."""
    if windows.count == 0:
        return None
    large, small, lists = windows.axes(call.name)
    sides = (small, large) if reads else (large, small)
    if windows.inside is None:
        return call.renaming(*sides, lists)
    on = ("window",) if windows.count > 1 or windows.wandering else ()
    mask = windows.mask()
    return call.selecting(call.block(*sides, mask if on else mask[0], on, lists=lists))


@rules_for("scatter-add")
def _scatter_add(call):
    axes = range(len(call.out_shape))
    return call.renaming(axes, axes) if call.position == 0 else _scattered(call)


@rules_for("scatter-sub")
def _scatter_sub(call):
    block = _scatter_add(call)
    return block if call.position == 0 or block is None else -block


@renaming_rules_for("scatter")
def _scatter(call):
    axes = range(len(call.out_shape))
    if call.position:
        return _scattered(call)
    return call.pattern(axes, axes)


def _scattered(call: LinearCall) -> JacobianBlock | None:
    """The block of a scatter with respect to its updates: each window goes to the position of its index."""
    numbers, axes = call.params["dimension_numbers"], range(len(call.out_shape))
    gone = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    offsets = dict(zip([d for d in axes if d not in gone], numbers.update_window_dims, strict=True))
    loops = [d for d in range(len(call.shape)) if d not in numbers.update_window_dims]
    batches = dict(zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True))
    sizes = [call.shape[offsets[d]] if d in offsets else 1 for d in axes]
    if call.operands[1] is None:
        return call.linked([*offsets.items(), *((d, loops[n]) for d, n in batches.items())])
    starts = _starts(call, call.out_shape, sizes, numbers.scatter_dims_to_operand_dims, batches)
    return _moved(call, _Windows(call.out_shape, call.shape, sizes, *starts[:2], loops, offsets, starts[2]), False)
