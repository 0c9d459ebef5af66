"""Whole optimistix solves as kernels."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import optimistix as optx

from .kernels import in_kernel


def root_find(
    fn: Callable, solver: Any, y0: Any, args: Any = None, options: Any = None, *, throw: bool = True, **settings: Any
) -> optx.Solution:
    """`optimistix.root_find` with all iterations in one kernel when mapped.

    Each SIMD vector of points stops when its own points have converged. The arguments are those of optimistix. The
    final state of the iteration is not returned, so it stays in the kernel.
    """
    return _solved(optx.root_find, (fn, solver, y0, args, options), throw, settings)


def least_squares(
    fn: Callable, solver: Any, y0: Any, args: Any = None, options: Any = None, *, throw: bool = True, **settings: Any
) -> optx.Solution:
    """`optimistix.least_squares` with all iterations in one kernel when mapped; see `root_find`."""
    return _solved(optx.least_squares, (fn, solver, y0, args, options), throw, settings)


def _solved(solve: Callable, operands: tuple, throw: bool, settings: dict[str, Any]) -> optx.Solution:
    def without_state(*operands: Any) -> optx.Solution:
        return replace(solve(*operands, throw=False, **settings), state=None)

    solution = in_kernel(without_state)(*operands)
    # A kernel raises no errors, so the result is checked outside.
    return solution.result.error_if(solution, solution.result != optx.RESULTS.successful) if throw else solution
