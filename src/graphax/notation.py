"""Einsum notation: terms of Jacobian blocks written with labels of any kind, such as letters."""

from collections.abc import Hashable, Sequence
from typing import Any

from .axes import Axis, Digit
from .labelled import Lists, reshaped, transposed
from .part import Part
from .structure import canonical


def written(
    out: Sequence[Hashable],
    inp: Sequence[Hashable],
    out_shape: Sequence[int],
    inp_shape: Sequence[int],
    values: Any,
    on: Sequence[Hashable],
    scale: float | None,
    renaming: bool,
    lists: Lists,
) -> Part:
    """The term with these labels; see `JacobianBlock.labelled`."""
    given = (
        ("out", out, out_shape),
        ("inp", inp, inp_shape),
        *([] if values is None else [("on", on, values.shape)]),
    )
    for side, labels, lengths in given:
        if len(labels) != len(lengths):
            raise ValueError(f"{side} has {len(labels)} labels, {list(labels)}, for an array of shape {lengths}")
    numbers: dict[Hashable, int] = {}
    sizes: list[int] = []

    def axis(name: Any, size: int) -> Axis:
        digits = name if isinstance(name, tuple) and all(isinstance(d, Digit) for d in name) else None
        if digits is None:
            digits = () if size == 1 else (Digit(name, range(size), size),)
        return tuple(d if d.label is None else d._replace(label=number(d.label, len(d.at))) for d in digits)

    def number(name: Hashable, size: int) -> int:
        if name not in numbers:
            numbers[name] = len(sizes)
            sizes.append(size)
        if sizes[numbers[name]] != size:
            raise ValueError(f"label {name!r} has size {sizes[numbers[name]]} on one axis and {size} on another")
        return numbers[name]

    out_axes = [axis(*pair) for pair in zip(out, out_shape, strict=True)]
    inp_axes = [axis(*pair) for pair in zip(inp, inp_shape, strict=True)]
    if values is None:
        structure = canonical(out_axes, inp_axes, sizes, (), scale, renaming)[0]
        return Part(structure, None, lists=lists)
    for name, size in zip(on, values.shape, strict=True):
        if size != 1 and (name not in numbers or sizes[numbers[name]] != size):
            raise ValueError(f"the values have size {size} along label {name!r}, which no axis of the block has")
    # As in NumPy, values of size 1 along an axis are repeated along it.
    here = [numbers[name] for name, n in zip(on, values.shape, strict=True) if n != 1]
    values = reshaped(values, [n for n in values.shape if n != 1])
    result, old = canonical(out_axes, inp_axes, sizes, here, None)
    order = [here.index(old[label]) for label in result.values]
    return Part(result, transposed(values, order), lists=lists)
