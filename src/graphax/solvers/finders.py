"""Root finders and least-squares solvers of optimistix, with Jacobians by elimination and steps that are kernels."""

from collections.abc import Callable
from typing import Any

import lineax as lx
import optimistix as optx

from .jacobians import is_small, with_jacobian
from .kernels import in_kernel
from .linear import SmallLeastSquares, SmallLU

_LEAST_SQUARES = SmallLeastSquares()


class Eliminating:
    """Mixin for iterative optimistix solvers: derivatives by elimination, and steps compiled to kernels.

    Iterates, termination and results are those of the class it is mixed into. Functions of more than 64 numbers, or of
    complex numbers, are left to that class unchanged.
    """

    def init(self, fn: Callable, y: Any, args: Any, options: Any, f_struct: Any, aux_struct: Any, tags: Any) -> Any:
        given = super().init  # type: ignore[misc]
        if not is_small(y, f_struct):
            return given(fn, y, args, options, f_struct, aux_struct, tags)

        def start(fn: Callable, y: Any, args: Any, options: Any) -> Any:
            return given(with_jacobian(fn), y, args, options, f_struct, aux_struct, tags)

        return in_kernel(start)(fn, y, args, options)

    def step(self, fn: Callable, y: Any, args: Any, options: Any, state: Any, tags: Any) -> Any:
        given = super().step  # type: ignore[misc]
        if not is_small(y):
            return given(fn, y, args, options, state, tags)

        def step(fn: Callable, y: Any, args: Any, options: Any, state: Any) -> Any:
            return given(with_jacobian(fn), y, args, options, state, tags)

        return in_kernel(step)(fn, y, args, options, state)


class Newton(Eliminating, optx.Newton):
    """`optimistix.Newton` with Jacobians by elimination and `SmallLU`."""

    linear_solver: lx.AbstractLinearSolver = SmallLU()


class Chord(Eliminating, optx.Chord):
    """`optimistix.Chord` with Jacobians by elimination and `SmallLU`."""

    linear_solver: lx.AbstractLinearSolver = SmallLU()


class _LeastSquares(Eliminating):
    def __init__(
        self,
        rtol: float,
        atol: float,
        norm: Callable = optx.max_norm,
        linear_solver: lx.AbstractLinearSolver = _LEAST_SQUARES,
        verbose: bool | Callable = False,
    ):
        super().__init__(rtol, atol, norm, linear_solver, verbose)  # type: ignore[call-arg]


class GaussNewton(_LeastSquares, optx.GaussNewton):
    """`optimistix.GaussNewton` with Jacobians by elimination and `SmallLeastSquares`."""


class LevenbergMarquardt(_LeastSquares, optx.LevenbergMarquardt):
    """`optimistix.LevenbergMarquardt` with Jacobians by elimination and `SmallLeastSquares`."""


class Dogleg(_LeastSquares, optx.Dogleg):
    """`optimistix.Dogleg` with Jacobians by elimination and `SmallLeastSquares`."""
