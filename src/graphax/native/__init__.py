"""The native backend: a derivative program as one kernel.

function of one point ──unroll──▶ Statements   arrays taken apart, repetitions gone
       on the CPU     ──emit────▶ LLVM code    vectors over the batch, one lane a point
                      ──compile─▶ Kernel       machine code, kept on disk, called by XLA
       on a GPU       ──threads─▶ LLVM code    a thread for each point
                      ──ptx─────▶ Kernel       PTX, kept on disk, compiled by the driver, launched by XLA
"""

from math import prod

from .. import _jax
from .._jax import Program
from ..compile_times import compiling_kernel, compiling_xla
from ..errors import LongCodeError, NativeError
from ..gpu_times import LONGEST_CODE
from . import contraction_rules, control_rules, cuda, eigen_rules, host, linear_rules, picking
from .handler import interface_version
from .host import set_threads
from .operations import instructions
from .primitive import Kernel
from .results import check_room, results_outside
from .statements import Statements
from .unmapped import Unmapped, is_left_to_xla
from .unroll import LIMIT, unroll

__all__ = ["as_kernel", "check_available", "set_threads", "unmapped"]

# More statements than this take longer to compile than one should wait for without having asked, except where XLA
# takes as long because there are many equations. An element of a result counts as a few statements: it is moved between
# lanes and stored.
LIMIT_UNASKED = 8_000
# Where it is known that there are many points, a kernel saves more and may take two or three seconds.
LIMIT_UNASKED_MAPPED = 32_000
STATEMENTS_OF_AN_EQUATION = 20
# Where it is not known that there are several points.
LIMIT_ALONE, STATEMENTS_OF_AN_EQUATION_ALONE = 2_000, 40
STATEMENTS_OF_A_RESULT = 4
# How many times as long as by XLA compiling may take for one point.
PATIENCE = 2.5
# Of so many elements that are only moved and added, XLA makes loops that are as quick.
MANY_ELEMENTS = 1_000

# Imported for the rules that they register.
RULES_OF = contraction_rules, control_rules, eigen_rules, linear_rules, picking


def check_available(required: bool) -> None:
    """Raise `NativeError` if there can be no kernels here."""
    if not required and not host.available():
        raise NativeError("llvmlite is not installed")
    host.host()
    interface_version()
    if _jax.computes_on_gpu():
        cuda.check_available()


def as_kernel(program: Program, required: bool, patient: bool = False, mapped: bool = False) -> Kernel:
    """A program from arrays to arrays as a kernel; `NativeError` where that is not possible.

    Args:
        required: whether it was asked for by name, so that failing to compile it is an error.
        patient: whether one may wait for it as for one that was.
        mapped: whether it is known to run for many points.
    """
    patient = patient or required
    limit = LIMIT if patient else _limit_unasked(program, mapped)
    try:
        if not patient and not _jax.has_loops(program):
            elements = sum(prod(_jax.shape(atom)) for atom in program.outputs)
            # Most of them may be zeros, which are not known yet.
            _check_results(0, elements // STATEMENTS_OF_A_RESULT, limit)
        statements = unroll(program, limit, patient)
        check_room(statements)
        if not patient:
            results = results_outside(statements)
            _check_results(statements.operations, results, limit)
            _check_worth(statements, results, mapped)
            if not (mapped or _jax.has_loops(program)):
                _check_patience(instructions(statements) + results, program)
    except NativeError as error:
        raise error.within("a function", _jax.first_source_line(program)) from error.__cause__
    return Kernel(program, statements, required)


def unmapped(program: Program) -> Unmapped | None:
    """A program of which XLA runs a single point in any case, as a kernel where it is mapped; None for any other."""
    return Unmapped(program, lambda: as_kernel(program, False, mapped=True)) if is_left_to_xla(program) else None


def _limit_unasked(program: Program, mapped: bool) -> int:
    equations = sum(1 for _ in _jax.all_equations(program.equations))
    least = LIMIT_UNASKED_MAPPED if mapped else LIMIT_UNASKED
    least = LONGEST_CODE if _jax.computes_on_gpu() else least
    if not (mapped or _jax.has_loops(program)):
        # One point of few equations on long arrays is XLA's, which is known before they are taken apart.
        least = min(least, LIMIT_ALONE + STATEMENTS_OF_AN_EQUATION_ALONE * equations)
    return min(LIMIT, max(least, STATEMENTS_OF_AN_EQUATION * equations))


def _check_results(operations: int, results: int, limit: int) -> None:
    if operations + STATEMENTS_OF_A_RESULT * results > limit:
        raise LongCodeError(f"compiling {operations:,} operations and {results:,} elements of results would take long")


def _check_patience(length: int, program: Program) -> None:
    """Refuse what takes much longer to compile than by XLA, where it is not known that there are many points."""
    equations = sum(1 for _ in _jax.all_equations(program.equations))
    if compiling_kernel(length) > PATIENCE * compiling_xla(equations):
        raise LongCodeError(f"compiling {length:,} instructions for one point would take longer than by XLA")


def _check_worth(statements: Statements, results: int, mapped: bool) -> None:
    """Refuse what only moves elements: so many results, and the operands of a point that is alone."""
    moved = results + (0 if mapped else sum(prod(shape) for shape, _ in statements.inputs))
    if moved > MANY_ELEMENTS and statements.operations < 2 * moved and not statements.loops:
        raise NativeError(f"XLA is as quick with {statements.operations:,} operations on {moved:,} elements")
