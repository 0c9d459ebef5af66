"""Linear solvers of lineax for small dense systems, which stay in a kernel when they are part of one."""

from typing import Any

import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import lineax as lx
import lineax.internal as lxi
from jax import lax
from jax.scipy.linalg import lu_factor, solve_triangular

from .jacobians import matrix_of
from .kernels import in_kernel


class SmallLU(lx.LU):
    """`lineax.LU` for small dense operators: Jacobian, factorisation and solve are kernels when mapped.

    Inside `graphax.kernel` they become part of the surrounding kernel. Systems of more than 32 unknowns are left to
    LAPACK. Pivots and the treatment of singular systems are those of `lineax.LU`.
    """

    def init(self, operator: lx.AbstractLinearOperator, options: dict[str, Any]) -> Any:
        if operator.in_size() != operator.out_size():
            sizes = f"{operator.out_size()} equations for {operator.in_size()} unknowns"
            raise ValueError(f"SmallLU solves square systems, but there are {sizes}; use SmallLeastSquares")

        def factored(operator: lx.AbstractLinearOperator) -> Any:
            matrix = matrix_of(operator)
            unit = jnp.eye(len(matrix), dtype=matrix.dtype)
            # Diffrax begins each step with the Jacobian of an explicit stage, which needs no factorisation.
            pivots = jnp.arange(len(matrix), dtype=jnp.int32)
            return lax.cond((matrix == unit).all(), lambda: (unit, pivots), lambda: lu_factor(matrix))

        return in_kernel(factored)(operator), lxi.pack_structures(operator), eqxi.Static(False)

    def compute(self, state: Any, vector: Any, options: dict[str, Any]) -> Any:
        return in_kernel(super().compute)(state, vector, options)


class SmallLeastSquares(lx.AbstractLinearSolver):
    """Least squares for small dense operators of full rank, square or not, as kernels like `SmallLU`.

    Computes the same solution as `lineax.QR`: the least residual for more equations than unknowns, and the shortest
    solution for fewer. The triangular factor comes from a Cholesky factorisation of the normal equations if they are
    well conditioned, and from a QR factorisation otherwise. Solutions are refined once, which makes up for the loss of
    accuracy in the normal equations.
    """

    def init(self, operator: lx.AbstractLinearOperator, options: dict[str, Any]) -> Any:
        is_tall = operator.out_size() >= operator.in_size()

        def factored(operator: lx.AbstractLinearOperator) -> Any:
            matrix = matrix_of(operator)
            tall = matrix if is_tall else matrix.conj().T
            upper = jnp.linalg.cholesky(tall.conj().T @ tall).conj().T
            sizes = jnp.abs(jnp.diagonal(upper))
            # False if the factor is NaN.
            good = sizes.min() > jnp.finfo(upper.dtype).eps ** 0.25 * sizes.max()
            return matrix, lax.cond(good, lambda: upper, lambda: jnp.linalg.qr(tall, mode="r"))

        return in_kernel(factored)(operator), eqxi.Static(is_tall), lxi.pack_structures(operator)

    def compute(self, state: Any, vector: Any, options: dict[str, Any]) -> Any:
        factors, is_tall, structures = state

        def solved(factors: Any, vector: Any) -> Any:
            matrix, upper = factors
            right = lxi.ravel_vector(vector, structures)
            solution = _normal_solution(matrix, upper, is_tall.value, right)
            solution = solution + _normal_solution(matrix, upper, is_tall.value, right - matrix @ solution)
            return lxi.unravel_solution(solution, structures)

        return in_kernel(solved)(factors, vector), lx.RESULTS.successful, {}

    def transpose(self, state: Any, options: dict[str, Any]) -> Any:
        (matrix, upper), is_tall, structures = state
        structures = lxi.transpose_packed_structures(structures)
        return ((matrix.T, upper.conj()), eqxi.Static(not is_tall.value), structures), {}

    def conj(self, state: Any, options: dict[str, Any]) -> Any:
        factors, *how = state
        return (tuple(factor.conj() for factor in factors), *how), {}

    def assume_full_rank(self) -> bool:
        return True


def _normal_solution(matrix: jax.Array, upper: jax.Array, is_tall: bool, right: jax.Array) -> jax.Array:
    """The solution of the normal equations, whose matrix is the product of a factor with its transpose."""
    across = matrix.conj().T
    right = across @ right if is_tall else right
    found = solve_triangular(upper, solve_triangular(upper, right, trans="C"))
    return found if is_tall else across @ found
