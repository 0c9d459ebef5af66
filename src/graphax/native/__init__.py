"""The native backend: a derivative program as one kernel.

function of one point ──unroll──▶ Statements   on single numbers, without repetitions
       on the CPU     ──emit────▶ LLVM code    vectors over the batch, one lane per point
                      ──compile─▶ Kernel       machine code, cached on disk, called by XLA
       on a GPU       ──threads─▶ LLVM code    one thread per point
                      ──ptx─────▶ Kernel       PTX, cached on disk, compiled by the driver, launched by XLA
"""

from math import prod

from .. import _jax
from .._jax import Program
from ..compile_times import compiling_kernel, compiling_xla
from ..errors import LongCodeError, NativeError
from ..gpu_times import LONGEST_CODE
from . import contraction_rules, control_rules, cuda, eigen_rules, host, linear_rules, picking, window_rules
from .handler import interface_version
from .host import set_threads
from .operations import instructions
from .primitive import Kernel
from .results import check_room, results_outside
from .statements import Statements
from .unmapped import Unmapped, is_left_to_xla
from .unroll import LIMIT, unroll

__all__ = ["as_kernel", "check_available", "set_threads", "unmapped"]

# `auto` compiles at most this many statements, except where XLA takes as long because there are many equations. More
# would take longer to compile than users should wait for without asking. An element of a result counts as a few
# statements: it is moved between lanes and stored.
LIMIT_UNASKED = 8_000
# With many points a kernel saves more, so compiling may take two or three seconds.
LIMIT_UNASKED_MAPPED = 32_000
STATEMENTS_OF_AN_EQUATION = 20
# The limit if it is not known that there are several points.
LIMIT_ALONE, STATEMENTS_OF_AN_EQUATION_ALONE = 2_000, 40
STATEMENTS_OF_A_RESULT = 4
# The factor by which compiling a kernel for one point may exceed the compile time of XLA.
PATIENCE = 2.5
# For this many elements that are only moved and added, XLA makes loops that are just as fast.
MANY_ELEMENTS = 1_000

# These modules are imported for the rules that they register.
RULES_OF = contraction_rules, control_rules, eigen_rules, linear_rules, picking, window_rules


def check_available(required: bool) -> None:
    """Raise `NativeError` if kernels are not available here."""
    if not required and not host.available():
        raise NativeError("llvmlite is not installed")
    host.host()
    interface_version()
    if _jax.computes_on_gpu():
        cuda.check_available()


def as_kernel(program: Program, required: bool, patient: bool = False, mapped: bool = False) -> Kernel:
    """A program from arrays to arrays as a kernel; raises `NativeError` if that is impossible.

    Args:
        required: whether the kernel was requested by name, so that failing to compile it is an error.
        patient: whether the kernel may take as long to compile as a requested one.
        mapped: whether the kernel is known to run for many points.
    """
    patient = patient or required
    limit = LIMIT if patient else _limit_unasked(program, mapped)
    try:
        if not patient and not _jax.has_loops(program):
            elements = sum(prod(_jax.shape(atom)) for atom in program.outputs)
            # Most of them may be zeros, which are not known yet.
            _check_results(0, elements // STATEMENTS_OF_A_RESULT, limit)
        statements = unroll(program, limit, patient)
        if statements.depends_on_signs and not required:
            # The function itself may run in XLA, and its derivatives must have the same signs.
            raise NativeError("its results depend on the signs of eigenvectors, which are LAPACK's")
        check_room(statements)
        if not patient:
            results = results_outside(statements)
            _check_results(statements.operations, results, limit)
            _check_worth(statements, results, mapped)
            if not (mapped or _jax.has_loops(program)):
                _check_patience(instructions(statements) + results, program)
    except NativeError as error:
        raise error.within("a function", _jax.first_source_line(program)) from error.__cause__
    return Kernel(program, statements, required, lambda other: as_kernel(other, required, patient, mapped=True))


def unmapped(program: Program) -> Unmapped | None:
    """A program whose single points XLA runs in any case, as a kernel when mapped; None for any other program."""
    return Unmapped(program, lambda other: as_kernel(other, False, mapped=True)) if is_left_to_xla(program) else None


def _limit_unasked(program: Program, mapped: bool) -> int:
    equations = sum(1 for _ in _jax.all_equations(program.equations))
    least = LIMIT_UNASKED_MAPPED if mapped else LIMIT_UNASKED
    least = LONGEST_CODE if _jax.computes_on_gpu() else least
    if not (mapped or _jax.has_loops(program)):
        # XLA runs one point of few equations on long arrays. This is known before the equations are unrolled.
        least = min(least, LIMIT_ALONE + STATEMENTS_OF_AN_EQUATION_ALONE * equations)
    return min(LIMIT, max(least, STATEMENTS_OF_AN_EQUATION * equations))


def _check_results(operations: int, results: int, limit: int) -> None:
    if operations + STATEMENTS_OF_A_RESULT * results > limit:
        raise LongCodeError(f"compiling {operations:,} operations and {results:,} elements of results would take long")


def _check_patience(length: int, program: Program) -> None:
    """Raise if compiling takes much longer than with XLA and it is not known that there are many points."""
    equations = sum(1 for _ in _jax.all_equations(program.equations))
    if compiling_kernel(length) > PATIENCE * compiling_xla(equations):
        raise LongCodeError(f"compiling {length:,} instructions for one point would take longer than by XLA")


def _check_worth(statements: Statements, results: int, mapped: bool) -> None:
    """Raise if a program mostly moves elements: its results and, for a single point, its operands."""
    moved = results + (0 if mapped else sum(prod(shape) for shape, _ in statements.inputs))
    if moved > MANY_ELEMENTS and statements.operations < 2 * moved and not statements.loops:
        raise NativeError(f"XLA is as quick with {statements.operations:,} operations on {moved:,} elements")
