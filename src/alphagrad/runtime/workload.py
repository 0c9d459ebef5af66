"""The work of a kernel for one point, by kind."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from graphax.native.inverses import INVERSE, share_inverses
from graphax.native.schedule import pressure, schedule
from graphax.native.statements import Statements
from graphax.pipeline import Pipeline
from graphax.trace import Request

Workload = Counter[str]
# Operations that take about as long as an addition, or less.
SIMPLE = frozenset(
    {"add", "sub", "mul", "neg", "abs", "max", "min", "and", "or", "xor", "not", "eq", "ne", "lt", "le", "gt", "ge",
     "select", "sign", "floor", "ceil", "round", "round_to_even", "is_finite", "convert"}
)  # fmt: skip


# Operations that take no time of their own.
_FREE = frozenset({"constant", "table", "repeat", "carry", "step", "after"})


def kernel_statements(
    function: Callable, args: Sequence[Any], order: Any, argnums: int | Sequence[int], has_aux: bool = False
) -> Statements:
    """The statements of the kernel that `graphax.jacve` makes; raises `graphax.NativeError` if it makes none."""
    return Pipeline(function, args, {}, Request(argnums, has_aux), order).kernel.statements


def workload(program: Statements) -> Workload:
    """The amount of work of each kind.

    The kinds are ``arithmetic``, divisions and elementary functions by name, ``memory`` for loads and stores, and
    ``spill`` for values beyond the registers, summed over time.
    """
    program = share_inverses(program)
    statements = program.statements
    results = [number for result in program.results for number in result]
    uses = Counter(operand for statement in statements for operand in statement.operands)
    uses.update(results)
    work: Workload = Counter(memory=len(results))
    for statement in statements:
        often = program.times[statement.scope]
        if statement.operation in ("input", "entry", "written", "kept"):
            work["memory"] += often * max(1, len(statement.operands) if statement.operation == "kept" else 1)
        elif statement.operation in SIMPLE:
            work["arithmetic"] += often
            # A product that is used once, by a sum, takes no instruction of its own.
            if statement.operation in ("add", "sub"):
                fused = any(statements[n].operation == "mul" and uses[n] == 1 for n in statement.operands)
                work["arithmetic"] -= often * fused
        elif statement.operation not in _FREE:
            work["div" if statement.operation == INVERSE else statement.operation] += often
    angles = [{s.operands for s in statements if s.operation == name} for name in ("sin", "cos")]
    # The sine and the cosine of the same angle share most of their work.
    work["sincos"] = both = len(set.intersection(*angles))
    work["sin"] -= both
    work["cos"] -= both
    work["spill"] = pressure(statements, results, schedule(statements, results))[0]
    return work
