"""Code on single numbers: a small program after its arrays are unrolled.

The code is straight-line, except for loops. Loops have a scope of their own, and values that do not change in a loop
are outside of it. `StatementBuilder` never writes the same statement twice. It simplifies by rules that hold for every
floating-point number, including infinities, NaN and signed zeros.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .emit import dtype_of, kind_of

_COMMUTATIVE = frozenset({"add", "mul", "max", "min", "and", "or", "xor", "eq", "ne"})

# Operations that NumPy rounds exactly as the machine does, so that constants may be folded.
FOLDED: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "sqrt": np.sqrt,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert, "max": np.maximum,
    "min": np.minimum, "abs": np.abs, "rem": np.fmod,
}  # fmt: skip
_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})


# The assumed number of steps of a loop that ends by a condition.
_STEPS = 10
# An element of a result that other threads store.
ELSEWHERE = "elsewhere"
# Statements that compute nothing: numbers that are known, in memory, or left to other threads.
STORED = frozenset({"constant", "input", "entry", ELSEWHERE})


@dataclass(frozen=True)
class Place:
    """The position of a number among others: ``offset``, and a stride per loop whose step it moves with."""

    offset: int
    strides: tuple[int, ...] = ()


@dataclass(frozen=True)
class Repetition:
    """How a `"repeat"` statement continues.

    Its operands are the condition (if there is no length), the `"carry"` statements, the next value of each carry, and
    the `"written"` statements.

    Attributes:
        scope: the scope of the repeated statements.
        length: the number of steps; None for as long as the condition holds.
        backward: whether the steps are numbered down to zero.
        carries: the number of carries.
    """

    scope: int
    length: int | None
    backward: bool
    carries: int


class Statement(NamedTuple):
    """One number: an operation on earlier ones.

    Apart from arithmetic there are

    - ``"constant"``: the number ``attribute``;
    - ``"input"``: the operand of the program and the `Place` in ``attribute``; its own operands are steps of loops;
    - ``"repeat"``: a loop with the `Repetition` in ``attribute``. In it, a ``"carry"`` starts as its operand, a
      ``"step"`` is the number of the step, and a ``"written"`` is kept for each step. After it, ``"after"`` is the last
      value of a carry, which is its second operand;
    - ``"table"``: the constants ``attribute``; ``"kept"``: its operands, one after the other;
    - ``"entry"``: the number at the `Place` ``attribute`` of its first operand: a table, a ``"kept"``, or the values
      written by the loop that is its second operand. Any other operands are steps of loops;
    - ``"elsewhere"``: an element of a result that other threads store.

    ``scope`` is the innermost loop that contains a statement, or 0 outside of all loops. Inner scopes have larger
    numbers.
    """

    operation: str
    operands: tuple[int, ...]
    kind: str
    attribute: Any = None
    scope: int = 0


@dataclass(frozen=True, eq=False)
class Statements:
    """A program of statements, each numbered by its position.

    Attributes:
        inputs, outputs: the shape and dtype of every operand and result.
        results: the statements that are the elements of each result.
        depends_on_signs: whether results may depend on the signs of eigenvectors.
    """

    statements: tuple[Statement, ...]
    inputs: tuple[tuple[tuple[int, ...], np.dtype], ...]
    outputs: tuple[tuple[tuple[int, ...], np.dtype], ...]
    results: tuple[tuple[int, ...], ...]
    depends_on_signs: bool = False

    @property
    def operations(self) -> int:
        """The number of statements that compute something."""
        return sum(s.operation not in STORED for s in self.statements)

    @cached_property
    def loops(self) -> tuple[int, ...]:
        """The numbers of the loops. Inner loops come before those that contain them."""
        return tuple(n for n, s in enumerate(self.statements) if s.operation == "repeat")

    @cached_property
    def times(self) -> dict[int, int]:
        """The number of times that the statements of each scope are executed."""
        times = {0: 1}
        for number in reversed(self.loops):
            repeat = self.statements[number]
            times[repeat.attribute.scope] = times[repeat.scope] * (repeat.attribute.length or _STEPS)
        return times

    def inside(self, scope: int) -> set[int]:
        """A scope, and the scopes of all loops in it."""
        found = {scope}
        for number in reversed(self.loops):
            repeat = self.statements[number]
            if repeat.scope in found:
                found.add(repeat.attribute.scope)
        return found

    @property
    def executed(self) -> int:
        """The number of operations that are executed per point."""
        return sum(self.times[s.scope] for s in self.statements if s.operation not in STORED)


class StatementBuilder:
    """Builds statements. Every method returns the number of the statement that holds the result."""

    def __init__(self) -> None:
        self.statements: list[Statement] = []
        self._numbers: dict[tuple, int] = {}
        self._stored = 0
        self._ranges: dict[int, tuple[int, int] | None] = {}
        self._nothing: set[int] = set()

    @property
    def count(self) -> int:
        """The number of statements, except numbers that are in memory, of which loops may use many."""
        return len(self.statements) - self._stored

    def constant(self, value: Any, dtype: Any) -> int:
        number = np.asarray(value).astype(dtype)[()]
        # Identify constants by their bits, because -0.0 == 0.0 and NaN != NaN.
        return self._add(Statement("constant", (), _kind(dtype), number), np.asarray(number).tobytes())

    def nothing(self, dtype: Any) -> int:
        """The zero of an absent entry of a block."""
        number = self._add(Statement("constant", (), _kind(dtype), np.zeros((), dtype)[()]), "nothing")
        self._nothing.add(number)
        return number

    def is_nothing(self, number: int) -> bool:
        return number in self._nothing

    def input(self, operand: int, element: int, dtype: Any) -> int:
        place = operand, Place(element)
        return self._add(Statement("input", (), _kind(dtype), place), place)

    def step(self, scope: int) -> int:
        """The number of the step of a loop."""
        return self._add(Statement("step", (), "i32", scope=scope), scope)

    def carry(self, start: int, scope: int) -> int:
        """A number that a loop changes. Every call adds a new one."""
        return self._add(Statement("carry", (start,), self.statements[start].kind, scope=scope), len(self.statements))

    def written(self, number: int, step: int) -> int:
        return self._add(Statement("written", (number, step), self.statements[number].kind))

    def repeat(self, operands: Sequence[int], repetition: Repetition, scope: int) -> int:
        return self._add(Statement("repeat", tuple(operands), "i1", repetition, scope), repetition)

    def after(self, repeat: int, carry: int) -> int:
        """The final value of a carried number. Carries are inside the loop, their final values outside."""
        outside = self.statements[repeat].scope
        return self._add(Statement("after", (repeat, carry), self.statements[carry].kind, scope=outside))

    def entry(self, repeat: int, written: int, step: int) -> int:
        """The value that a loop has written in one step."""
        outside, place = self.statements[repeat].scope, Place(step)
        kind = self.statements[written].kind
        return self._add(Statement("entry", (written, repeat), kind, place, outside), place)

    def at_step(self, numbers: Sequence[int], step: int) -> int:
        """A different number of a sequence in every step of a loop."""
        first = self.statements[numbers[0]]
        if all(number == numbers[0] for number in numbers):
            return numbers[0]
        values = [self.value(number) for number in numbers]
        if all(value is not None for value in values):
            return self._tabulated(values, first.kind, step)
        moved = self._moved(numbers, step)
        if moved is not None:
            return moved
        if any(self.statements[number].scope >= self.statements[step].scope for number in numbers):
            return self._chosen(numbers, step)
        kept = self._add(Statement("kept", tuple(numbers), first.kind))
        return self._add(Statement("entry", (kept, step), first.kind, Place(0, (1,))), Place(0, (1,)))

    def _chosen(self, numbers: Sequence[int], step: int) -> int:
        """A choice among numbers that change in the loop themselves.

        It is the most frequent number, except in the steps of the others.
        """
        usual = max(set(numbers), key=lambda n: (numbers.count(n), -n))
        result = usual
        for at, number in enumerate(numbers):
            if number != usual:
                now = self.apply("eq", step, self.constant(at, np.int32))
                result = self.apply("select", now, number, result)
        return result

    def counted(self, step: int, start: int, stride: int, dtype: Any) -> int:
        """A whole number that grows by ``stride`` in every step."""
        number = self.convert(step, dtype)
        moved = number if stride == 1 else self.apply("mul", number, self.constant(stride, dtype))
        return moved if start == 0 else self.apply("add", moved, self.constant(start, dtype))

    def _tabulated(self, values: Sequence[Any], kind: str, step: int) -> int:
        stride = int(values[1]) - int(values[0]) if kind in ("i32", "i64") else 0
        if stride and all(int(v) == int(values[0]) + stride * n for n, v in enumerate(values)):
            return self.counted(step, int(values[0]), stride, dtype_of(kind))
        table = tuple(values)
        source = self._add(Statement("table", (), kind, table), np.array(table).tobytes())
        return self._add(Statement("entry", (source, step), kind, Place(0, (1,))), Place(0, (1,)))

    def _moved(self, numbers: Sequence[int], step: int) -> int | None:
        """A sequence of numbers that are evenly spaced in memory; None if they are not."""
        found = [self.statements[number] for number in numbers]
        first = found[0]
        if first.operation not in ("input", "entry"):
            return None
        if any((s.operation, s.operands, s.kind) != (first.operation, first.operands, first.kind) for s in found):
            return None
        which = [s.attribute[0] if s.operation == "input" else None for s in found]
        places = [s.attribute[1] if s.operation == "input" else s.attribute for s in found]
        stride = places[1].offset - places[0].offset
        if any(w != which[0] or p != replace(places[0], offset=places[0].offset + n * stride)
               for n, (w, p) in enumerate(zip(which, places, strict=True))):  # fmt: skip
            return None
        place = replace(places[0], strides=(*places[0].strides, stride))
        attribute = place if which[0] is None else (which[0], place)
        return self._add(Statement(first.operation, (*first.operands, step), first.kind, attribute), attribute)

    def apply(self, operation: str, *operands: int) -> int:
        """The result of an operation, or of something simpler with the same result."""
        simpler = self._simplified(operation, operands)
        if simpler is not None:
            return simpler
        if operation in _COMMUTATIVE and operands[0] > operands[1]:
            operands = operands[::-1]
        kind = "i1" if operation in _COMPARISONS or operation == "is_finite" else self.statements[operands[-1]].kind
        return self._add(Statement(operation, tuple(operands), kind))

    def convert(self, operand: int, dtype: Any) -> int:
        kind, value = _kind(dtype), self.value(operand)
        if self.statements[operand].kind == kind:
            return operand
        if operand in self._nothing and kind in ("f32", "f64"):
            return self.nothing(dtype)
        if value is not None and (kind in ("f32", "f64") or self._fits(value, dtype)):
            with np.errstate(over="ignore"):
                return self.constant(value, dtype)
        return self._add(Statement("convert", (operand,), kind))

    def _fits(self, value: Any, dtype: Any) -> bool:
        """True if NumPy converts a constant to an integer as the machine does, which saturates."""
        if np.dtype(dtype) == bool or value.dtype.kind != "f":
            return bool(np.isfinite(value))
        limits = np.iinfo(dtype)
        return bool(np.isfinite(value)) and limits.min <= float(value) <= limits.max

    def bitcast(self, operand: int, dtype: Any) -> int:
        """The same bits as another kind of number."""
        kind, value = kind_of(np.dtype(dtype)), self.value(operand)
        assert kind is not None
        if self.statements[operand].kind == kind:
            return operand
        if value is not None:
            return self.constant(np.asarray(value).view(dtype), dtype)
        return self._add(Statement("bitcast", (operand,), kind))

    def power(self, operand: int, exponent: int) -> int:
        """A whole power by squaring. A negative power uses the inverse, which other derivatives need as well."""
        one = self.constant(1, np.float32 if self.statements[operand].kind == "f32" else np.float64)
        if exponent == 0:
            return one
        base = operand if exponent > 0 else self.apply("div", one, operand)
        result = None
        remaining = abs(exponent)
        while remaining:
            if remaining & 1:
                result = base if result is None else self.apply("mul", result, base)
            remaining >>= 1
            if remaining:
                base = self.apply("mul", base, base)
        assert result is not None
        return result

    def value(self, number: int) -> Any:
        """The value of a constant; None for anything else."""
        statement = self.statements[number]
        return statement.attribute if statement.operation == "constant" else None

    def _add(self, statement: Statement, key: Any = None) -> int:
        identity = (statement.operation, statement.operands, statement.kind, key)
        number = self._numbers.get(identity)
        if number is None:
            number = self._numbers[identity] = len(self.statements)
            self.statements.append(self._placed(statement))
            self._stored += statement.operation in STORED
        return number

    def _placed(self, statement: Statement) -> Statement:
        """The statement in the innermost loop that one of its operands belongs to."""
        if statement.operation in ("step", "carry", "repeat", "after"):
            return statement
        visible = [n for n in statement.operands if self.statements[n].operation != "written"]
        scope = max((self.statements[n].scope for n in visible), default=0)
        return statement._replace(scope=scope) if scope else statement

    def _simplified(self, operation: str, operands: tuple[int, ...]) -> int | None:
        if not self._nothing.isdisjoint(operands):
            spared = self._spared(operation, operands)
            if spared is not None:
                return spared
        values = [self.value(operand) for operand in operands]
        if operation in FOLDED and all(value is not None for value in values) and not _differs(operation, values):
            with np.errstate(all="ignore"):
                folded = FOLDED[operation](*values)
            return self.constant(folded, folded.dtype)
        rule = getattr(self, f"_simplified_{operation}", None)
        return rule(*operands) if rule else None

    def _spared(self, operation: str, operands: tuple[int, ...]) -> int | None:
        """The result of an operation with absent entries, or None. A block has no arithmetic where it has no entry."""
        absent = [n in self._nothing for n in operands]
        match operation:
            case "mul":
                return operands[absent.index(True)]
            case "add":
                return operands[1 - absent.index(True)]
            case "sub":
                return operands[0] if absent[1] else self.apply("neg", operands[1])
            case "neg" | "div" if absent[0]:
                return operands[0]
        return None

    def _negated(self, number: int) -> int | None:
        """The operand of a negation, or None."""
        statement = self.statements[number]
        return statement.operands[0] if statement.operation == "neg" else None

    def _is(self, number: int, value: float) -> bool:
        known = self.value(number)
        return known is not None and bool(known == value) and self.statements[number].kind in ("f32", "f64")

    def _simplified_neg(self, a: int) -> int | None:
        return self._negated(a)

    def _simplified_add(self, a: int, b: int) -> int | None:
        for left, right in ((a, b), (b, a)):
            if (other := self._negated(right)) is not None:
                return self.apply("sub", left, other)
            # x + (-0) is x even for negative zeros; x + 0 is not.
            if self._is(right, 0.0) and np.signbit(self.value(right)):
                return left
        return None

    def _simplified_sub(self, a: int, b: int) -> int | None:
        if (other := self._negated(b)) is not None:
            return self.apply("add", a, other)
        return a if self._is(b, 0.0) and not np.signbit(self.value(b)) else None

    def _simplified_mul(self, a: int, b: int) -> int | None:
        for left, right in ((a, b), (b, a)):
            if self._is(right, 1.0):
                return left
            if self._is(right, -1.0):
                return self.apply("neg", left)
            if (other := self._negated(right)) is not None:
                return self.apply("neg", self.apply("mul", left, other))
        return None

    def _simplified_div(self, a: int, b: int) -> int | None:
        if self._is(b, 1.0):
            return a
        if self._is(b, -1.0):
            return self.apply("neg", a)
        value = self.value(b)
        if value is not None and self.statements[b].kind in ("f32", "f64") and np.isfinite(value) and value != 0:
            # Multiplying by the inverse of a power of two is exact.
            with np.errstate(over="ignore"):
                inverse = value.dtype.type(1) / value
            if abs(np.frexp(value)[0]) == 0.5 and np.isfinite(inverse) and abs(inverse) >= np.finfo(value.dtype).tiny:
                return self.apply("mul", a, self.constant(inverse, value.dtype))
        for position, operand in enumerate((a, b)):
            if (other := self._negated(operand)) is not None:
                return self.apply("neg", self.apply("div", *((other, b) if position == 0 else (a, other))))
        return None

    def _bounds(self, number: int) -> tuple[int, int] | None:
        """The smallest and largest whole number of a choice of constants, or None."""
        statement = self.statements[number]
        if statement.kind not in ("i32", "i64"):
            return None
        if number not in self._ranges:
            found = None
            if statement.operation == "constant":
                found = int(statement.attribute), int(statement.attribute)
            elif statement.operation == "select":
                parts = [self._bounds(n) for n in statement.operands[1:]]
                if parts[0] is not None and parts[1] is not None:
                    found = min(parts[0][0], parts[1][0]), max(parts[0][1], parts[1][1])
            self._ranges[number] = found
        return self._ranges[number]

    def _simplified_lt(self, a: int, b: int) -> int | None:
        first, second = self._bounds(a), self._bounds(b)
        known = first is not None and second is not None and first[0] >= second[1]
        return self.constant(False, np.bool_) if known else None

    def _simplified_max(self, a: int, b: int) -> int | None:
        return self._extreme(a, b, lambda x, y: x[0] >= y[1])

    def _simplified_min(self, a: int, b: int) -> int | None:
        return self._extreme(a, b, lambda x, y: x[1] <= y[0])

    def _extreme(self, a: int, b: int, is_first: Callable[[Any, Any], bool]) -> int | None:
        first, second = self._bounds(a), self._bounds(b)
        if first is None or second is None:
            return None
        return a if is_first(first, second) else b if is_first(second, first) else None

    def _simplified_select(self, condition: int, if_true: int, if_false: int) -> int | None:
        known = self.value(condition)
        if known is not None:
            return if_true if known else if_false
        return if_true if if_true == if_false else None


def _differs(operation: str, values: Sequence[Any]) -> bool:
    """True if NumPy divides whole numbers differently from the machine."""
    whole = values[0].dtype.kind in "iu"
    return whole and (operation == "div" or (operation == "rem" and values[1] == 0))


def _kind(dtype: Any) -> str:
    kind = kind_of(np.dtype(dtype))
    assert kind is not None, f"numbers of type {dtype} are not supported"
    return kind
