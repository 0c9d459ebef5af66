"""CasADi as a peer: the function in its symbols, and its Jacobian as compiled C code, called on a batch.

CasADi gets the function as straight-line code on single numbers without common subexpressions. It computes in float64,
independent of the case, on one thread, and writes only the entries of its sparsity pattern.
"""

import ctypes
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import jax
import numpy as np

from graphax import _jax
from graphax.errors import NativeError
from graphax.native.statements import Statements
from graphax.native.unroll import unroll

from .case import Case
from .contender import Ready
from .orders import Unavailable

FLAGS = ("-O3", "-march=native", "-shared", "-fPIC")
# Compiling one function with more statements takes gcc minutes.
LIMIT = 4_000
_LOOP = """
void on_batch(long long points, const double* batched, const double* shared, double* results) {{
  static double w[{work} + 1]; static casadi_int iw[{integers} + 1];
  const double* arg[{arguments} + 1]; double* res[{results} + 1];
  for (long long n = 0; n < points; ++n) {{
    arg[0] = batched + n * {batched}; arg[1] = shared; res[0] = results + n * {entries};
    jacobian(arg, res, iw, w, 0);
  }}
}}
"""


def prepare(case: Case) -> Ready:
    compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise Unavailable("it needs a C compiler, and none was found")
    start = time.perf_counter()
    function = _symbolic(case)
    library = _library(function, compiler)
    seconds = time.perf_counter() - start
    batched, shared = _operands(case)
    results = np.zeros((case.batch, function.jacobian.nnz_out(0)))
    pointers = [x.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for x in (batched, shared, results)]

    def call() -> None:
        library.on_batch(ctypes.c_longlong(case.batch), *pointers)

    call()
    return Ready(call, lambda count: function.entries(results[:count]), seconds, results.nbytes)


@dataclass(frozen=True)
class Symbolic:
    """The Jacobian as a CasADi function, from which the arrays of JAX are extracted."""

    jacobian: Any
    rows: tuple[int, ...]
    columns: tuple[int, ...]

    def entries(self, results: np.ndarray) -> list[np.ndarray]:
        """The arrays of the Jacobian, by output and argument."""
        pattern = self.jacobian.sparsity_out(0)
        dense = np.zeros((len(results), sum(self.rows), sum(self.columns)))
        dense[:, np.array(pattern.row(), int), np.array(pattern.get_col(), int)] = results
        row_ends, column_ends = np.cumsum(self.rows)[:-1], np.cumsum(self.columns)[:-1]
        return [block for rows in np.split(dense, row_ends, 1) for block in np.split(rows, column_ends, 2)]


def _symbolic(case: Case) -> Symbolic:
    import casadi

    example = case.task.arguments(case.scale)
    with jax.enable_x64(True):
        doubles = [np.asarray(x, np.float64) for x in example]
        program, operands = _jax.open_program(lambda *args: jax.tree.leaves(case.function(*args)), doubles)
    try:
        statements = unroll(program, LIMIT)
    except NativeError as error:
        raise Unavailable(f"it cannot be unrolled to single numbers: {str(error).rpartition('): ')[2]}") from None
    symbols = [casadi.SX.sym(f"x{n}", int(x.size)) for n, x in enumerate(example)]
    # Arrays that the function closes over come first.
    held = [casadi.DM(np.asarray(x, np.float64).ravel()) for x in operands[: len(operands) - len(symbols)]]
    outputs = _evaluated(statements, [*held, *symbols])
    by = casadi.vertcat(*(symbols[number] for number in case.task.argnums))
    jacobian = casadi.jacobian(casadi.vertcat(*outputs), by)
    groups = [
        casadi.vertcat(*(x for x, has_batch in zip(symbols, _batched(case), strict=True) if has_batch is wanted))
        for wanted in (True, False)
    ]
    return Symbolic(
        casadi.Function("jacobian", groups, [jacobian], {"cse": True}),
        tuple(prod(shape) for shape, _ in statements.outputs),
        tuple(int(example[number].size) for number in case.task.argnums),
    )


def _batched(case: Case) -> tuple[bool, ...]:
    """Which arguments are batched. In a batch of one, all of them count as batched."""
    return case.batched if case.batch > 1 else (True,) * len(case.points)


def _operands(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """The arguments of each point, contiguous per point, and the shared arguments."""
    pairs = list(zip(case.points, _batched(case), strict=True))
    own = [np.asarray(x, np.float64).reshape(case.batch, -1) for x, has_batch in pairs if has_batch]
    shared = [np.asarray(x, np.float64).ravel() for x, has_batch in pairs if not has_batch]
    return np.ascontiguousarray(np.concatenate(own, 1)), np.concatenate([*shared, np.zeros(1)])


def _evaluated(statements: Statements, symbols: list[Any]) -> list[Any]:
    import casadi

    values: list[Any] = []
    for statement in statements.statements:
        if statement.operation == "input":
            operand, element = statement.attribute
            values.append(symbols[operand][element])
        elif statement.operation == "constant":
            values.append(casadi.SX(float(statement.attribute)))
        else:
            apply = _operation(statement.operation)
            values.append(apply(*(values[n] for n in statement.operands)))
    return [values[n] for result in statements.results for n in result]


def _operation(name: str) -> Callable[..., Any]:
    import casadi

    if name in _OTHER:
        return _OTHER[name](casadi)
    known = getattr(casadi, _RENAMED.get(name, name), None)
    if known is None:
        raise Unavailable(f"CasADi has no {name}")
    return known


_RENAMED = {
    "sub": "minus", "add": "plus", "mul": "times", "div": "rdivide", "pow": "power", "max": "fmax", "min": "fmin",
    "abs": "fabs", "select": "if_else", "and": "logic_and", "or": "logic_or", "not": "logic_not",
}  # fmt: skip
_OTHER: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "neg": lambda casadi: lambda x: -x,
    "convert": lambda casadi: lambda x: x,
    "rsqrt": lambda casadi: lambda x: 1 / casadi.sqrt(x),
    "exp2": lambda casadi: lambda x: casadi.power(2, x),
    "logistic": lambda casadi: lambda x: 1 / (1 + casadi.exp(-x)),
    "erfc": lambda casadi: lambda x: 1 - casadi.erf(x),
}


def _library(function: Symbolic, compiler: str) -> Any:
    """The C code of the function with a loop over points, compiled and loaded."""
    import casadi

    jacobian = function.jacobian
    generator = casadi.CodeGenerator("generated.c")
    generator.add(jacobian)
    loop = _LOOP.format(
        work=jacobian.sz_w(), integers=jacobian.sz_iw(), arguments=jacobian.sz_arg(), results=jacobian.sz_res(),
        batched=jacobian.nnz_in(0), entries=jacobian.nnz_out(0),
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "generated.c", Path(folder) / "generated.so"
        source.write_text(generator.dump() + loop)
        command = [compiler, *FLAGS, str(source), "-o", str(target), "-lm"]
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
        if finished.returncode:
            raise Unavailable(f"{compiler} fails: {finished.stderr.strip().splitlines()[0]}")
        return ctypes.CDLL(str(target))
