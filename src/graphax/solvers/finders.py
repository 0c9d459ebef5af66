"""Root finders of optimistix and diffrax, with Jacobians by elimination and steps that are kernels."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import diffrax
import lineax as lx
import optimistix as optx

from .jacobians import is_small, jacobian_operator
from .kernels import in_kernel
from .linear import SmallLU


class _Once:
    """Root finders that take the Jacobian once, in ``init``."""

    linear_solver: Any

    def init(self, fn: Callable, y: Any, args: Any, options: dict, f_struct: Any, aux_struct: Any, tags: Any) -> Any:
        how = options, f_struct, aux_struct, tags
        given = super().init  # type: ignore[misc]
        if "init_state" in options or not is_small(y, f_struct):
            return given(fn, y, args, *how)

        def start(y: Any, args: Any) -> Any:
            # All but the Jacobian, which is that of any function until it is replaced.
            state = given(lambda y, args: (y, None), y, args, *how)
            jacobian = jacobian_operator(lambda y: fn(y, args)[0], y, f_struct, tags)
            return replace(state, linear_state=(jacobian, self.linear_solver.init(jacobian, options={})))

        return in_kernel(start)(y, args)


class _Stepwise:
    """Solvers each of whose steps is a kernel."""

    def step(self, fn: Callable, y: Any, args: Any, options: dict, state: Any, tags: Any) -> Any:
        given = super().step  # type: ignore[misc]
        return in_kernel(lambda y, args, options, state: given(fn, y, args, options, state, tags))(
            y, args, options, state
        )


class VeryChord(_Once, _Stepwise, diffrax.VeryChord):
    linear_solver: lx.AbstractLinearSolver = SmallLU()


class Chord(_Once, _Stepwise, optx.Chord):
    linear_solver: lx.AbstractLinearSolver = SmallLU()
