"""Steps of diffrax's solvers as kernels."""

from typing import Any

import diffrax

from .kernels import in_kernel


class Compiled(diffrax.AbstractWrappedSolver):
    """A solver of diffrax whose whole step is one kernel where it is mapped.

    The stages, the root finding in them and the error estimate are one block of machine code. Steps are those of
    ``solver``, so are their number and their errors. What no kernel takes is left to XLA.
    """

    solver: diffrax.AbstractSolver

    @property
    def term_structure(self) -> Any:
        return self.solver.term_structure

    @property
    def interpolation_cls(self) -> Any:
        return self.solver.interpolation_cls

    @property
    def term_compatible_contr_kwargs(self) -> Any:
        return self.solver.term_compatible_contr_kwargs

    @property
    def root_finder(self) -> Any:
        return self.solver.root_finder

    @property
    def root_find_max_steps(self) -> int:
        return self.solver.root_find_max_steps

    def order(self, terms: Any) -> Any:
        return self.solver.order(terms)

    def strong_order(self, terms: Any) -> Any:
        return self.solver.strong_order(terms)

    def error_order(self, terms: Any) -> Any:
        return self.solver.error_order(terms)

    def init(self, terms: Any, t0: Any, t1: Any, y0: Any, args: Any) -> Any:
        return self.solver.init(terms, t0, t1, y0, args)

    def step(self, terms: Any, t0: Any, t1: Any, y0: Any, args: Any, solver_state: Any, made_jump: Any) -> Any:
        operands = terms, t0, t1, y0, args, solver_state, made_jump
        return in_kernel(lambda solver, operands: solver.step(*operands))(self.solver, operands)

    def func(self, terms: Any, t0: Any, y0: Any, args: Any) -> Any:
        return self.solver.func(terms, t0, y0, args)
