"""What programs take on a GPU, in seconds, fitted to an H200 with the functions of `benchmarks/middle.py`.

XLA launches kernels for its equations, most of which are fused, and shares out single points among threads. A kernel of
graphax is one launch, in which each thread waits for its code, for numbers in memory, and for others of its warp where
they store results together.
"""

from dataclasses import dataclass

from . import _jax
from ._jax import Program
from .sizes import elements_of_equation

# What starting takes: once, for an equation that is fused with others, for one that is not, for one that solves, and
# for a step of a loop. JAX's modes have so many times the fused equations of a function; the rest of theirs is fused.
_STARTED, _FUSED, _ALONE, _SOLVED, _STEP = 5e-6, 0.02e-6, 1e-6, 20e-6, 5e-6
_OF_A_MODE = 2.0
# An element of an array; those of JAX's modes are mostly fused away.
_MOVED, _MOVED_BY_A_MODE = 0.15e-12, 0.06e-12
_NOT_FUSED = frozenset({"dot_general", "gather", "scatter", "scatter-add", "sort", "conv_general_dilated"})
SOLVERS = frozenset({"lu", "triangular_solve", "cholesky", "qr", "geqrf", "householder_product", "eigh", "svd", "eig"})

# An instruction of a thread, as long as all code stays in the cache of instructions, and beyond; what is repeated reads
# its operands from memory. An element of a result, which a warp stores together.
_LONGEST_CACHED = 10_000
_IN_CACHE, _BEYOND, _NOT_IN_CACHE, _REPEATED, _STORED = 0.4e-9, 4e-9, 1.7e-9, 2.5e-9, 20e-9
# Up to so many points a GPU is not busy, and what XLA takes can be estimated.
FEW_POINTS = 16_384
# Code of more instructions is not compiled for a GPU without being asked for; 16,000 take three seconds.
LONGEST_CODE = 24_000
# An instruction of one of very many threads, which wait for each other.
_ISSUED, _ISSUED_NOT_IN_CACHE = 3e-14, 2e-13
# What takes at most so many times as long as starting cannot be much better.
_HARDLY_MORE = 1.3


@dataclass(frozen=True)
class ThreadWork:
    """What one thread of a GPU does, in instructions and elements of results.

    Attributes:
        threads: how many each point has.
        code: the instructions of its code.
        executed: the instructions that run.
        stored: the elements that it stores.
    """

    threads: int
    code: int
    executed: int
    stored: int


def kernel_on_gpu(work: ThreadWork, points: int) -> float:
    """What a kernel of graphax takes: a thread waits for its code and its stores, and many threads for each other."""
    cached = work.code <= _LONGEST_CACHED
    beyond = _IN_CACHE * _LONGEST_CACHED + _BEYOND * (work.code - _LONGEST_CACHED)
    fetched = _IN_CACHE * work.code if cached else min(beyond, _NOT_IN_CACHE * work.code)
    waiting = fetched + _REPEATED * (work.executed - work.code) + _STORED * work.stored
    issued = _ISSUED if cached else _ISSUED_NOT_IN_CACHE
    return _STARTED + max(waiting, issued * work.executed * work.threads * points)


def is_near_the_limit(seconds: float) -> bool:
    """Whether hardly anything but starting is left of what a kernel takes."""
    return seconds < _HARDLY_MORE * _STARTED


def xla_on_gpu(program: Program, points: int) -> float:
    """What the kernels take that XLA makes of a program."""
    return _run_by_xla(program, 1.0, _MOVED * points)


def mode_on_gpu(program: Program, passes: float, points: int) -> float:
    """What a mode of JAX takes that computes the elements of a function so many times."""
    return _run_by_xla(program, _OF_A_MODE, _MOVED_BY_A_MODE * passes * points)


def _run_by_xla(program: Program, growth: float, moved: float) -> float:
    seconds = _STARTED
    for eqn, times in _jax.repeated_equations(program.equations):
        name = eqn.primitive.name
        each = _SOLVED if name in SOLVERS else _ALONE if name in _NOT_FUSED else growth * _FUSED
        steps = eqn.params.get("length", _jax.SOME_STEPS) if name in ("scan", "while") else 0
        seconds += times * (each + moved * elements_of_equation(eqn) + _STEP * steps)
    return seconds
