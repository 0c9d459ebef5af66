"""The native backend: a derivative program as one kernel.

function of one point ──unroll──▶ Statements   arrays taken apart, repetitions gone
       on the CPU     ──emit────▶ LLVM code    vectors over the batch, one lane a point
                      ──compile─▶ Kernel       machine code, kept on disk, called by XLA
       on a GPU       ──pallas──▶ Kernel       blocks of points, compiled by Triton
"""

from math import prod

from .. import _jax
from .._jax import Program
from ..errors import NativeError
from . import control_rules, host
from .handler import interface_version
from .host import set_threads
from .primitive import Kernel
from .results import check_room, results_outside
from .unroll import LIMIT, unroll

__all__ = ["as_kernel", "check_available", "set_threads"]

# More statements than this take longer to compile than it is polite to without being asked. An element of a result
# counts as a few of them: it is moved between lanes and stored.
LIMIT_UNASKED = 8_000
STATEMENTS_OF_A_RESULT = 4

assert control_rules.one_of is not None


def check_available(required: bool) -> None:
    """Raise `NativeError` if there can be no kernels here."""
    # Kernels of a GPU are compiled by JAX itself.
    if not _jax.computes_on_gpu():
        if not required and not host.available():
            raise NativeError("llvmlite is not installed")
        host.host()
        interface_version()


def as_kernel(program: Program, required: bool) -> Kernel:
    """A program from arrays to arrays as a kernel; `NativeError` where that is not possible."""
    limit = LIMIT if required else LIMIT_UNASKED
    try:
        if not required and not _jax.has_loops(program):
            _check_results(0, sum(prod(_jax.shape(atom)) for atom in program.outputs))
        statements = unroll(program, limit)
        check_room(statements)
        if not required:
            _check_results(statements.operations, results_outside(statements))
    except NativeError as error:
        raise error.within("a function", _jax.first_source_line(program)) from error.__cause__
    return Kernel(program, statements, required)


def _check_results(operations: int, results: int) -> None:
    if operations + STATEMENTS_OF_A_RESULT * results > LIMIT_UNASKED:
        raise NativeError(f"compiling {operations:,} operations and {results:,} elements of results would take long")
