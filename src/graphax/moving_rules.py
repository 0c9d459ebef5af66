"""Rules for primitives that move entries to places given by shapes and parameters."""

from collections.abc import Sequence
from typing import Any

from .axes import Digit, axis_along
from .block import JacobianBlock
from .positions import progression
from .rule import LinearCall, dense_pattern, own_labels, renaming_rules_for


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
    out = own_labels(call.out_shape, "out")
    return call.renaming(out, [out[d] for d in call.params["broadcast_dimensions"]])


@renaming_rules_for("reshape")
def _reshape(call):
    order = list(call.params.get("dimensions") or range(len(call.shape)))
    turned = [call.shape[n] for n in order]
    radices = _common_radices(call.out_shape, turned)
    if radices is None:
        return dense_pattern(call)
    sides = []
    for shape in (call.out_shape, turned):
        label, axes = 0, []
        for size in shape:
            digits, left = [], size
            while left > 1:
                digits.append(Digit(label, range(radices[label]), radices[label]))
                left //= radices[label]
                label += 1
            axes.append(tuple(digits))
        sides.append(axes)
    out, inp = sides
    return call.renaming(out, [inp[order.index(n)] for n in range(len(order))])


def _common_radices(first: Sequence[int], second: Sequence[int]) -> list[int] | None:
    """Digits that both shapes can be grouped from, most significant first; None if there are none."""
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
    return call.window(starts, call.params["strides"] or [1] * len(starts))


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
        out.append(axis_along(axis, progression(low + kept[0] * (interior + 1), interior + 1, len(kept)), out_size))
        inp.append(axis_along(axis, progression(kept[0], 1, len(kept)), size))
    return call.renaming(out, inp)


@renaming_rules_for("concatenate")
def _concatenate(call):
    axis = call.params["dimension"]
    return _into(call, axis, sum(shape[axis] for shape in call.shapes[: call.position]))


def _into(call: LinearCall, axis: int, start: int) -> JacobianBlock:
    """The block of an operand that is written into the result from ``start`` on along one axis."""
    out: list[Any] = list(range(len(call.shape)))
    out[axis] = axis_along(axis, progression(start, 1, call.shape[axis]), call.out_shape[axis])
    return call.renaming(out, range(len(call.shape)))


@renaming_rules_for("stack")
def _stack(call):
    axis = call.params["axis"]
    out: list[Any] = list(range(len(call.shape)))
    out.insert(axis, axis_along(None, progression(call.position, 1, 1), call.out_shape[axis]))
    return call.renaming(out, range(len(call.shape)))


@renaming_rules_for("unstack")
def _unstack(call):
    axis = call.params["axis"]
    axes = list(range(len(call.shape)))
    out = axes[:axis] + axes[axis + 1 :]
    blocks = []
    for number, shape in enumerate(call.out_shapes):
        inp: list[Any] = list(axes)
        inp[axis] = axis_along(None, progression(number, 1, 1), call.shape[axis])
        blocks.append(JacobianBlock.labelled(out, inp, shape, call.shape, renaming=True))
    return blocks


@renaming_rules_for("split")
def _split(call):
    axis, start, blocks = call.params["axis"], 0, []
    for shape in call.out_shapes:
        inp: list[Any] = list(range(len(call.shape)))
        inp[axis] = axis_along(axis, progression(start, 1, shape[axis]), call.shape[axis])
        blocks.append(JacobianBlock.labelled(range(len(shape)), inp, shape, call.shape, renaming=True))
        start += shape[axis]
    return blocks
