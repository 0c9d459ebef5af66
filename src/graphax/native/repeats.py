"""Loops of statements, made of what one step does."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .emit import dtype_of
from .statements import Repetition

if TYPE_CHECKING:
    from .unroll import Numbers, Unrolling

# That a carry only counts may show once others are known to; hardly ever more often than this.
_MOST_ROUNDS = 3

# From carries and the number of the step to new carries, what is written, and whether to go on, unless that is known.
Step = Callable[[list["Numbers"], int], tuple[list["Numbers"], list["Numbers"], "Numbers | None"]]


def repeated(
    u: "Unrolling", start: list["Numbers"], length: int | None, backward: bool, step: Step
) -> tuple[list["Numbers"], list["Numbers"]]:
    """The last carries of a loop and all that it has written, given what a step makes of carries."""
    builder, outside = u.builder, u.scope
    known: dict[int, int] = {}
    for _ in range(_MOST_ROUNDS):
        u.scope = scope = u.open_scope(length)
        number = builder.step(scope)
        flat = _flat(start)
        carries = [builder.carry(n, scope) if at not in known else -1 for at, n in enumerate(flat)]
        values = [_taken(u, flat[at], known[at], number, length, backward) if n < 0 else n
                  for at, n in enumerate(carries)]  # fmt: skip
        made, rows, condition = step(_like(values, start), number)
        u.scope = outside
        new = _flat(made)
        found = {at: stride for at, n in enumerate(carries) if n >= 0
                 and (stride := _stride(u, flat[at], n, new[at], length)) is not None}  # fmt: skip
        if not found:
            break
        known |= found
    pairs = [(n, new[at]) for at, n in enumerate(carries) if n >= 0]
    written = [builder.written(n, number) for n in _flat(rows)]
    asked = [] if condition is None else [int(condition.ravel()[0])]
    operands = [*asked, *(n for n, _ in pairs), *(n for _, n in pairs), *written]
    repeat = builder.repeat(operands, Repetition(scope, length, backward, len(pairs)), outside)
    last = [builder.after(repeat, n) if n >= 0 else _last(u, flat[at], known[at], length)
            for at, n in enumerate(carries)]  # fmt: skip
    return _like(last, start), _stacked(u, repeat, written, rows, length or 0)


def _flat(arrays: Sequence["Numbers"]) -> list[int]:
    return [int(n) for array in arrays for n in array.ravel()]


def _like(numbers: Sequence[int], arrays: Sequence["Numbers"]) -> list["Numbers"]:
    ends = np.cumsum([array.size for array in arrays])[:-1]
    parts = np.split(np.array(numbers, np.int64), ends) if arrays else []
    return [part.reshape(array.shape) for part, array in zip(parts, arrays, strict=True)]


def _stacked(
    u: "Unrolling", repeat: int, written: Sequence[int], rows: Sequence["Numbers"], length: int
) -> list["Numbers"]:
    entries = [_like([u.builder.entry(repeat, w, t) for w in written], rows) for t in range(length)]
    return [np.stack(column) for column in zip(*entries, strict=True)]


def _stride(u: "Unrolling", start: int, carry: int, new: int, length: int | None) -> int | None:
    """By how much a carry that only counts grows in a step: not at all, if it stays what it is."""
    if new in (carry, start):
        return 0
    statement = u.builder.statements[new]
    counts = statement.operation == "add" and statement.kind in ("i32", "i64") and carry in statement.operands
    if length is None or not counts:
        return None
    other = statement.operands[1 - statement.operands.index(carry)]
    values = u.builder.value(start), u.builder.value(other)
    return None if None in values else int(values[1])


def _taken(u: "Unrolling", start: int, stride: int, step: int, length: int | None, backward: bool) -> int:
    """A carry that only counts, in a step."""
    if stride == 0:
        return start
    assert length is not None
    first, dtype = int(u.builder.value(start)), dtype_of(u.builder.statements[start].kind)
    if backward:
        return u.builder.counted(step, first + (length - 1) * stride, -stride, dtype)
    return u.builder.counted(step, first, stride, dtype)


def _last(u: "Unrolling", start: int, stride: int, length: int | None) -> int:
    if stride == 0 or length is None:
        return start
    dtype = dtype_of(u.builder.statements[start].kind)
    return u.builder.constant(int(u.builder.value(start)) + length * stride, dtype)
