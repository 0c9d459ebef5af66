"""What programs take when XLA runs them, estimated from shapes, and which of several ways is taken.

Times are those of a core of 2023 with vectors of 512 bits, in seconds. They are compared with each other, so a machine
that is slower in everything changes nothing. `benchmarks/estimates.py` measures where they are furthest from the truth.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from . import _jax
from ._jax import Program

# XLA starts something for nearly every equation of small arrays, and moves its elements. Programs of elimination read
# more arrays for each that they write than those of JAX's modes do.
_STARTED, _MOVED = 50e-9, 0.1e-9
_OF_ELIMINATION = 1.5
# How many equations JAX's modes make of one, and in how many the elements of all tangents or cotangents are.
_FORWARD, _REVERSE, _LINEAR = 2.0, 4.0, 2.0
# An instruction of a kernel for a point: alone, and as one of many in a vector.
_ALONE, _IN_VECTOR = 0.3e-9, 0.05e-9
# What handing over to JAX and back takes, whatever is called.
_CALLED = 5e-6
# One thread of a GPU: a statement, an instruction of an elementary function, which waits for the one before, and an
# element of a result. XLA on a GPU: the first kernel that it starts, and others for each equation.
_STATEMENT, _IN_FUNCTION, _STORED = 1e-9, 2.4e-9, 20e-9
_LAUNCHES_START, _LAUNCHED = 5e-6, 0.14e-6
# Elimination is left for one of JAX's modes only in programs of so many equations, and if that takes so much less.
_MANY_EQUATIONS, _CLEARLY = 200, 0.8

# Few numbers by which to differentiate, and how many elements equations have in the mean where arrays are long.
_FEW_INPUTS, _LONG_ARRAYS = 16, 16
# A kernel for the Hessian of such a function has at least four statements for each element that the function computes.
# Of a function of so many elements there is none for a single point.
_TOO_LONG_FOR_A_KERNEL = 1_000
# How many points there are where that is known only later.
MANY_POINTS = 1_000

# Compiling: for any program, and for each equation or instruction of it.
_XLA_STARTS, _XLA_EQUATION = 0.03, 1.2e-3
_KERNEL_STARTS, _KERNEL_INSTRUCTION = 0.02, 60e-6


@dataclass(frozen=True)
class Way:
    """A way to run a derivative program, and the seconds that it should take: for all points, and to compile."""

    name: str
    run: float
    compile: float

    def __str__(self):
        return f"{self.name} {_readable(self.run)} ({_readable(self.compile)} to compile)"


def _readable(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:,.0f} {unit}" if seconds >= 100 * size else f"{seconds / size:.2g} {unit}"
    return f"{seconds / 1e-9:.0f} ns"


def elimination(program: Program, points: int = 1) -> Way:
    """A program of elimination, run by XLA."""
    equations, elements = _size(program)
    run = _CALLED + _OF_ELIMINATION * (_STARTED * equations + _MOVED * points * elements)
    return Way("xla", run, compiling_xla(equations))


def plain_modes(program: Program, inputs: int, outputs: int, points: int = 1) -> list[Way]:
    """Forward and reverse mode of a function, as JAX has them, for so many elements of inputs and outputs."""
    equations, elements = _size(program)
    return [
        Way(
            name,
            _CALLED + growth * _STARTED * equations + _MOVED * points * elements * (1 + _LINEAR * passes),
            compiling_xla(growth * equations),
        )
        for name, growth, passes in (("jax.jacfwd", _FORWARD, inputs), ("jax.jacrev", _REVERSE, outputs))
    ]


def kernel(instructions: int, points: int = 1) -> Way:
    """A kernel of so many instructions."""
    each = _ALONE if points == 1 else _IN_VECTOR
    return Way("kernel", _CALLED + each * instructions * points, compiling_kernel(instructions))


def better_mode(ours: Program, modes: Sequence[Way], points: int) -> str | None:
    """The mode of JAX that takes clearly less time than elimination by XLA, or None."""
    if len(ours.equations) < _MANY_EQUATIONS:
        return None
    best = min(modes, key=lambda way: way.run)
    return best.name if best.run < _CLEARLY * elimination(ours, points).run else None


def one_thread(statements: int, in_functions: int, results: int) -> float:
    """What a thread of a GPU takes for so many statements, instructions of elementary functions, and results."""
    return _STATEMENT * statements + _IN_FUNCTION * in_functions + _STORED * results


def launches(equations: int) -> float:
    """What the kernels take that XLA makes of so many equations of small arrays, on a GPU."""
    return _LAUNCHES_START + _LAUNCHED * equations


def has_long_sums(program: Program) -> bool:
    """Whether a function of few numbers goes through long arrays, so that all passes of JAX's modes are a few loops."""
    equations, elements = _size(program)
    return elements_of(program.inputs) <= _FEW_INPUTS and elements >= _LONG_ARRAYS * equations


def has_too_long_sums(program: Program) -> bool:
    """Whether the sums of `has_long_sums` are so long that no kernel is made of the Hessian for a single point."""
    return has_long_sums(program) and elements_computed(program) >= _TOO_LONG_FOR_A_KERNEL


def compiling_xla(equations: float) -> float:
    return _XLA_STARTS + _XLA_EQUATION * equations


def compiling_kernel(instructions: int) -> float:
    return _KERNEL_STARTS + _KERNEL_INSTRUCTION * instructions


def _size(program: Program) -> tuple[int, int]:
    """How many equations there are, and elements that they compute; what loops repeat counts once."""
    return sum(1 for _ in _jax.all_equations(program.equations)), elements_computed(program)


def elements_computed(program: Program) -> int:
    return sum(map(_elements, _jax.all_equations(program.equations)))


def _elements(eqn: Any) -> int:
    """How many elements an equation computes; one of a matrix product is a sum of as many as it contracts."""
    computed = elements_of(eqn.outvars)
    if eqn.primitive.name != "dot_general":
        return computed
    (contracted, _), _ = eqn.params["dimension_numbers"]
    return computed * prod(_jax.shape(eqn.invars[0])[axis] for axis in contracted)


def elements_of(atoms: Iterable[Any]) -> int:
    return sum(prod(_jax.shape(atom)) for atom in atoms)
