"""Loops of statements, built from a single step."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..errors import NativeError
from .emit import dtype_of
from .statements import Repetition

if TYPE_CHECKING:
    from .unroll import Numbers, Unrolling

# Some carries only turn out to stay the same once others are known to, but hardly ever after more rounds than this.
_MOST_ROUNDS = 3
NONE: Mapping[int, int] = {}
# The maximum number of elements that a loop reads or writes. Each has a number until they are found to be adjacent.
MOST_IN_MEMORY = 1 << 17

# Maps carries and the number of the step to new carries, written values, and the condition to continue, if any.
Step = Callable[[list["Numbers"], int], tuple[list["Numbers"], list["Numbers"], "Numbers | None"]]


def repeated(
    u: "Unrolling",
    start: list["Numbers"],
    length: int | None,
    backward: bool,
    step: Step,
    counts: Mapping[int, int],
    inside: bool,
) -> tuple[list["Numbers"], list["Numbers"]]:
    """The last carries of a loop and everything that it writes, given a function for one step.

    ``counts`` maps places of single-number carries to their increments. With ``inside``, carries that stay the same are
    carried as well, so that what is computed from them is not moved out of the loop.
    """
    builder, outside, flat = u.builder, u.scope, _flat(start)
    ends = np.cumsum([0, *(array.size for array in start)])
    known = {int(ends[place]): stride for place, stride in counts.items()}
    assumed = set() if inside else _assumed(u, start, ends)
    known |= dict.fromkeys(assumed, 0)
    before = u.count
    rounds = 0
    while rounds < _MOST_ROUNDS:
        u.given_up += u.count - before
        scope = u.open_scope(length)
        number = builder.step(scope)
        carries = {at: builder.carry(n, scope) for at, n in enumerate(flat) if at not in known}
        values = [carries[at] if at in carries else _taken(u, n, known[at], number, length, backward)
                  for at, n in enumerate(flat)]  # fmt: skip
        with u.inside(scope):
            made, rows, condition = step(_like(values, start), number)
        new = _flat(made)
        changed = {at for at in assumed if new[at] != flat[at]}
        if changed:
            known = {at: stride for at, stride in known.items() if at not in changed}
            assumed -= changed
            continue
        rounds += 1
        # Values that stay the same need not be carried, and then more may turn out to stay the same.
        same = {at: 0 for at, carry in carries.items() if new[at] in (carry, flat[at])}
        if inside or not same:
            break
        known |= same
    written = [builder.written(n, number) for n in _flat(rows)]
    if (length or 0) * len(written) > MOST_IN_MEMORY:
        raise NativeError(f"its loop writes more than {MOST_IN_MEMORY:,} numbers")
    asked = [] if condition is None else [int(condition.ravel()[0])]
    operands = [*asked, *carries.values(), *(new[at] for at in carries), *written]
    repeat = builder.repeat(operands, Repetition(scope, length, backward, len(carries)), outside)
    last = [builder.after(repeat, carries[at]) if at in carries else _last(u, n, known[at], length)
            for at, n in enumerate(flat)]  # fmt: skip
    return _like(last, start), _stacked(u, repeat, written, rows, length or 0)


def _assumed(u: "Unrolling", start: Sequence["Numbers"], ends: np.ndarray) -> set[int]:
    """Carries that are assumed to stay the same until a step shows otherwise: known lists of indices.

    Some programs pass the constants of a derivative on from step to step, and indices among these must be known.
    """
    lists = [at for at, array in enumerate(start) if array.size > 1 and _are_known_integers(u, array)]
    return {place for at in lists for place in range(int(ends[at]), int(ends[at + 1]))}


def _are_known_integers(u: "Unrolling", numbers: "Numbers") -> bool:
    statements = [u.builder.statements[n] for n in _flat([numbers])]
    return all(s.operation == "constant" and s.kind in ("i32", "i64") for s in statements)


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


def _taken(u: "Unrolling", start: int, stride: int, step: int, length: int | None, backward: bool) -> int:
    """The value in a step of a carry that only counts."""
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
