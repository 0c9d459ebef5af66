"""Steps of eliminations with pivots, and the data of factorisations that solvers use.

JAX's solvers permute a right-hand side by indices known only at run time, and then substitute. If the steps of the
factorisation are known, they can be repeated instead: exchanges are choices between two rows, and the factors need not
be permuted at all.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .unroll import Numbers, Unrolling


@dataclass(frozen=True)
class Exchange:
    """A row that is exchanged with the one of ``others`` whose statement is true, if any."""

    row: int
    others: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Step:
    """An exchange, after which multiples of its row are subtracted from all rows below."""

    exchange: Exchange
    multipliers: tuple[int, ...]


@dataclass
class Factors:
    """The factorisations of a program.

    Attributes:
        exchanges: the exchanges that each permutation consists of, first to last.
        reciprocals: by number, the number of its inverse.
        _steps: the permutation and the steps that led to the entries below a diagonal.
        _moved: columns that solvers permute before or after they substitute, and how to avoid it. Maps the permutation
            and the numbers of the column to the column before, or to the final column.
    """

    exchanges: dict[tuple[int, ...], Sequence[Exchange]] = field(default_factory=dict)
    reciprocals: dict[int, int] = field(default_factory=dict)
    _steps: dict[tuple[int, ...], tuple[tuple[int, ...], Sequence[Step]]] = field(default_factory=dict)
    _inverses: dict[tuple[int, ...], tuple[int, ...]] = field(default_factory=dict)
    _moved: dict[tuple[tuple[int, ...], ...], "Numbers"] = field(default_factory=dict)

    def note(self, lu: "Numbers", permutation: "Numbers", steps: Sequence[Step]) -> None:
        """Record a factorisation."""
        self.exchanges[_key(permutation)] = [step.exchange for step in steps]
        if lu.shape[0] == lu.shape[1]:
            self._steps[_below(lu)] = _key(permutation), steps

    def note_inverse(self, permutation: "Numbers", inverse: "Numbers") -> None:
        """Record that a permutation is the inverse of another."""
        if _key(permutation) in self.exchanges:
            self.exchanges[_key(inverse)] = self.exchanges[_key(permutation)][::-1]
            self._inverses[_key(inverse)] = _key(permutation)

    def permuted(self, u: "Unrolling", rows: "Numbers", permutation: "Numbers") -> "Numbers | None":
        """Rows in another order, by exchanges; None if the exchanges of the permutation are not known."""
        order = _key(permutation)
        if order not in self.exchanges or len(order) != len(rows):
            return None
        columns = rows.reshape(len(rows), -1).T
        if order in self._inverses:
            found = [self._moved.get((self._inverses[order], _key(column))) for column in columns]
            if all(column is not None for column in found):
                return np.array(found, np.int64).T.reshape(rows.shape)
        result = exchanged(u, rows, self.exchanges[order])
        for before, after in zip(columns, result.reshape(len(rows), -1).T, strict=True):
            self._moved[order, _key(after)] = before
        return result

    def forward(self, u: "Unrolling", lower: "Numbers", column: "Numbers") -> "Numbers | None":
        """A column after the steps that led to a factor; None unless it was permuted accordingly."""
        order, steps = self._steps.get(_below(lower), ((), ()))
        original = self._moved.get((order, _key(column)))
        return None if original is None else eliminated(u, original, steps)

    def note_backward(self, u: "Unrolling", upper: "Numbers", right: "Numbers", solution: "Numbers") -> None:
        """Record what the solution with a transposed factor becomes once it is permuted back."""
        order, steps = self._steps.get(_below(upper.T), ((), ()))
        if steps:
            self._moved[order, _key(solution)] = restored(u, right, steps)


def _key(numbers: "Numbers") -> tuple[int, ...]:
    return tuple(numbers.ravel().tolist())


def _below(matrix: "Numbers") -> tuple[int, ...]:
    return _key(matrix[np.tril_indices(len(matrix), -1)])


def exchanged(u: "Unrolling", rows: "Numbers", exchanges: Iterable[Exchange]) -> "Numbers":
    """Rows after exchanging some pairs."""
    rows = rows.copy()
    for exchange in exchanges:
        before = rows[exchange.row].copy()
        for other, here in exchange.others:
            flag, there = np.array(here), rows[other].copy()
            rows[other] = u.apply("select", flag, before, there)
            rows[exchange.row] = u.apply("select", flag, there, rows[exchange.row])
    return rows


def eliminated(u: "Unrolling", column: "Numbers", steps: Iterable[Step]) -> "Numbers":
    """A column after some steps of an elimination."""
    for step in steps:
        column = exchanged(u, column, [step.exchange])
        first = step.exchange.row + 1
        taken = u.apply("mul", np.array(step.multipliers, np.int64), column[first - 1])
        column[first:] = u.apply("sub", column[first:], taken)
    return column


def restored(u: "Unrolling", column: "Numbers", steps: Sequence[Step]) -> "Numbers":
    """A column after the transposed steps, from last to first."""
    for step in reversed(steps):
        row, column = step.exchange.row, column.copy()
        for number, below in zip(step.multipliers, column[row + 1 :], strict=True):
            taken = u.builder.apply("mul", number, int(below))
            column[row] = u.builder.apply("sub", int(column[row]), taken)
        column = exchanged(u, column, [step.exchange])
    return column
