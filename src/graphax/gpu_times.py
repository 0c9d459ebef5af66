"""Estimated run times of programs on a GPU in seconds, fitted to an H200 by `benchmarks/divisions.py`.

XLA launches kernels for its equations, most of them fused, and splits single points among threads. A kernel of graphax
is one launch. In it, each thread waits for its code, for numbers in memory, and for other threads of its warp where
they store results together.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from . import _jax
from ._jax import Program
from .sizes import elements_of, elements_of_equation

# The time to start: once per program, per fused equation, per equation that is not fused, per equation that solves, and
# per step of a loop. In JAX's modes, the fused equations of the function count `_OF_A_MODE` times. XLA's kernels take
# longer for more points, and fused equations twice as long at `_TWICE` points.
_STARTED, _FUSED, _ALONE, _SOLVED, _STEP = 4e-6, 0.02e-6, 1e-6, 20e-6, 5e-6
_OF_A_MODE, _TWICE = 2.0, 2_048
# The time per element of an array. Elements of JAX's modes are mostly fused away. Elements that are scattered are added
# one by one, and the reverse of a gather is a scatter.
_MOVED, _MOVED_BY_A_MODE, _SCATTERED = 0.15e-12, 0.06e-12, 24e-12
_NOT_FUSED = frozenset({"dot_general", "gather", "scatter", "scatter-add", "sort", "conv_general_dilated"})
SOLVERS = frozenset({"lu", "triangular_solve", "cholesky", "qr", "geqrf", "householder_product", "eigh", "svd", "eig"})

# The time per instruction of a thread, while all code fits into the instruction cache and beyond that, and per repeated
# instruction, which reads its operands from memory.
_LONGEST_CACHED = 10_000
_IN_CACHE, _BEYOND, _NOT_IN_CACHE, _REPEATED = 1.4e-9, 4e-9, 2.4e-9, 2.8e-9
# The time per element of a result in a thread, if the warp has points for all of its threads, and if it has fewer; and
# the times that elements take in memory, and that a block of threads takes to start.
_WARP = 32
_STORED, _STORED_BY_FEW, _WRITTEN, _BLOCK = 30e-9, 6e-9, 2.4e-12, 1.9e-9
# Up to this many points a GPU is not busy, and the time of XLA can be estimated.
FEW_POINTS = 16_384
# Longer code is not compiled for a GPU unless requested; 16,000 instructions take three seconds.
LONGEST_CODE = 24_000
# The time per instruction among very many threads, which wait for each other.
_ISSUED, _ISSUED_NOT_IN_CACHE = 2e-14, 2e-13
# A kernel that takes at most this many times the start time cannot be improved much. Estimates are off by a third, so a
# kernel has to take less than this share of the time of anything that XLA runs.
_HARDLY_MORE, _CLEARLY = 1.6, 0.9


@dataclass(frozen=True)
class ThreadWork:
    """The work of one GPU thread, in instructions and elements of results.

    Attributes:
        threads: the number of threads per point that take steps of a loop.
        code: the number of instructions in the code that the thread runs.
        executed: the number of instructions that run.
        stored: the number of elements that the thread stores.
        warps: the number of warps that share the points of a warp, each with code of its own.
        others: the number of instructions in the code of the other warps.
    """

    threads: int
    code: int
    executed: int
    stored: int
    warps: int = 1
    others: int = 0


def kernel_on_gpu(work: ThreadWork, points: int) -> float:
    """Seconds of a graphax kernel. A thread waits for its code and its stores, and many threads wait for each other."""
    beyond = _IN_CACHE * _LONGEST_CACHED + _BEYOND * (work.code - _LONGEST_CACHED)
    fetched = _IN_CACHE * work.code
    if work.code > _LONGEST_CACHED:
        fetched = min(beyond, _NOT_IN_CACHE * work.code)
    together = work.threads * points
    stored = _STORED if together >= _WARP else _STORED_BY_FEW
    waiting = fetched + _REPEATED * (work.executed - work.code) + stored * work.stored
    issued = _ISSUED if work.code + work.others <= _LONGEST_CACHED else _ISSUED_NOT_IN_CACHE
    each = issued * work.executed + _WRITTEN * work.stored + _BLOCK / _WARP
    return _STARTED + waiting + each * work.warps * max(together, _WARP)


def is_near_the_limit(seconds: float) -> bool:
    """Whether a kernel takes hardly longer than starting it."""
    return seconds < _HARDLY_MORE * _STARTED


def is_clearly_quicker(seconds: float, others: Iterable[float]) -> bool:
    """Whether a kernel should be quicker than other ways, even though estimates are rough."""
    return all(seconds < _CLEARLY * other for other in others)


def xla_on_gpu(program: Program, points: int) -> float:
    """Seconds of the kernels that XLA makes of a program."""
    return _run_by_xla(program, 1.0, _MOVED, points) + _SCATTERED * points * _elements(program, "scatter")


def forward_on_gpu(program: Program, passes: int, points: int) -> float:
    """Seconds of JAX's forward mode with so many passes, including the function itself."""
    scattered = _SCATTERED * (1 + passes) * points * _elements(program, "scatter")
    return _run_by_xla(program, _OF_A_MODE, _MOVED_BY_A_MODE * (1 + 2 * passes), points) + scattered


def reverse_on_gpu(program: Program, passes: int, points: int) -> float:
    """Seconds of JAX's reverse mode with so many passes, including the function itself."""
    scattered = _elements(program, "scatter") + passes * _elements(program, "gather")
    moved = _MOVED_BY_A_MODE * (1 + 2 * passes)
    return _run_by_xla(program, _OF_A_MODE, moved, points) + _SCATTERED * points * scattered


def _elements(program: Program, kind: str) -> int:
    """The number of elements that gathers read or that scatters write."""
    equations = [eqn for eqn in _jax.all_equations(program.equations) if eqn.primitive.name.startswith(kind)]
    return sum(elements_of([eqn.invars[-1] if kind == "scatter" else eqn.outvars[0]]) for eqn in equations)


def _run_by_xla(program: Program, growth: float, moved: float, points: int) -> float:
    seconds, fused = _STARTED, growth * _FUSED * (1 + points / _TWICE)
    for eqn, times in _jax.repeated_equations(program.equations):
        name = eqn.primitive.name
        each = _SOLVED if name in SOLVERS else growth * _ALONE if name in _NOT_FUSED else fused
        steps = eqn.params.get("length", _jax.SOME_STEPS) if name in ("scan", "while") else 0
        seconds += times * (each + moved * points * elements_of_equation(eqn) + _STEP * steps)
    return seconds
