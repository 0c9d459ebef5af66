"""Work that all points have in common, done once instead of once per point.

A function may be mapped over some of its arguments only. `jax.vmap` computes what depends on the other arguments once,
but a kernel computes all that it contains for every point. So a mapped program is split before it becomes a kernel: the
common part is left to XLA, and results that are the same at all points are not stored per point.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from . import _jax
from ._jax import Atom, JaxprEqn, Program, Var
from .rule import only_renames
from .sizes import elements_of, elements_of_equation
from .speeds import speeds

# Work that all points together do in less than this many seconds stays in the kernel.
_LITTLE = 1e-6


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a program, and the positions of the operands of the whole program that it reads."""

    program: Program
    reads: tuple[int, ...]

    @staticmethod
    def of(whole: Program, values: Sequence[Var], equations: Sequence[JaxprEqn], outputs: Sequence[Atom]) -> "Part":
        """The part that computes ``outputs``. ``values`` become further operands."""
        equations = _jax.needed(equations, outputs)
        read = {*_variables(atom for eqn in equations for atom in eqn.invars), *_variables(outputs)}
        reads = tuple(n for n, var in enumerate(whole.inputs) if var in read)
        constants = {var: value for var, value in whole.constants.items() if var in read}
        inputs = (*(whole.inputs[n] for n in reads), *values)
        return Part(Program(inputs, constants, equations, tuple(outputs)), reads)


@dataclass(frozen=True, eq=False)
class Split:
    """A program in two parts.

    Attributes:
        common: computes the values that ``each`` needs, then the results that are the same at all points.
        each: computes all other results, from operands followed by these values.
        same: the positions of the results that are the same at all points.
    """

    common: Part
    each: Part
    same: tuple[int, ...]

    def run(self, operands: Sequence[Any], by: Callable[..., Sequence[Any]]) -> list[Any]:
        """All results. ``by`` computes those of ``each``."""
        found = self.common.program(*(operands[n] for n in self.common.reads))
        count = len(found) - len(self.same)
        others = by(*(operands[n] for n in self.each.reads), *found[:count]) if self.each.program.outputs else ()
        return self.merged(found[count:], others)

    def merged(self, same: Sequence[Any], others: Sequence[Any]) -> list[Any]:
        """What belongs to each result, in the order of the whole program."""
        known, rest = dict(zip(self.same, same, strict=True)), iter(others)
        return [known[n] if n in known else next(rest) for n in range(len(same) + len(others))]

    def axes(self, dims: Sequence[int | None]) -> tuple[int | None, ...]:
        """The mapped axes of the operands of ``each``, given those of all operands."""
        given = tuple(dims[n] for n in self.each.reads)
        return given + (None,) * (len(self.each.program.inputs) - len(given))


def split_common(program: Program, is_mapped: Sequence[bool], points: int) -> Split | None:
    """Split off the work that does not depend on the mapped operands; None if that saves nothing."""
    moving = {var for var, mapped in zip(program.inputs, is_mapped, strict=True) if mapped}
    if not moving or len(moving) == len(program.inputs):
        return None
    still, varying = _jax.split_by(program, moving)
    if any(eqn.effects for eqn in still):
        return None
    common = _Common(program.inputs, moving, still)
    same = tuple(n for n, atom in enumerate(program.outputs) if isinstance(atom, Var) and atom in common.variables)
    results = [program.outputs[n] for n in same]
    others = [atom for n, atom in enumerate(program.outputs) if n not in same]
    values = common.handed_over(_variables([*(atom for eqn in varying for atom in eqn.invars), *others]))
    first = Part.of(program, (), still, [*values, *results])
    if not (results or (values and _saves(first.program, points))):
        return None
    kept = [eqn for eqn in still if not any(var in values for var in eqn.outvars)]
    return Split(first, Part.of(program, tuple(values), [*kept, *varying], others), same)


class _Common:
    """The variables that depend on unmapped operands but on no mapped ones. Known values are not among them."""

    def __init__(self, inputs: Sequence[Var], moving: set[Var], still: Sequence[JaxprEqn]):
        self.variables: set[Any] = set(inputs) - moving
        self._equations: dict[Var, JaxprEqn] = {}
        # Variables that are elements of operands, moved.
        self._moved = set(self.variables)
        for eqn in still:
            read = set(_variables(eqn.invars)) & self.variables
            if read:
                self.variables.update(eqn.outvars)
                self._equations.update(dict.fromkeys(eqn.outvars, eqn))
                if only_renames(eqn.primitive.name) and read <= self._moved:
                    self._moved.update(eqn.outvars)

    def handed_over(self, read: Iterable[Var]) -> dict[Var, None]:
        """The values from which the variables that are ``read`` follow without arithmetic, besides the operands."""
        values: dict[Var, None] = {}
        todo = [var for var in read if var in self.variables]
        while todo:
            var = todo.pop()
            if var in self._moved:
                continue
            eqn = self._equations[var]
            sources = [atom for atom in _variables(eqn.invars) if atom in self.variables]
            if only_renames(eqn.primitive.name) and elements_of(eqn.outvars) > elements_of(sources):
                todo += sources
            else:
                values[var] = None
        return values


def _variables(atoms: Iterable[Atom]) -> list[Var]:
    return [atom for atom in atoms if isinstance(atom, Var)]


def _saves(common: Program, points: int) -> bool:
    """Whether XLA computes a program once in clearly less time than a kernel does for every point."""
    equations = [eqn for eqn in _jax.all_equations(common.equations) if not only_renames(eqn.primitive.name)]
    elements, known = sum(map(elements_of_equation, equations)), speeds()
    once = known.started * len(equations) + known.moved * elements
    return known.in_vector * elements * points > once + _LITTLE
