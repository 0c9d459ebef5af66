"""Straight-line code on single numbers: what a small program is once its arrays are taken apart.

`StatementBuilder` never writes the same statement twice and simplifies on the way, by rules that hold for every
floating-point number, infinities, NaN and signed zeros included.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .emit import kind_of

_COMMUTATIVE = frozenset({"add", "mul", "max", "min", "and", "or", "xor", "eq", "ne"})

# Operations that NumPy rounds exactly as the machine does, so that constants may be folded.
_FOLDED: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "sqrt": np.sqrt,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert, "max": np.maximum,
    "min": np.minimum, "abs": np.abs,
}  # fmt: skip
_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})


@dataclass(frozen=True)
class Statement:
    """One number: an operation on earlier ones.

    ``attribute`` is the value of a constant (`"constant"`), and which element of which operand an `"input"` is.
    """

    operation: str
    operands: tuple[int, ...]
    kind: str
    attribute: Any = None


@dataclass(frozen=True, eq=False)
class Statements:
    """A program of statements, each numbered by its place.

    Attributes:
        inputs, outputs: shape and dtype of every operand and result.
        results: the statements that are the elements of every result.
    """

    statements: tuple[Statement, ...]
    inputs: tuple[tuple[tuple[int, ...], np.dtype], ...]
    outputs: tuple[tuple[tuple[int, ...], np.dtype], ...]
    results: tuple[tuple[int, ...], ...]

    @property
    def operations(self) -> int:
        """How many statements compute something."""
        return sum(s.operation not in ("constant", "input") for s in self.statements)


class StatementBuilder:
    """Statements so far; every method returns the number of the one that holds the result."""

    def __init__(self) -> None:
        self.statements: list[Statement] = []
        self._numbers: dict[tuple, int] = {}

    def constant(self, value: Any, dtype: Any) -> int:
        number = np.asarray(value).astype(dtype)[()]
        # By its bits, because -0.0 == 0.0 and NaN != NaN.
        return self._add(Statement("constant", (), _kind(dtype), number), np.asarray(number).tobytes())

    def input(self, operand: int, element: int, dtype: Any) -> int:
        place = operand, element
        return self._add(Statement("input", (), _kind(dtype), place), place)

    def apply(self, operation: str, *operands: int) -> int:
        """An operation, or something simpler that gives the same."""
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
        if value is not None and (kind in ("f32", "f64") or self._fits(value, dtype)):
            with np.errstate(over="ignore"):
                return self.constant(value, dtype)
        return self._add(Statement("convert", (operand,), kind))

    def _fits(self, value: Any, dtype: Any) -> bool:
        """True if NumPy converts a constant to an integer as the machine does: what does not fit saturates there."""
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
        """A whole power by squaring; a negative one of the inverse, which other derivatives need as well."""
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
        """The value of a constant, None for anything else."""
        statement = self.statements[number]
        return statement.attribute if statement.operation == "constant" else None

    def _add(self, statement: Statement, key: Any = None) -> int:
        identity = (statement.operation, statement.operands, statement.kind, key)
        number = self._numbers.get(identity)
        if number is None:
            number = self._numbers[identity] = len(self.statements)
            self.statements.append(statement)
        return number

    def _simplified(self, operation: str, operands: tuple[int, ...]) -> int | None:
        values = [self.value(operand) for operand in operands]
        if operation in _FOLDED and all(value is not None for value in values):
            with np.errstate(all="ignore"):
                folded = _FOLDED[operation](*values)
            return self.constant(folded, folded.dtype)
        rule = getattr(self, f"_simplified_{operation}", None)
        return rule(*operands) if rule else None

    def _negated(self, number: int) -> int | None:
        """What a statement is the negative of."""
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

    def _simplified_select(self, condition: int, if_true: int, if_false: int) -> int | None:
        known = self.value(condition)
        if known is not None:
            return if_true if known else if_false
        return if_true if if_true == if_false else None


def _kind(dtype: Any) -> str:
    kind = kind_of(np.dtype(dtype))
    assert kind is not None, f"numbers of type {dtype} were let through"
    return kind
