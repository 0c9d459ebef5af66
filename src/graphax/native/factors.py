"""Steps of eliminations with pivots, and what is remembered of a factorisation for those who solve with it.

JAX's solvers permute a right-hand side, by numbers that are known only when run, and then substitute. Who knows the
steps can repeat them instead: exchanges are choices between two rows, and the factors need not be permuted at all.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .unroll import Numbers, Unrolling


@dataclass(frozen=True)
class Exchange:
    """A row that changes places with the one of ``others``, if any, whose statement is true."""

    row: int
    others: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Step:
    """An exchange, after which multiples of its row are taken off all rows below."""

    exchange: Exchange
    multipliers: tuple[int, ...]


@dataclass
class Factors:
    """The factorisations of a program.

    Attributes:
        exchanges: those that a permutation consists of.
        reciprocals: by number, one that is its inverse.
        _steps: the permutation and the steps that led to the entries below a diagonal.
        _permuted: what a column was before a permutation.
    """

    exchanges: dict[tuple[int, ...], Sequence[Exchange]] = field(default_factory=dict)
    reciprocals: dict[int, int] = field(default_factory=dict)
    _steps: dict[tuple[int, ...], tuple[tuple[int, ...], Sequence[Step]]] = field(default_factory=dict)
    _permuted: dict[tuple[tuple[int, ...], ...], "Numbers"] = field(default_factory=dict)

    def note(self, lu: "Numbers", permutation: "Numbers", steps: Sequence[Step]) -> None:
        order = _key(permutation)
        self.exchanges[order] = [step.exchange for step in steps]
        if lu.shape[0] == lu.shape[1] > 1:
            self._steps[_below(lu)] = order, steps

    def permuted(self, u: "Unrolling", rows: "Numbers", permutation: tuple[int, ...]) -> "Numbers":
        """Rows in another order; ``permutation`` is one whose exchanges are known."""
        result = exchanged(u, rows, self.exchanges[permutation])
        columns = rows.reshape(len(rows), -1).T, result.reshape(len(rows), -1).T
        self._permuted.update(((permutation, _key(after)), before) for before, after in zip(*columns, strict=True))
        return result

    def solved(self, u: "Unrolling", lower: "Numbers", column: "Numbers") -> "Numbers | None":
        """What a column is after the steps of which ``lower`` is the result, if it was permuted accordingly."""
        order, steps = self._steps.get(_below(lower), ((), ()))
        original = self._permuted.get((order, _key(column)))
        return None if original is None else eliminated(u, original, steps)


def _key(numbers: "Numbers") -> tuple[int, ...]:
    return tuple(numbers.ravel().tolist())


def _below(matrix: "Numbers") -> tuple[int, ...]:
    return _key(matrix[np.tril_indices(len(matrix), -1)])


def exchanged(u: "Unrolling", rows: "Numbers", exchanges: Iterable[Exchange]) -> "Numbers":
    """Rows, of which some pairs change places."""
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
