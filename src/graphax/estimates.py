"""Estimated run times of programs, from shapes, and the choice between several ways to run them.

Times are in seconds, based on the `speeds` of this machine if it is calibrated. They are only compared with each other,
so a machine that is slower at everything makes the same choices. `benchmarks/estimates.py` measures where the estimates
are furthest from the truth.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

from . import _jax
from ._jax import Program
from .compile_times import compiling_kernel, compiling_xla
from .gpu_times import forward_on_gpu, reverse_on_gpu, xla_on_gpu
from .sizes import elements_computed, elements_of, size
from .speeds import speeds

# Elimination programs read more arrays per array written than those of JAX's modes do.
_OF_ELIMINATION = 1.5
# Equations that JAX's forward and reverse modes make per equation, and how many of them run over all (co)tangents.
_FORWARD, _REVERSE, _LINEAR = 2.0, 4.0, 2.0
# Code with more instructions than the caches next to a core hold takes this many times as long.
_LONGEST_CACHED, _IN_LONG_CODE = 40_000, 2.0
# Instructions per statement, and statements per pass of a mode for each statement of the function. Forward passes write
# columns, which takes as long as statements do.
_INSTRUCTIONS, _OF_A_PASS = 1.2, {"jax.jacfwd": 2.5, "jax.jacrev": 2.0}
# Statements of the local derivatives per statement of the function.
_LOCAL = 2
# The same for a gradient and for a forward pass through it, and the equations of both per equation of the function.
_GRADIENT, _OF_A_GRADIENT, _SECOND = 4, 6, 12
# Hessians go straight to passes, before anything is planned, for at most this many arguments and elements per equation.
_FEW_PASSES, _SHORT_ARRAYS = 32, 8
# Kernels with fewer instructions are accepted without a second look.
_LONG_CODE = 6_000
# Compiling passes for a single point may take this many times as long as compiling by XLA.
_PATIENCE = 1.5
# The number of calls after which compiling has to pay off: with one point, and with many.
_CALLS_ALONE, _CALLS = 100_000, 1_000
# One of JAX's modes replaces elimination only in programs with this many equations, and only if it takes this much
# less. In shorter programs it has to take much less, and save more than estimates of short programs are off by.
_MANY_EQUATIONS, _CLEARLY = 200, 0.8
_BY_FAR, _SAVED = 0.35, 20e-6

# A function has few inputs up to this number, and long arrays from this mean number of elements per equation.
_FEW_INPUTS, _LONG_ARRAYS = 16, 16
# A kernel for the Hessian of such a function has at least four statements per element that the function computes.
# Functions that compute this many elements get no kernel for a single point.
_TOO_LONG_FOR_A_KERNEL = 1_000
# The assumed number of points where it is known only later.
MANY_POINTS = 1_000


@dataclass(frozen=True)
class Way:
    """A way to run a derivative program, with its estimated seconds: to run all points, and to compile."""

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
    """Seconds of a program in XLA, which starts an operation for nearly every equation and moves its elements."""
    known = speeds()
    return known.called + known.started * equations + known.moved * elements


def elimination(program: Program, points: int = 1) -> Way:
    """The estimate for an elimination program run by XLA."""
    equations, elements = size(program)
    if _jax.computes_on_gpu():
        return Way("xla", xla_on_gpu(program, points), compiling_xla(equations))
    run = _run_by_xla(_OF_ELIMINATION * equations, _OF_ELIMINATION * points * elements)
    return Way("xla", run, compiling_xla(equations))


def plain_modes(program: Program, inputs: int, outputs: int, points: int = 1) -> list[Way]:
    """Estimates for forward and reverse mode of JAX, for the given numbers of input and output elements."""
    equations, elements = size(program)

    def run(growth: float, passes: int, on_gpu: Callable[[Program, int, int], float]) -> float:
        if _jax.computes_on_gpu():
            return on_gpu(program, passes, points)
        return _run_by_xla(growth * equations, points * elements * (1 + _LINEAR * passes))

    modes = ("jax.jacfwd", _FORWARD, inputs, forward_on_gpu), ("jax.jacrev", _REVERSE, outputs, reverse_on_gpu)
    return [
        Way(name, run(growth, passes, on_gpu), compiling_xla(growth * equations))
        for name, growth, passes, on_gpu in modes
    ]


def kernel(instructions: int, executed: int, points: int = 1, name: str = "kernel") -> Way:
    """The estimate for a kernel. ``executed`` counts instructions of loops once per step."""
    known = speeds()
    in_vector = known.in_vector * (_IN_LONG_CODE if instructions > _LONGEST_CACHED else 1)
    each = known.alone if points == 1 else in_vector
    return Way(name, known.called + each * executed * points, compiling_kernel(instructions))


def kernel_of_plan(operations: float, arithmetic: int, points: int = 1) -> Way:
    """The estimate for the kernel of a plan. ``arithmetic`` is the number of statements of the function."""
    instructions = instructions_of_plan(operations, arithmetic)
    return kernel(instructions, instructions, points)


def instructions_of_plan(operations: float, arithmetic: int) -> int:
    return round(_INSTRUCTIONS * (operations + _LOCAL * arithmetic))


def kernel_of_passes(mode: str, count: int, arithmetic: int, points: int = 1) -> Way:
    """The estimate for a kernel that loops over ``count`` passes of a mode.

    ``arithmetic`` is the number of statements of the function.
    """
    once, each = _INSTRUCTIONS * arithmetic, _INSTRUCTIONS * arithmetic * _OF_A_PASS[mode]
    return kernel(round(once + each), round(once + count * each), points, f"passes of {mode}")


def hessian_of_passes(count: int, arithmetic: int, points: int = 1) -> Way:
    """The estimate for a kernel that loops over ``count`` forward passes through the gradient.

    ``arithmetic`` is the number of statements of the function.
    """
    once, each = (_INSTRUCTIONS * arithmetic * share for share in (_GRADIENT, _OF_A_GRADIENT))
    return kernel(round(once + each), round(once + count * each), points, "passes of jax.hessian")


def plain_second(program: Program, inputs: int, points: int = 1) -> Way:
    """The estimate for `jax.hessian`, with ``inputs`` elements to differentiate with respect to."""
    equations, elements = size(program)
    run = _run_by_xla(_SECOND * equations, points * elements * (_GRADIENT + _OF_A_GRADIENT * inputs))
    return Way("jax.hessian", run, compiling_xla(_SECOND * equations))


def is_long_for_second(arithmetic: int, inputs: int, equations: int) -> bool:
    """Whether planning the Hessian would take longer than compiling passes, given that there are few passes."""
    few = inputs <= _FEW_PASSES and arithmetic <= _SHORT_ARRAYS * equations
    return few and compiling_kernel(_OF_A_GRADIENT * arithmetic) > compiling_kernel(_LONG_CODE) / 4


def pays(way: Way, kernel: Way, points: int) -> bool:
    """Whether a way beats a long kernel after the expected number of calls."""
    calls = _CALLS_ALONE if points == 1 else _CALLS
    if kernel.compile < compiling_kernel(_LONG_CODE):
        return False
    return way.compile + calls * way.run < kernel.compile + calls * kernel.run


def is_quickest(ours: Way, others: Sequence[Way], points: int) -> bool:
    """Whether a kernel of passes should be faster than XLA and, for a single point, not take much longer to compile."""
    waited = points > 1 or ours.compile < _PATIENCE * min((way.compile for way in others), default=inf)
    return waited and all(ours.run < way.run for way in others)


def better_mode(ours: Program, modes: Sequence[Way], points: int, has_few_passes: bool = False) -> str | None:
    """The mode of JAX that should be faster than elimination by XLA, or None.

    The difference has to be clear, in a long program, including its branches and the bodies of its loops, or large. An
    exception is a mode with few passes through long arrays: it compiles to a few loops, no matter what they compute. On
    a GPU, it is elimination that has to take clearly less.
    """
    best, eliminated = min(modes, key=lambda way: way.run), elimination(ours, points)
    if _jax.computes_on_gpu():
        return best.name if _CLEARLY * best.run < eliminated.run else None
    if has_few_passes:
        return best.name if best.run < eliminated.run else None
    clearly = size(ours)[0] >= _MANY_EQUATIONS and best.run < _CLEARLY * eliminated.run
    by_far = best.run < _BY_FAR * eliminated.run and best.run + _SAVED < eliminated.run
    return best.name if clearly or by_far else None


def has_long_sums(program: Program) -> bool:
    """Whether a function of few inputs goes through long arrays, so that the passes of JAX's modes are a few loops."""
    equations, elements = size(program)
    return elements_of(program.inputs) <= _FEW_INPUTS and elements >= _LONG_ARRAYS * equations


def has_too_long_sums(program: Program) -> bool:
    """Whether the sums of `has_long_sums` are too long for a kernel of the Hessian of a single point."""
    return has_long_sums(program) and elements_computed(program) >= _TOO_LONG_FOR_A_KERNEL
