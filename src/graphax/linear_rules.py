"""One short rule for each linear primitive; `graphax.rule` says what a rule is.

JAX's own differentiation turns every equation into a linear program of a few dozen primitives, so these rules are all
that has to be known, and no rule sees the function being differentiated.
"""

from collections.abc import Hashable, Sequence
from typing import Any

import jax
import numpy as np
from jax import lax

from .axes import Digit, point
from .block import JacobianBlock, as_pattern
from .positions import Positions, listed, progression
from .rule import LinearCall, dense_pattern, renaming_rules_for, rules_for
from .simplify import is_sparse, uniform_value


def _axes(shape: Sequence[int], side: str) -> list[Hashable]:
    """Labels of their own for the axes of one side."""
    return [(side, n) for n in range(len(shape))]


def _linked(call: LinearCall, pairs: Sequence[tuple[int, int]]) -> JacobianBlock:
    """A pattern that is diagonal in the given pairs (output axis, input axis) and dense in all others."""
    out, inp = _axes(call.out_shape, "out"), _axes(call.shape, "inp")
    for o, i in pairs:
        if call.out_shape[o] == call.shape[i]:
            inp[i] = out[o]
    return call.pattern(out, inp)


# Arithmetic


@renaming_rules_for("convert_element_type", "copy", "copy_p", "reduce_precision", "optimization_barrier", "pvary")
@renaming_rules_for("sharding_constraint")
def _same(call):
    blocks: list[JacobianBlock | None] = [None] * len(call.out_shapes)
    axes = range(len(call.shape))
    blocks[call.position] = JacobianBlock.labelled(axes, axes, call.shape, call.shape, renaming=True)
    return blocks


@rules_for("add", "add_any")
def _add(call):
    return call.elementwise()


@rules_for("neg")
def _neg(call):
    return call.elementwise(scale=-1.0)


@rules_for("sub")
def _sub(call):
    return call.elementwise(scale=-1.0 if call.position else 1.0)


def _unknown_factor(call: LinearCall, factor: int):
    """An elementwise product with an operand not known yet, or a tangent itself, which a custom rule may contain."""
    return dense_pattern(call) if call.moving[factor] else call.elementwise_pattern()


@rules_for("mul")
def _mul(call):
    other = call.operands[1 - call.position]
    if other is None:
        return _unknown_factor(call, 1 - call.position)
    number = uniform_value(other)
    if number is not None:
        return call.elementwise(scale=number)
    if is_sparse(other) and np.shape(other) == call.out_shape == call.shape:
        axes = range(len(call.shape))
        return _by_nonzeros(call, axes, axes, other, axes)
    return call.elementwise(other)


@rules_for("div")
def _div(call):
    other = call.operands[1]
    if other is None:
        return _unknown_factor(call, 1)
    number = uniform_value(other)
    return call.elementwise(scale=1.0 / number) if number else call.elementwise(lax.reciprocal(other))


@rules_for("select_n")
def _select(call):
    which = call.operands[0]
    if which is None:
        return _unknown_factor(call, 0)
    return call.mask(lax.eq(which, lax.full_like(which, call.position - 1)))


@rules_for("psum", "psum_invariant", "ppermute", "unreduced_psum")
def _over_points(call):
    """A collective that keeps the entries of a point apart, with values that depend on other points.

    Once `jax.vmap` has seen it, it is a sum over an axis of the array, which has a number instead of a name.
    """
    axes = range(len(call.shape))
    given = call.params.get("axes", ("name",))
    out = [n for n in axes if n not in given]
    block = JacobianBlock.labelled(out, axes, call.out_shapes[call.position], call.shape)
    named = any(not isinstance(axis, int | np.integer) for axis in given)
    return [
        (as_pattern(block) if named else block) if n == call.position else None for n in range(len(call.out_shapes))
    ]


@rules_for("conj", "real", "imag", "complex")
def _complex(call):
    axes = range(len(call.shape))
    return call.pattern(axes, axes)


# Moving entries


@renaming_rules_for("transpose")
def _transpose(call):
    return call.renaming(call.params["permutation"], range(len(call.shape)))


@renaming_rules_for("squeeze")
def _squeeze(call):
    axes = range(len(call.shape))
    gone = {d % len(axes) for d in call.params["dimensions"]}
    return call.renaming([n for n in axes if n not in gone], axes)


@renaming_rules_for("broadcast_in_dim")
def _broadcast(call):
    out = _axes(call.out_shape, "out")
    return call.renaming(out, [out[d] for d in call.params["broadcast_dimensions"]])


@renaming_rules_for("reshape")
def _reshape(call):
    if call.params.get("dimensions") is not None:
        return dense_pattern(call)
    radices = _common_radices(call.out_shape, call.shape)
    if radices is None:
        return dense_pattern(call)
    sides = []
    for shape in (call.out_shape, call.shape):
        label, axes = 0, []
        for size in shape:
            digits, left = [], size
            while left > 1:
                digits.append(Digit(label, range(radices[label]), radices[label]))
                left //= radices[label]
                label += 1
            axes.append(tuple(digits))
        sides.append(axes)
    return call.renaming(*sides)


def _common_radices(first: Sequence[int], second: Sequence[int]) -> list[int] | None:
    """Digits of which both shapes are groups, most significant first; None if there are none."""
    a, b = [n for n in first if n != 1], [n for n in second if n != 1]
    radices = []
    while a and b:
        x, y = a.pop(), b.pop()
        small, large = min(x, y), max(x, y)
        if large % small:
            return None
        radices.append(small)
        if large > small:
            (a if x > y else b).append(large // small)
    return radices[::-1]


@renaming_rules_for("rev")
def _rev(call):
    axes = range(len(call.shape))
    turned = [
        (Digit(n, range(size)[::-1], size),) if n in call.params["dimensions"] and size > 1 else n
        for n, size in enumerate(call.shape)
    ]
    return call.renaming(axes, turned)


@renaming_rules_for("slice")
def _slice(call):
    starts = call.params["start_indices"]
    return _window(call, starts, call.params["strides"] or [1] * len(starts))


def _window(call: LinearCall, starts: Sequence[int], strides: Sequence[int]) -> JacobianBlock:
    """The operand read from ``starts`` on, in steps of ``strides``."""
    positions = [progression(*args) for args in zip(starts, strides, call.out_shape, strict=True)]
    inp = [_digit(n, at, size) for n, (at, size) in enumerate(zip(positions, call.shape, strict=True))]
    return call.renaming(range(len(call.out_shape)), inp)


def _digit(label: Hashable, at: Positions, size: int) -> tuple[Digit, ...]:
    if size == 1:
        return ()
    return (point(at[0], size),) if len(at) == 1 else (Digit(label, at, size),)  # type: ignore[arg-type]


@renaming_rules_for("pad")
def _pad(call):
    if call.position:
        return dense_pattern(call)
    out, inp = [], []
    for axis, ((low, _, interior), size, out_size) in enumerate(
        zip(call.params["padding_config"], call.shape, call.out_shape, strict=True)
    ):
        # Negative padding cuts entries off.
        kept = [n for n in range(size) if 0 <= low + n * (interior + 1) < out_size]
        if not kept:
            return None
        out.append(_digit(axis, progression(low + kept[0] * (interior + 1), interior + 1, len(kept)), out_size))
        inp.append(_digit(axis, progression(kept[0], 1, len(kept)), size))
    return call.renaming(out, inp)


@renaming_rules_for("concatenate")
def _concatenate(call):
    axis = call.params["dimension"]
    return _into(call, axis, sum(shape[axis] for shape in call.shapes[: call.position]))


def _into(call: LinearCall, axis: int, start: int) -> JacobianBlock:
    """The operand written into the result from ``start`` on along one axis."""
    out: list[Any] = list(range(len(call.shape)))
    out[axis] = _digit(axis, progression(start, 1, call.shape[axis]), call.out_shape[axis])
    return call.renaming(out, range(len(call.shape)))


@renaming_rules_for("stack")
def _stack(call):
    axis = call.params["axis"]
    out: list[Any] = list(range(len(call.shape)))
    out.insert(axis, _digit(None, progression(call.position, 1, 1), call.out_shape[axis]))
    return call.renaming(out, range(len(call.shape)))


@renaming_rules_for("unstack")
def _unstack(call):
    axis = call.params["axis"]
    axes = list(range(len(call.shape)))
    out = axes[:axis] + axes[axis + 1 :]
    blocks = []
    for number, shape in enumerate(call.out_shapes):
        inp: list[Any] = list(axes)
        inp[axis] = _digit(None, progression(number, 1, 1), call.shape[axis])
        blocks.append(JacobianBlock.labelled(out, inp, shape, call.shape, renaming=True))
    return blocks


@renaming_rules_for("split")
def _split(call):
    axis, start, blocks = call.params["axis"], 0, []
    for shape in call.out_shapes:
        inp: list[Any] = list(range(len(call.shape)))
        inp[axis] = _digit(axis, progression(start, 1, shape[axis]), call.shape[axis])
        blocks.append(JacobianBlock.labelled(range(len(shape)), inp, shape, call.shape, renaming=True))
        start += shape[axis]
    return blocks


@renaming_rules_for("dynamic_slice")
def _dynamic_slice(call):
    starts = _clamped(call.operands[1:], call.shape, call.out_shape)
    if starts is not None:
        return _window(call, starts, [1] * len(starts))
    return _linked(call, [(n, n) for n in range(len(call.shape))])


@renaming_rules_for("dynamic_update_slice")
def _dynamic_update_slice(call):
    axes = range(len(call.out_shape))
    if call.position == 0:
        return call.pattern(axes, axes)
    starts = _clamped(call.operands[2:], call.out_shape, call.shape)
    if starts is None:
        return _linked(call, [(n, n) for n in axes])
    at = [progression(start, 1, size) for start, size in zip(starts, call.shape, strict=True)]
    return call.renaming([_digit(n, at[n], call.out_shape[n]) for n in axes], axes)


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
        return _linked(call, pairs + [(loops[n], d) for d, n in batches.items()])
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
        return _digit("window", listed(values), size)

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
            outer[d] = _digit(("offset", d), progression(int(start[0]), 1, size), big[d])
            inner[offsets[d]] = _digit(("offset", d), range(size), size)
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
        return _linked(call, [*offsets.items(), *((d, loops[n]) for d, n in batches.items())])
    sides = _windows(call.out_shape, call.shape, sizes, *known, loops, offsets)
    return None if sides is None else call.renaming(*sides)


# Sums and products


@rules_for("reduce_sum")
def _reduce_sum(call):
    axes = range(len(call.shape))
    return call.block([n for n in axes if n not in call.params["axes"]], axes)


@rules_for("cumsum")
def _cumsum(call):
    axis = call.params["axis"]
    row, column = (lax.broadcasted_iota(np.int32, (call.shape[axis],) * 2, n) for n in (0, 1))
    reached = lax.le(row, column) if call.params["reverse"] else lax.ge(row, column)
    values = lax.convert_element_type(reached, call.dtype)
    out: list[Hashable] = list(range(len(call.shape)))
    out[axis] = "out"
    return call.block(out, range(len(call.shape)), values, ("out", axis))


@rules_for("dot_general")
def _dot_general(call):
    (contracting, batch) = call.params["dimension_numbers"]
    mine, other = call.position, 1 - call.position
    if call.moving[other]:
        return dense_pattern(call)
    labels: list[list[Hashable]] = [_axes(shape, side) for shape, side in zip(call.shapes, "lr", strict=True)]
    for pairs in (contracting, batch):
        for a, b in zip(pairs[mine], pairs[other], strict=True):
            labels[other][b] = labels[mine][a]
    free = [
        [n for d, n in enumerate(labels[side]) if d not in contracting[side] and d not in batch[side]]
        for side in (0, 1)
    ]
    out = [labels[0][d] for d in batch[0]] + free[0] + free[1]
    if call.operands[other] is None:
        return call.pattern(out, labels[mine])
    factor = call.operands[other]
    if is_sparse(factor):
        return _by_nonzeros(call, out, labels[mine], factor, labels[other])
    return call.block(out, labels[mine], factor, labels[other])


def _by_nonzeros(call: LinearCall, out: Sequence, inp: Sequence, factor: Any, on: Sequence) -> JacobianBlock | None:
    """A block whose values are a known array with few nonzeros, listed one by one."""
    numbers = np.asarray(factor)
    places = np.nonzero(numbers)
    if len(places[0]) == 0:
        return None
    if len(places[0]) == 1:
        return call.block(out, inp, factor, on)
    axes = zip(on, places, numbers.shape, strict=True)
    listing = {name: _digit("nonzero", listed(place), size) for name, place, size in axes}
    out, inp = ([listing.get(name, name) for name in side] for side in (out, inp))
    return call.block(out, inp, numbers[places], ("nonzero",))


@rules_for("triangular_solve")
def _triangular_solve(call):
    if call.position == 0:
        return dense_pattern(call)
    rank = len(call.shape)
    apart = rank - 1 if call.params["left_side"] else rank - 2
    return _linked(call, [(n, n) for n in (*range(rank - 2), apart)])


@rules_for("fft")
def _fft(call):
    return _linked(call, [(n, n) for n in range(len(call.shape) - len(call.params["fft_lengths"]))])


@rules_for("conv_general_dilated")
def _convolution(call):
    numbers = call.params["dimension_numbers"]
    if call.params["batch_group_count"] != 1:
        return dense_pattern(call)
    if call.position == 0:
        return _linked(call, [(numbers.out_spec[0], numbers.lhs_spec[0])])
    return _linked(call, [(numbers.out_spec[1], numbers.rhs_spec[0])])


@rules_for("reduce_window_sum")
def _reduce_window_sum(call):
    untouched = [n for n, size in enumerate(call.params["window_dimensions"]) if size == 1]
    untouched = [n for n in untouched if call.params["window_strides"][n] == 1 and call.params["padding"][n] == (0, 0)]
    return _linked(call, [(n, n) for n in untouched])
