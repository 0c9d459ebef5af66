"""Solvers for lineax, optimistix and diffrax with Jacobians by elimination and steps compiled to kernels.

from graphax import solvers

diffrax.diffeqsolve(terms, solvers.compiled(diffrax.Kvaerno5()), ...)
solvers.least_squares(residuals, solvers.LevenbergMarquardt(rtol, atol), ...)
lineax.linear_solve(operator, vector, solvers.SmallLU())

Install them with `pip install 'graphax-alphagrad[solvers]'`. Each library is imported on first use.
"""

from typing import TYPE_CHECKING

from ..modules import lazily

if TYPE_CHECKING:
    from .finders import Chord, Dogleg, Eliminating, GaussNewton, LevenbergMarquardt, Newton
    from .linear import SmallLeastSquares, SmallLU
    from .operators import BlockLinearOperator
    from .solving import least_squares, root_find
    from .steps import CompiledSolver, VeryChord, compiled

_PLACES = {
    "finders": ("Chord", "Dogleg", "Eliminating", "GaussNewton", "LevenbergMarquardt", "Newton"),
    "linear": ("SmallLU", "SmallLeastSquares"),
    "operators": ("BlockLinearOperator",),
    "solving": ("least_squares", "root_find"),
    "steps": ("CompiledSolver", "VeryChord", "compiled"),
}
__all__ = sorted(name for names in _PLACES.values() for name in names)
__getattr__ = lazily(__name__, _PLACES, lambda _: "solvers")
