"""What programs take when XLA runs them, estimated from shapes, and which of several ways is taken.

Times are in seconds, by the `speeds` of this machine if it has been calibrated. They are compared with each other, so
a machine that is slower in everything changes nothing. `benchmarks/estimates.py` measures where they are furthest from
the truth.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from . import _jax
from ._jax import Program
from .compile_times import compiling_kernel, compiling_xla
from .gpu_times import mode_on_gpu, xla_on_gpu
from .sizes import elements_computed, elements_of, size
from .speeds import speeds

# Programs of elimination read more arrays for each that they write than those of JAX's modes do.
_OF_ELIMINATION = 1.5
# How many equations JAX's modes make of one, and in how many the elements of all tangents or cotangents are.
_FORWARD, _REVERSE, _LINEAR = 2.0, 4.0, 2.0
# Code of more instructions than the caches next to a core hold takes so many times as long.
_LONGEST_CACHED, _IN_LONG_CODE = 40_000, 2.0
# How many instructions a statement is, and how many statements a pass of a mode has for each of the function; forward
# passes write columns, which takes as long as statements do.
_INSTRUCTIONS, _OF_A_PASS = 1.2, {"jax.jacfwd": 2.5, "jax.jacrev": 2.0}
# How many statements the local derivatives have for each of the function.
_LOCAL = 2
# The same for a gradient, for a forward pass through it, and how many equations those are for each of the function.
_GRADIENT, _OF_A_GRADIENT, _SECOND = 4, 6, 12
# Hessians are taken pass by pass before anything is planned for so few arguments, and elements of an equation.
_FEW_PASSES, _SHORT_ARRAYS = 32, 8
# A kernel of fewer instructions is not looked at twice.
_LONG_CODE = 6_000
# How many times as long as by XLA compiling passes may take for a single point.
_PATIENCE = 1.5
# How often a program is called until what compiling takes has paid: with one point, and with many.
_CALLS_ALONE, _CALLS = 100_000, 1_000
# Elimination is left for one of JAX's modes only in programs of so many equations, and if that takes so much less.
_MANY_EQUATIONS, _CLEARLY = 200, 0.8

# Few numbers by which to differentiate, and how many elements equations have in the mean where arrays are long.
_FEW_INPUTS, _LONG_ARRAYS = 16, 16
# A kernel for the Hessian of such a function has at least four statements for each element that the function computes.
# Of a function of so many elements there is none for a single point.
_TOO_LONG_FOR_A_KERNEL = 1_000
# How many points there are where that is known only later.
MANY_POINTS = 1_000


@dataclass(frozen=True)
class Way:
    """A way to run a derivative program, and the seconds that it should take: for all points, and to compile."""

    name: str
    run: float
    compile: float

    def __str__(self):
        return f"{self.name} {_readable(self.run)} ({_readable(self.compile)} to compile)"


def _readable(seconds: float) -> str:
    for unit, each in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= each:
            return f"{seconds / each:,.0f} {unit}" if seconds >= 100 * each else f"{seconds / each:.2g} {unit}"
    return f"{seconds / 1e-9:.0f} ns"


def _run_by_xla(equations: float, elements: float) -> float:
    """XLA starts something for nearly every equation of small arrays, and moves its elements."""
    known = speeds()
    return known.called + known.started * equations + known.moved * elements


def elimination(program: Program, points: int = 1) -> Way:
    """A program of elimination, run by XLA."""
    equations, elements = size(program)
    if _jax.computes_on_gpu():
        return Way("xla", xla_on_gpu(program, points), compiling_xla(equations))
    run = _run_by_xla(_OF_ELIMINATION * equations, _OF_ELIMINATION * points * elements)
    return Way("xla", run, compiling_xla(equations))


def plain_modes(program: Program, inputs: int, outputs: int, points: int = 1) -> list[Way]:
    """Forward and reverse mode of a function, as JAX has them, for so many elements of inputs and outputs."""
    equations, elements = size(program)

    def run(growth: float, passes: int) -> float:
        if _jax.computes_on_gpu():
            return mode_on_gpu(program, 1 + _LINEAR * passes, points)
        return _run_by_xla(growth * equations, points * elements * (1 + _LINEAR * passes))

    return [
        Way(name, run(growth, passes), compiling_xla(growth * equations))
        for name, growth, passes in (("jax.jacfwd", _FORWARD, inputs), ("jax.jacrev", _REVERSE, outputs))
    ]


def kernel(instructions: int, executed: int, points: int = 1, name: str = "kernel") -> Way:
    """A kernel of so many instructions, of which so many are executed: those of loops more than once."""
    known = speeds()
    in_vector = known.in_vector * (_IN_LONG_CODE if instructions > _LONGEST_CACHED else 1)
    each = known.alone if points == 1 else in_vector
    return Way(name, known.called + each * executed * points, compiling_kernel(instructions))


def kernel_of_plan(operations: float, arithmetic: int, points: int = 1) -> Way:
    """A kernel of a plan of so many operations, for a function of so many statements."""
    instructions = instructions_of_plan(operations, arithmetic)
    return kernel(instructions, instructions, points)


def instructions_of_plan(operations: float, arithmetic: int) -> int:
    return round(_INSTRUCTIONS * (operations + _LOCAL * arithmetic))


def kernel_of_passes(mode: str, count: int, arithmetic: int, points: int = 1) -> Way:
    """A kernel with a loop of so many passes of a mode, for a function of so many statements."""
    once, each = _INSTRUCTIONS * arithmetic, _INSTRUCTIONS * arithmetic * _OF_A_PASS[mode]
    return kernel(round(once + each), round(once + count * each), points, f"passes of {mode}")


def hessian_of_passes(count: int, arithmetic: int, points: int = 1) -> Way:
    """A kernel with a loop of so many forward passes through the gradient of a function of so many statements."""
    once, each = (_INSTRUCTIONS * arithmetic * share for share in (_GRADIENT, _OF_A_GRADIENT))
    return kernel(round(once + each), round(once + count * each), points, "passes of jax.hessian")


def plain_second(program: Program, inputs: int, points: int = 1) -> Way:
    """`jax.hessian` of a function of so many elements."""
    equations, elements = size(program)
    run = _run_by_xla(_SECOND * equations, points * elements * (_GRADIENT + _OF_A_GRADIENT * inputs))
    return Way("jax.hessian", run, compiling_xla(_SECOND * equations))


def is_long_for_second(arithmetic: int, inputs: int, equations: int) -> bool:
    """Whether planning the Hessian of a function would take longer than compiling passes, of which there are few."""
    few = inputs <= _FEW_PASSES and arithmetic <= _SHORT_ARRAYS * equations
    return few and compiling_kernel(_OF_A_GRADIENT * arithmetic) > compiling_kernel(_LONG_CODE) / 4


def pays(way: Way, kernel: Way, points: int) -> bool:
    """Whether a way is better than a long kernel, after as many calls as one may expect."""
    calls = _CALLS_ALONE if points == 1 else _CALLS
    if kernel.compile < compiling_kernel(_LONG_CODE):
        return False
    return way.compile + calls * way.run < kernel.compile + calls * kernel.run


def is_quickest(ours: Way, others: Sequence[Way], points: int) -> bool:
    """Whether a kernel of passes should be quicker than XLA, and not be waited for much longer for a single point."""
    waited = points > 1 or ours.compile < _PATIENCE * min((way.compile for way in others), default=inf)
    return waited and all(ours.run < way.run for way in others)


def better_mode(ours: Program, modes: Sequence[Way], points: int, has_few_passes: bool = False) -> str | None:
    """The mode of JAX that takes less time than elimination by XLA, or None.

    It has to be clearly less, in a long program, unless the mode has few passes through long arrays: those are a few
    loops then, whatever is computed in them.
    """
    best, eliminated = min(modes, key=lambda way: way.run), elimination(ours, points)
    if has_few_passes:
        return best.name if best.run < eliminated.run else None
    clearly = len(ours.equations) >= _MANY_EQUATIONS and best.run < _CLEARLY * eliminated.run
    return best.name if clearly else None


def has_long_sums(program: Program) -> bool:
    """Whether a function of few numbers goes through long arrays, so that all passes of JAX's modes are a few loops."""
    equations, elements = size(program)
    return elements_of(program.inputs) <= _FEW_INPUTS and elements >= _LONG_ARRAYS * equations


def has_too_long_sums(program: Program) -> bool:
    """Whether the sums of `has_long_sums` are so long that no kernel is made of the Hessian for a single point."""
    return has_long_sums(program) and elements_computed(program) >= _TOO_LONG_FOR_A_KERNEL
