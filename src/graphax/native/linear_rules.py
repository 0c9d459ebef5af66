"""Linear algebra of small matrices as straight-line code: LAPACK's algorithms, with selections instead of branches."""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from .. import _jax
from ..errors import NativeError
from .factors import Exchange, Step, eliminated, exchanged
from .unroll import Numbers, Unrolling
from .unroll_rules import rule, rule_of_numbers

# Larger systems take many statements, and LAPACK is good at them.
LARGEST, LARGEST_ASKED = 12, 32


def _products(eqn: Any) -> int:
    """The approximate number of products in a factorisation."""
    shape = _jax.shape(eqn.invars[0])
    return prod(_jax.shape(eqn.outvars[0])) * min(shape[-2:])


class Arithmetic:
    """Operations on single numbers of one dtype."""

    def __init__(self, u: Unrolling, dtype: Any):
        self.u, self.dtype = u, dtype
        self.zero, self.one = (self.constant(value) for value in (0, 1))
        self.mul, self.add, self.sub, self.div = map(self._binary, ("mul", "add", "sub", "div"))

    def constant(self, value: float) -> int:
        return self.u.builder.constant(value, self.dtype)

    def apply(self, operation: str, *operands: int) -> int:
        return self.u.builder.apply(operation, *operands)

    def _binary(self, name: str) -> Callable[[int, int], int]:
        return lambda a, b: self.apply(name, int(a), int(b))

    def select(self, condition: int, a: int, b: int) -> int:
        return self.apply("select", condition, int(a), int(b))

    def minus_products(self, start: int, left: Any, right: Any) -> int:
        """``start`` minus the products of two sequences."""
        for a, b in zip(left, right, strict=True):
            start = self.sub(start, self.mul(a, b))
        return start


def _check(u: Unrolling, matrix: Numbers) -> None:
    most = LARGEST_ASKED if u.required else LARGEST
    if max(matrix.shape[-2:]) > most:
        rows, columns = matrix.shape[-2:]
        raise NativeError(f"a matrix of {rows} by {columns} is left to LAPACK, which takes over beyond {most}")


def each_matrix(eqn: Any, function: Callable, *arrays: Numbers) -> list[Numbers]:
    """The results of an equation, computed by a function of matrices for each matrix of a stack."""
    leading = arrays[0].shape[:-2]
    stacks = [array.reshape(prod(leading), *array.shape[len(leading) :]) for array in arrays]
    results = [function(*matrices) for matrices in zip(*stacks, strict=True)]
    columns = zip(*results, strict=True) if results else [()] * len(eqn.outvars)
    return [np.array(c, np.int64).reshape(_jax.shape(v)) for c, v in zip(columns, eqn.outvars, strict=True)]


@rule_of_numbers("lu", count=_products)
def _lu(u: Unrolling, eqn: Any, matrix: Numbers) -> list[Numbers]:
    """The factors, the pivots and the permutation that they amount to."""
    _check(u, matrix)
    arithmetic = Arithmetic(u, _jax.dtype(eqn.invars[0]))
    return each_matrix(eqn, lambda one: _factored(u, arithmetic, one), matrix)


def _factored(u: Unrolling, a: Arithmetic, matrix: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Factorize column by column. Each column stays in registers while all earlier steps are applied to it."""
    rows, columns = matrix.shape
    steps: list[Step] = []
    pivots, lu = [], matrix.copy()
    for j in range(columns):
        column = eliminated(u, matrix[:, j], steps)
        if j < rows:
            place, exchange = _pivot(u, a, column, j)
            column = exchanged(u, column, [exchange])
            inverse = u.factors.reciprocals[int(column[j])] = a.div(a.one, column[j])
            # A column of zeros stays as it is.
            scale = a.select(a.apply("eq", int(column[j]), a.zero), a.one, inverse)
            column[j + 1 :] = [a.mul(number, scale) for number in column[j + 1 :]]
            steps.append(Step(exchange, tuple(column[j + 1 :].tolist())))
            pivots.append(place)
        lu[:, j] = column
    exchanges = [step.exchange for step in steps]
    for j in range(len(steps)):
        lu[:, j] = exchanged(u, lu[:, j], exchanges[j + 1 :])
    permutation = exchanged(u, u.constants(np.arange(rows), np.int32), exchanges)
    u.factors.note(lu, permutation, steps)
    return lu, np.array(pivots, np.int64), permutation


def _pivot(u: Unrolling, a: Arithmetic, column: Numbers, first: int) -> tuple[int, Exchange]:
    """The row of the largest entry from ``first`` on, the first of several, and the exchange that brings it there."""
    sizes = [a.apply("abs", int(number)) for number in column[first:]]
    best, place = sizes[0], u.builder.constant(first, np.int32)
    for n, size in enumerate(sizes[1:], first + 1):
        larger = a.apply("gt", size, best)
        best = a.select(larger, size, best)
        place = a.select(larger, u.builder.constant(n, np.int32), place)
    return place, _exchange(u, first, place, len(column))


def _exchange(u: Unrolling, row: int, place: int, rows: int) -> Exchange:
    """The exchange of a row with one below, whose index is known only at run time."""
    below = range(row + 1, rows)
    return Exchange(row, tuple((n, u.builder.apply("eq", place, u.builder.constant(n, np.int32))) for n in below))


@rule_of_numbers("lu_pivots_to_permutation", count=lambda eqn: 2 * prod(_jax.shape(eqn.invars[0])) ** 2)
def _permutation(u: Unrolling, eqn: Any, pivots: Numbers) -> Numbers:
    size = eqn.params["permutation_size"]

    def permuted(places: Numbers) -> list[int]:
        exchanges = [_exchange(u, row, int(place), size) for row, place in enumerate(places)]
        permutation = exchanged(u, u.constants(np.arange(size), np.int32), exchanges)
        u.factors.exchanges[tuple(permutation.tolist())] = exchanges
        return permutation.tolist()

    rows = [permuted(places) for places in pivots.reshape(-1, pivots.shape[-1])]
    return np.array(rows, np.int64).reshape(_jax.shape(eqn.outvars[0]))


@rule_of_numbers("triangular_solve", count=_products)
def _triangular_solve(u: Unrolling, eqn: Any, matrix: Numbers, right: Numbers) -> Numbers:
    params = eqn.params
    _check(u, matrix)
    arithmetic = Arithmetic(u, _jax.dtype(eqn.invars[0]))
    # Solving from the right is solving from the left with everything transposed.
    turned, lower = params["transpose_a"] != (not params["left_side"]), params["lower"]

    def solve(one: Numbers, other: Numbers) -> tuple[Numbers]:
        one = one.T if turned else one
        other = other if params["left_side"] else other.T
        solution = _substituted(u, arithmetic, one, other, lower != turned, params["unit_diagonal"])
        return (solution if params["left_side"] else solution.T,)

    return each_matrix(eqn, solve, matrix, right)[0]


def _substituted(u: Unrolling, a: Arithmetic, matrix: Numbers, right: Numbers, lower: bool, unit: bool) -> Numbers:
    """Substitute row by row from the known end, unless the steps of a factorisation give the solution directly."""
    solution, size = right.copy(), len(matrix)
    for j in range(right.shape[1]):
        known = u.factors.forward(u, matrix, right[:, j]) if lower and unit else None
        if known is not None:
            solution[:, j] = known
            continue
        for i in range(size) if lower else range(size - 1, -1, -1):
            done = slice(0, i) if lower else slice(i + 1, size)
            rest = a.minus_products(int(right[i, j]), matrix[i, done], solution[done, j])
            solution[i, j] = rest if unit else _divided(u, a, rest, int(matrix[i, i]))
        if unit and not lower:
            u.factors.note_backward(u, matrix, right[:, j], solution[:, j])
    return solution


def _divided(u: Unrolling, a: Arithmetic, number: int, divisor: int) -> int:
    """A quotient, by the inverse that a factorisation has computed, if any."""
    inverse = u.factors.reciprocals.get(divisor)
    return a.div(number, divisor) if inverse is None else a.mul(number, inverse)


@rule_of_numbers("cholesky", count=_products)
def _cholesky(u: Unrolling, eqn: Any, matrix: Numbers) -> Numbers:
    """The lower factor; all NaN if there is none."""
    _check(u, matrix)
    a = Arithmetic(u, _jax.dtype(eqn.invars[0]))
    return each_matrix(eqn, lambda one: (_lower_factor(u, a, one),), matrix)[0]


def _lower_factor(u: Unrolling, a: Arithmetic, matrix: Numbers) -> Numbers:
    size = len(matrix)
    result = np.full((size, size), a.zero, np.int64)
    inverses: list[int] = []
    fails = u.builder.constant(False, np.bool_)
    for j in range(size):
        rest = a.minus_products(int(matrix[j, j]), result[j, :j], result[j, :j])
        # NaN does not count as a failure: it spreads, as in LAPACK.
        fails = a.apply("or", fails, a.apply("le", rest, a.zero)) if j else a.apply("le", rest, a.zero)
        result[j, j] = a.apply("sqrt", rest)
        inverses.append(a.div(a.one, result[j, j]))
        for i in range(j + 1, size):
            result[i, j] = a.mul(a.minus_products(int(matrix[i, j]), result[i, :j], result[j, :j]), inverses[j])
    flag, nothing, below = np.array(fails), np.array(a.constant(np.nan)), np.tril_indices(size)
    result[below] = u.apply("select", flag, nothing, result[below])
    known = u.apply("select", flag, nothing, np.array(inverses, np.int64))
    u.factors.reciprocals.update(zip(result.diagonal().tolist(), known.tolist(), strict=True))
    return result


@rule_of_numbers("tridiagonal_solve", count=lambda eqn: 16 * prod(_jax.shape(eqn.outvars[0])))
def _tridiagonal_solve(u: Unrolling, eqn: Any, *operands: Numbers) -> Numbers:
    """The solution of a tridiagonal system; all NaN if a pivot is zero."""
    if eqn.params.get("perturb_singular"):
        raise NativeError("pivots of tridiagonal systems are not perturbed")
    a = Arithmetic(u, _jax.dtype(eqn.invars[0]))
    diagonals = [operand[..., None] for operand in operands[:3]]
    return each_matrix(eqn, lambda *parts: (_of_three_diagonals(u, a, *parts),), *diagonals, operands[3])[0]


def _of_three_diagonals(
    u: Unrolling, a: Arithmetic, below: Numbers, on: Numbers, above: Numbers, right: Numbers
) -> Numbers:
    """Solve as LAPACK does: a row is exchanged with the next if that has the larger entry."""
    nothing = np.full((len(on), 1), a.zero)
    # Each row from its diagonal on, when it is processed.
    rows = np.concatenate([below, on, above, right], 1)
    row = np.concatenate([on, above, nothing, right], 1)[:1].ravel()
    done, singular = [], None
    for i in range(len(on)):
        if i + 1 < len(on):
            stays = np.array(a.apply("ge", *(a.apply("abs", int(number)) for number in (row[0], rows[i + 1, 0]))))
            other = u.apply("select", stays, rows[i + 1], row)
            row = u.apply("select", stays, row, rows[i + 1])
        zero = a.apply("eq", int(row[0]), a.zero)
        singular = zero if singular is None else a.apply("or", singular, zero)
        inverse = a.div(a.one, row[0])
        done.append((inverse, row[1:]))
        if i + 1 < len(on):
            taken = u.apply("mul", np.array(a.mul(other[0], inverse)), row[1:])
            row = np.insert(u.apply("sub", other[1:], taken), 2, a.zero)
    solution = [nothing[0].repeat(right.shape[1])] * 2
    for inverse, (second, third, *rest) in reversed(done):
        found = [
            a.mul(a.minus_products(number, (second, third), (x, y)), inverse)
            for number, x, y in zip(rest, solution[-1], solution[-2], strict=True)
        ]
        solution.append(np.array(found, np.int64))
    if singular is None:
        return right
    return u.apply("select", np.array(singular), np.array(a.constant(np.nan)), np.array(solution[:1:-1]))


@rule_of_numbers("qr", count=_products)
def _qr(u: Unrolling, eqn: Any, matrix: Numbers) -> list[Numbers]:
    """The QR factorisation by Householder reflections, with LAPACK's signs."""
    _check(u, matrix)
    if eqn.params.get("pivoting"):
        raise NativeError("QR factorisations with pivots are not supported")
    a = Arithmetic(u, _jax.dtype(eqn.invars[0]))
    return each_matrix(eqn, lambda one: _reflected(a, one, eqn.params["full_matrices"]), matrix)


def _reflected(a: Arithmetic, matrix: Numbers, full: bool) -> tuple[Numbers, Numbers]:
    rows, columns = matrix.shape
    upper, reflections = matrix.copy(), []
    for k in range(min(rows, columns)):
        vector, scale, corner = _reflection(a, upper[k:, k])
        upper[k:, k] = [corner, *[a.zero] * (rows - k - 1)]
        for j in range(k + 1, columns):
            upper[k:, j] = _applied(a, vector, scale, upper[k:, j])
        reflections.append((vector, scale))
    width = rows if full else min(rows, columns)
    q = np.array([[a.one if i == j else a.zero for j in range(width)] for i in range(rows)], np.int64)
    for k, (vector, scale) in reversed(list(enumerate(reflections))):
        for j in range(k, width):
            q[k:, j] = _applied(a, vector, scale, q[k:, j])
    return q, upper[:width]


def _reflection(a: Arithmetic, column: Numbers) -> tuple[list[int], int, int]:
    """The vector of a reflection, which begins with one, its scale, and the new first entry."""
    first = int(column[0])
    if len(column) == 1:
        return [a.one], a.zero, first
    # Scale the column, so that no square overflows or underflows.
    largest = a.zero
    for number in column:
        largest = a.apply("max", largest, a.apply("abs", int(number)))
    largest = a.select(a.apply("eq", largest, a.zero), a.one, largest)
    scaled = [a.mul(number, a.div(a.one, largest)) for number in column]
    rest = a.zero
    for number in scaled[1:]:
        rest = a.add(rest, a.mul(number, number))
    norm = a.mul(largest, a.apply("sqrt", a.add(rest, a.mul(scaled[0], scaled[0]))))
    corner = a.select(a.apply("ge", first, a.zero), a.apply("neg", norm), norm)
    nothing = a.apply("eq", rest, a.zero)
    # A column that ends in zeros stays as it is.
    inverse = a.select(nothing, a.zero, a.div(a.one, a.sub(first, corner)))
    scale = a.select(nothing, a.zero, a.div(a.sub(corner, first), corner))
    return [a.one, *(a.mul(number, inverse) for number in column[1:])], scale, a.select(nothing, first, corner)


def _applied(a: Arithmetic, vector: list[int], scale: int, column: Numbers) -> list[int]:
    along = int(column[0])
    for v, number in zip(vector[1:], column[1:], strict=True):
        along = a.add(along, a.mul(v, number))
    along = a.mul(along, scale)
    return [a.sub(number, a.mul(along, v)) for v, number in zip(vector, column, strict=True)]


@rule("custom_linear_solve")
def _linear_solve(u: Unrolling, eqn: Any, *operands: Numbers) -> list[Numbers]:
    """Run the solver that comes with the equation."""
    solver, constants, right = _jax.linear_solver(eqn, operands)
    return u.run(solver, [*constants, *right])


@rule("platform_index")
def _platform_index(u: Unrolling, eqn: Any) -> Numbers:
    """The index of the branch for all platforms. Other branches must be for platforms without kernels."""
    choices = eqn.params["platforms"]
    if None not in choices or any(name in (names or ()) for names in choices for name in ("cpu", "cuda")):
        raise NativeError("it differs between platforms")
    return u.constants(choices.index(None), _jax.dtype(eqn.outvars[0]))
