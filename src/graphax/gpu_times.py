"""Estimated run times of programs on a GPU in seconds, fitted to an H200 with the functions of `benchmarks/middle.py`.

XLA launches kernels for its equations, most of them fused, and splits single points among threads. A kernel of graphax
is one launch. In it, each thread waits for its code, for numbers in memory, and for other threads of its warp where
they store results together.
"""

from dataclasses import dataclass

from . import _jax
from ._jax import Program
from .sizes import elements_of_equation

# The time to start: once per program, per fused equation, per equation that is not fused, per equation that solves, and
# per step of a loop. In JAX's modes, the fused equations of the function count `_OF_A_MODE` times.
_STARTED, _FUSED, _ALONE, _SOLVED, _STEP = 5e-6, 0.02e-6, 1e-6, 20e-6, 5e-6
_OF_A_MODE = 2.0
# The time per element of an array. Elements of JAX's modes are mostly fused away.
_MOVED, _MOVED_BY_A_MODE = 0.15e-12, 0.06e-12
_NOT_FUSED = frozenset({"dot_general", "gather", "scatter", "scatter-add", "sort", "conv_general_dilated"})
SOLVERS = frozenset({"lu", "triangular_solve", "cholesky", "qr", "geqrf", "householder_product", "eigh", "svd", "eig"})

# The time per instruction of a thread, while all code fits into the instruction cache and beyond that; per repeated
# instruction, which reads its operands from memory; and per element of a result, which a warp stores together.
_LONGEST_CACHED = 10_000
_IN_CACHE, _BEYOND, _NOT_IN_CACHE, _REPEATED, _STORED = 0.4e-9, 4e-9, 1.7e-9, 2.5e-9, 20e-9
# Up to this many points a GPU is not busy, and the time of XLA can be estimated.
FEW_POINTS = 16_384
# Longer code is not compiled for a GPU unless requested; 16,000 instructions take three seconds.
LONGEST_CODE = 24_000
# The time per instruction among very many threads, which wait for each other.
_ISSUED, _ISSUED_NOT_IN_CACHE = 3e-14, 2e-13
# A kernel that takes at most this many times the start time cannot be improved much.
_HARDLY_MORE = 1.3


@dataclass(frozen=True)
class ThreadWork:
    """The work of one GPU thread, in instructions and elements of results.

    Attributes:
        threads: the number of threads per point.
        code: the number of instructions in the code.
        executed: the number of instructions that run.
        stored: the number of elements that the thread stores.
    """

    threads: int
    code: int
    executed: int
    stored: int


def kernel_on_gpu(work: ThreadWork, points: int) -> float:
    """Seconds of a graphax kernel. A thread waits for its code and its stores, and many threads wait for each other."""
    cached = work.code <= _LONGEST_CACHED
    beyond = _IN_CACHE * _LONGEST_CACHED + _BEYOND * (work.code - _LONGEST_CACHED)
    fetched = _IN_CACHE * work.code if cached else min(beyond, _NOT_IN_CACHE * work.code)
    waiting = fetched + _REPEATED * (work.executed - work.code) + _STORED * work.stored
    issued = _ISSUED if cached else _ISSUED_NOT_IN_CACHE
    return _STARTED + max(waiting, issued * work.executed * work.threads * points)


def is_near_the_limit(seconds: float) -> bool:
    """Whether a kernel takes hardly longer than starting it."""
    return seconds < _HARDLY_MORE * _STARTED


def xla_on_gpu(program: Program, points: int) -> float:
    """Seconds of the kernels that XLA makes of a program."""
    return _run_by_xla(program, 1.0, _MOVED * points)


def mode_on_gpu(program: Program, passes: float, points: int) -> float:
    """Seconds of a JAX mode that computes the elements of a function ``passes`` times."""
    return _run_by_xla(program, _OF_A_MODE, _MOVED_BY_A_MODE * passes * points)


def _run_by_xla(program: Program, growth: float, moved: float) -> float:
    seconds = _STARTED
    for eqn, times in _jax.repeated_equations(program.equations):
        name = eqn.primitive.name
        each = _SOLVED if name in SOLVERS else _ALONE if name in _NOT_FUSED else growth * _FUSED
        steps = eqn.params.get("length", _jax.SOME_STEPS) if name in ("scan", "while") else 0
        seconds += times * (each + moved * elements_of_equation(eqn) + _STEP * steps)
    return seconds
