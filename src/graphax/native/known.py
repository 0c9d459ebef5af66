"""Numbers that are known before a kernel runs: constants, and values that follow from the step of a loop."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .emit import dtype_of
from .statements import FOLDED, Statement, StatementBuilder


class Known:
    """Values of statements. Values that depend on the step of one loop have one entry per step.

    ``lengths`` has the number of steps of each scope. ``step`` is the step that values depend on, if any.
    """

    def __init__(self, builder: StatementBuilder, lengths: Sequence[int | None]):
        self.builder, self.lengths = builder, lengths
        self.step: int | None = None
        self._found: dict[int, Any] = {}

    def values(self, numbers: np.ndarray) -> np.ndarray | None:
        """The values of an array, with one entry or one per step along the first axis; None if unknown."""
        found = [self._value(int(number)) for number in numbers.ravel()]
        if any(value is None for value in found):
            return None
        columns = np.broadcast_arrays(*found) if found else []
        return np.stack(columns, -1).reshape(-1, *numbers.shape) if found else np.zeros((1, *numbers.shape), np.int32)

    def _value(self, number: int) -> Any:
        if number not in self._found:
            self._found[number] = self._computed(number)
        return self._found[number]

    def _computed(self, number: int) -> Any:
        statement = self.builder.statements[number]
        match statement.operation:
            case "constant":
                return np.asarray([statement.attribute])
            case "step":
                length = self.lengths[statement.scope]
                if length is None or self.step not in (None, number):
                    return None
                self.step = number
                return np.arange(length, dtype=np.int32)
            case "entry" if self.builder.statements[statement.operands[0]].operation == "table":
                table = np.array(self.builder.statements[statement.operands[0]].attribute)
                step = self._value(statement.operands[1]) if len(statement.operands) == 2 else None
                return (
                    None if step is None else table[statement.attribute.offset + statement.attribute.strides[0] * step]
                )
        operands = self._operands(statement) if statement.kind in ("i1", "i32", "i64") else None
        if operands is None:
            return None
        if statement.operation == "select":
            return np.where(*operands)
        if statement.operation == "convert" and operands[0].dtype.kind in "ib":
            return operands[0].astype(dtype_of(statement.kind))
        # Numbers that are not whole are left alone, because the kernel rounds them at run time.
        whole = statement.operation not in ("div", "rem") and all(operand.dtype.kind in "ib" for operand in operands)
        return FOLDED[statement.operation](*operands) if whole and statement.operation in FOLDED else None

    def _operands(self, statement: Statement) -> list[Any] | None:
        """The values of all operands; None if one is unknown, which ends the search early, as it may lead far back."""
        found = []
        for number in statement.operands:
            value = self._value(number)
            if value is None:
                return None
            found.append(value)
        return found
