"""Steps of diffrax solvers as kernels, and the root finder in them."""

from dataclasses import fields
from typing import Any

import diffrax
import equinox as eqx
import lineax as lx
import optimistix as optx

from .finders import Chord, Eliminating, Newton
from .kernels import in_kernel
from .linear import SmallLU


class VeryChord(Eliminating, diffrax.VeryChord):
    """`diffrax.VeryChord` with Jacobians by elimination and `SmallLU`."""

    linear_solver: lx.AbstractLinearSolver = SmallLU()


_OURS: dict[type, Any] = {diffrax.VeryChord: VeryChord, optx.Chord: Chord, optx.Newton: Newton}


def compiled(solver: diffrax.AbstractSolver) -> "CompiledSolver":
    """A solver for ``diffrax.diffeqsolve`` that takes the steps of ``solver``. When mapped, each step is one kernel.

    A root finder of diffrax or optimistix is replaced by the one of graphax, with the same settings.
    """
    if not isinstance(solver, diffrax.AbstractSolver):
        raise TypeError(f"compiled takes a solver of diffrax, but got {solver!r}")
    if isinstance(solver, diffrax.AbstractImplicitSolver):
        solver = eqx.tree_at(lambda s: s.root_finder, solver, _ours(solver.root_finder))
    return CompiledSolver(solver)


def _ours(finder: Any) -> Any:
    """The root finder of graphax with the settings of another one. Its tolerances may still be placeholders."""
    kind = _OURS.get(type(finder))
    if kind is None:
        return finder
    # Replace the automatic choice of lineax, but keep a solver that the user chose.
    chosen = type(finder.linear_solver) is not lx.AutoLinearSolver
    names = [field.name for field in fields(finder) if chosen or field.name != "linear_solver"]
    # Bypass the constructor, which might refuse placeholders for tolerances.
    return eqx.tree_at(
        lambda f: [getattr(f, name) for name in names], kind(0.0, 0.0), [getattr(finder, n) for n in names]
    )


class CompiledSolver(diffrax.AbstractWrappedSolver):
    """A diffrax solver whose whole step is one kernel when mapped; made by `compiled`.

    The stages, the root finding in them and the error estimate form one block of machine code. The steps, their number
    and their errors are those of ``solver``. XLA runs steps that kernels do not support.
    """

    solver: diffrax.AbstractSolver  # type: ignore[misc]

    @property
    def term_structure(self) -> Any:
        return self.solver.term_structure

    @property
    def interpolation_cls(self) -> Any:  # type: ignore[override]
        return self.solver.interpolation_cls

    @property
    def term_compatible_contr_kwargs(self) -> Any:
        return self.solver.term_compatible_contr_kwargs

    @property
    def root_finder(self) -> Any:
        return self.solver.root_finder  # type: ignore[attr-defined]

    @property
    def root_find_max_steps(self) -> int:
        return self.solver.root_find_max_steps  # type: ignore[attr-defined]

    @property
    def scan_kind(self) -> Any:
        return self.solver.scan_kind  # type: ignore[attr-defined]

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
