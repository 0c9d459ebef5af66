"""Eigenvalues and eigenvectors of small symmetric matrices, by Jacobi rotations."""

from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from .. import _jax
from ..errors import NativeError
from .linear_rules import Arithmetic, each_matrix
from .unroll import Numbers, Unrolling
from .unroll_rules import rule_of_numbers

# For larger matrices the rotations take longer than LAPACK.
LARGEST = 4
# A sweep rotates every off-diagonal entry away once. Convergence is quadratic in the end.
_SWEEPS = 8


@rule_of_numbers("eigh", count=lambda eqn: 12 * prod(_jax.shape(eqn.invars[0])) * _jax.shape(eqn.invars[0])[-1])
def _eigh(u: Unrolling, eqn: Any, matrix: Numbers) -> list[Numbers]:
    """Eigenvectors and eigenvalues, ascending."""
    size = matrix.shape[-1]
    if size > LARGEST:
        raise NativeError(f"the eigenvalues of a matrix of {size} by {size} are left to LAPACK, beyond {LARGEST}")
    if eqn.params.get("subset_by_index") is not None:
        raise NativeError("a subset of eigenvalues is left to LAPACK")
    arithmetic = Arithmetic(u, _jax.dtype(eqn.invars[0]))
    lower = eqn.params["lower"]
    return each_matrix(eqn, lambda one: _decomposed(u, arithmetic, one if lower else one.T), matrix)


def _decomposed(u: Unrolling, a: Arithmetic, matrix: Numbers) -> tuple[Numbers, Numbers]:
    size = len(matrix)
    symmetric = np.tril(matrix) + np.tril(matrix, -1).T
    vectors = np.array([[a.one if i == j else a.zero for j in range(size)] for i in range(size)], np.int64)

    def sweep(carries: list[Numbers], _: int) -> tuple[list[Numbers], list[Numbers], None]:
        found, turned = (array.copy() for array in carries)
        for p, q in combinations(range(size), 2):
            _rotate(a, found, turned, p, q)
        return [found, turned], [], None

    # Two rows need only one rotation.
    if size == 2:
        (diagonal, vectors), _, _ = sweep([symmetric, vectors], 0)
    else:
        (diagonal, vectors), _ = u.repeat([symmetric, vectors], _SWEEPS, False, sweep)
    values, columns = _sorted(a, list(np.diagonal(diagonal)), [list(column) for column in vectors.T])
    # As in LAPACK, a NaN anywhere in the matrix makes all results NaN.
    spoiled = a.zero
    for number in symmetric[np.tril_indices(size)]:
        spoiled = a.add(spoiled, a.mul(number, a.zero))
    found = []
    for n, column in enumerate(columns):
        # Both vectors of two rows consist of the same numbers, which must differ to have signs of their own.
        found.append(u.apply("sub" if n % 2 else "add", np.array(column, np.int64), np.array(spoiled)))
        if size > 1:
            u.add_vector(found[-1])
    return np.array(found, np.int64).T, u.apply("add", np.array(values, np.int64), np.array(spoiled))


def _rotate(a: Arithmetic, matrix: Numbers, vectors: Numbers, p: int, q: int) -> None:
    """Rotate the plane of two rows and columns so that their common entry vanishes."""
    first, second, common = (int(matrix[i, j]) for i, j in ((p, p), (q, q), (p, q)))
    done = a.apply("eq", common, a.zero)
    ratio = a.div(a.sub(second, first), a.add(common, common))
    size = a.apply("abs", ratio)
    tangent = a.div(a.one, a.add(size, a.apply("sqrt", a.add(a.mul(ratio, ratio), a.one))))
    tangent = a.select(a.apply("lt", ratio, a.zero), a.apply("neg", tangent), tangent)
    tangent = a.select(done, a.zero, tangent)
    cosine = a.div(a.one, a.apply("sqrt", a.add(a.mul(tangent, tangent), a.one)))
    sine = a.mul(tangent, cosine)
    share = a.div(sine, a.add(a.one, cosine))
    moved = a.mul(tangent, common)
    matrix[p, p], matrix[q, q] = a.sub(first, moved), a.add(second, moved)
    matrix[p, q] = matrix[q, p] = a.zero
    for r in range(len(matrix)):
        if r not in (p, q):
            matrix[r, p], matrix[r, q] = _turned(a, int(matrix[r, p]), int(matrix[r, q]), sine, share)
            matrix[p, r], matrix[q, r] = matrix[r, p], matrix[r, q]
        vectors[r, p], vectors[r, q] = _turned(a, int(vectors[r, p]), int(vectors[r, q]), sine, share)


def _turned(a: Arithmetic, x: int, y: int, sine: int, share: int) -> tuple[int, int]:
    """A rotated point of the plane, written so that small angles lose nothing to rounding."""
    return (
        a.sub(x, a.mul(sine, a.add(y, a.mul(share, x)))),
        a.add(y, a.mul(sine, a.sub(x, a.mul(share, y)))),
    )


def _sorted(a: Arithmetic, values: list[int], columns: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    """Eigenvalues in ascending order, each with its vector."""
    for end in range(len(values) - 1, 0, -1):
        for n in range(end):
            later = a.apply("lt", int(values[n + 1]), int(values[n]))

            def exchanged(x: int, y: int, later: int = later) -> tuple[int, int]:
                return a.select(later, y, x), a.select(later, x, y)

            values[n], values[n + 1] = exchanged(values[n], values[n + 1])
            pairs = [exchanged(x, y) for x, y in zip(columns[n], columns[n + 1], strict=True)]
            columns[n], columns[n + 1] = ([pair[side] for pair in pairs] for side in (0, 1))
    return values, columns
