"""Root finders and least squares of optimistix and diffrax, with Jacobians by elimination and steps that are kernels."""

from collections.abc import Callable
from typing import Any

import lineax as lx
import optimistix as optx

from .jacobians import is_small, with_jacobian
from .kernels import in_kernel
from .linear import SmallLU, SmallLeastSquares


class Eliminating:
    """What makes an iterative solver of optimistix ours: derivatives by elimination, and steps that are kernels.

    Iterates, termination and results are those of the class it is mixed into. Functions of more than 64 numbers, or of
    complex ones, are left to that class as they are.
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
    """`optimistix.Newton` with Jacobians by elimination, and `SmallLU`."""

    linear_solver: lx.AbstractLinearSolver = SmallLU()


class Chord(Eliminating, optx.Chord):
    """`optimistix.Chord` with Jacobians by elimination, and `SmallLU`."""

    linear_solver: lx.AbstractLinearSolver = SmallLU()


class GaussNewton(Eliminating, optx.GaussNewton):
    """`optimistix.GaussNewton` with Jacobians by elimination, and `SmallLeastSquares`."""

    def __init__(self, *args: Any, linear_solver: lx.AbstractLinearSolver = SmallLeastSquares(), **kwargs: Any):  # noqa: B008
        super().__init__(*args, linear_solver=linear_solver, **kwargs)


class LevenbergMarquardt(Eliminating, optx.LevenbergMarquardt):
    """`optimistix.LevenbergMarquardt` with Jacobians by elimination, and `SmallLeastSquares`."""

    def __init__(self, *args: Any, linear_solver: lx.AbstractLinearSolver = SmallLeastSquares(), **kwargs: Any):  # noqa: B008
        super().__init__(*args, linear_solver=linear_solver, **kwargs)


class Dogleg(Eliminating, optx.Dogleg):
    """`optimistix.Dogleg` with Jacobians by elimination, and `SmallLeastSquares`."""

    def __init__(self, *args: Any, linear_solver: lx.AbstractLinearSolver = SmallLeastSquares(), **kwargs: Any):  # noqa: B008
        super().__init__(*args, linear_solver=linear_solver, **kwargs)
