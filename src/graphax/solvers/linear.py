"""Linear solvers of lineax for small dense systems, which stay in a kernel when they are part of one."""

from typing import Any

import equinox.internal as eqxi
import jax.numpy as jnp
import lineax as lx
import lineax.internal as lxi
from jax.scipy.linalg import lu_factor, solve_triangular

from .kernels import in_kernel
from .jacobians import matrix_of


class SmallLU(lx.LU):
    """`lineax.LU` for small dense operators: Jacobian, factorisation and solve are kernels where they are mapped.

    Inside `graphax.kernel` they are part of the kernel around them. Systems of more than 32 unknowns are left to LAPACK.
    Pivots, and what becomes of singular systems, are those of `lineax.LU`.
    """

    def init(self, operator: lx.AbstractLinearOperator, options: dict[str, Any]) -> Any:
        if operator.in_size() != operator.out_size():
            sizes = f"{operator.out_size()} equations for {operator.in_size()} unknowns"
            raise ValueError(f"SmallLU solves square systems, but there are {sizes}; SmallQR takes these")

        def factored(operator: lx.AbstractLinearOperator) -> Any:
            if lx.is_diagonal(operator):
                return super(SmallLU, self).init(operator, options)[0]
            return lu_factor(matrix_of(operator))

        return in_kernel(factored)(operator), lxi.pack_structures(operator), eqxi.Static(False)

    def compute(self, state: Any, vector: Any, options: dict[str, Any]) -> Any:
        return in_kernel(super().compute)(state, vector, options)


class SmallQR(lx.AbstractLinearSolver):
    """`lineax.QR` for small dense operators of full rank, square or not, as kernels like `SmallLU`.

    Solves least squares for more equations than unknowns, and finds the shortest solution for fewer.
    """

    def init(self, operator: lx.AbstractLinearOperator, options: dict[str, Any]) -> Any:
        wide = operator.in_size() > operator.out_size()

        def factored(operator: lx.AbstractLinearOperator) -> Any:
            matrix = matrix_of(operator)
            return tuple(jnp.linalg.qr(matrix.T if wide else matrix))

        return in_kernel(factored)(operator), eqxi.Static(wide), lxi.pack_structures(operator)

    def compute(self, state: Any, vector: Any, options: dict[str, Any]) -> Any:
        factors, wide, structures = state

        def solved(factors: Any, vector: Any) -> Any:
            q, r = factors
            flat = lxi.ravel_vector(vector, structures)
            if wide.value:
                flat = q.conj() @ solve_triangular(r, flat, trans="T")
            else:
                flat = solve_triangular(r, q.conj().T @ flat)
            return lxi.unravel_solution(flat, structures)

        return in_kernel(solved)(factors, vector), lx.RESULTS.successful, {}

    def transpose(self, state: Any, options: dict[str, Any]) -> Any:
        factors, wide, structures = state
        return (factors, eqxi.Static(not wide.value), lxi.transpose_packed_structures(structures)), {}

    def conj(self, state: Any, options: dict[str, Any]) -> Any:
        (q, r), wide, structures = state
        return ((q.conj(), r.conj()), wide, structures), {}

    def assume_full_rank(self) -> bool:
        return True
