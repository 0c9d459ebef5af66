"""Branches and loops on arrays of statement numbers."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from .. import _jax
from .._jax import Literal, Program, Var
from ..bodies import while_programs
from ..errors import LongCodeError, NativeError
from .emit import kind_of
from .unroll import Numbers, Unrolling
from .unroll_rules import one_of, rule

# A loop with at most this many statements in total is written out: straight-line code is faster and not much longer.
WRITTEN_OUT = 400
# A branch with more elements than this is skipped if no point of a vector takes it.
ALWAYS_RUN = 300


@rule("cond")
def _cond(u: Unrolling, eqn: Any, which: Numbers, *operands: Numbers) -> list[Numbers]:
    """All branches, and a choice between their results. A long one of two runs only if some point takes it."""
    if eqn.effects:
        raise NativeError("its branches have effects")
    branches = [_jax.inlined(branch) for branch in eqn.params["branches"]]
    if kind_of(_jax.dtype(eqn.invars[0])) == "i1":
        which = u.elements(lambda n: u.builder.convert(n, np.int32), which)
    sizes = [_size(branch) for branch in branches]
    if len(branches) == 2 and min(sizes) <= ALWAYS_RUN < max(sizes):
        return _where_taken(u, which, branches, int(np.argmax(sizes)), operands)
    results = [u.run(branch, operands) for branch in branches]
    return [one_of(u, which, cases) for cases in zip(*results, strict=True)]


def _where_taken(
    u: Unrolling, which: Numbers, branches: Sequence[Program], long: int, operands: Sequence[Numbers]
) -> list[Numbers]:
    """The long one of two branches as a loop of at most one step, which starts with the results of the other."""
    first = u.apply("le", which, u.constants(0, np.int32))
    taken = first if long == 0 else u.apply("not", first)
    otherwise = u.run(branches[1 - long], operands)
    carried = [place for place, operand in enumerate(operands) if not u.is_known(operand)]

    def step(carries: list[Numbers], _: int) -> tuple[list[Numbers], list[Numbers], Numbers]:
        given, now = list(operands), carries[1 + len(otherwise) :]
        for place, operand in zip(carried, now, strict=True):
            given[place] = operand
        done = np.broadcast_to(u.constants(False, np.bool_), which.shape)
        return [done, *u.run(branches[long], given), *(operands[n] for n in carried)], [], carries[0]

    start = [taken, *otherwise, *(operands[n] for n in carried)]
    return u.repeat(start, None, False, step, inside=True)[0][1 : 1 + len(otherwise)]


def _size(program: Program) -> int:
    """The number of elements to compute. Bodies of loops count once."""
    return sum(prod(_jax.shape(var)) for eqn in _jax.all_equations(program.equations) for var in eqn.outvars)


@rule("empty", "empty2")
def _empty(u: Unrolling, eqn: Any) -> Numbers:
    """The placeholder that the derivative of one branch stores for the others, which never read it."""
    return np.broadcast_to(u.constants(0, _jax.dtype(eqn.outvars[0])), _jax.shape(eqn.outvars[0]))


@rule("scan")
def _scan(u: Unrolling, eqn: Any, *operands: Numbers) -> list[Numbers]:
    params = eqn.params
    body, (fixed, carried) = _jax.inlined(params["jaxpr"]), _jax.scan_counts(params)
    loop = _Scan(u, eqn, body, operands[:fixed], operands[fixed : fixed + carried], operands[fixed + carried :])
    if params["length"] <= 1 or params["length"] * (1 + _size(body)) <= WRITTEN_OUT:
        return loop.written_out()
    try:
        return loop.repeated()
    except NativeError as reason:
        # Indices other than counters become known if the loop is written out.
        try:
            return loop.written_out()
        except NativeError:
            raise reason from None


@rule("while")
def _while(u: Unrolling, eqn: Any, *operands: Numbers) -> list[Numbers]:
    count, body, condition = while_programs(eqn)
    constants, start = operands[:count], list(operands[count:])

    def step(carries: list[Numbers], _: int) -> tuple[list[Numbers], list[Numbers], Numbers]:
        return u.run(body, [*constants, *carries]), [], u.run(condition, [*constants, *carries])[0]

    return u.repeat(start, None, False, step)[0]


class _Scan:
    """A scan with its operands."""

    def __init__(self, u: Unrolling, eqn: Any, body: Program, *operands: Sequence[Numbers]):
        self.u, self.body = u, body
        self.constants, self.start, self.sliced = operands
        self.length, self.backward = eqn.params["length"], eqn.params["reverse"]
        self.stacked = [_jax.shape(var) for var in eqn.outvars[len(self.start) :]]

    def written_out(self) -> list[Numbers]:
        u, carry, rows = self.u, list(self.start), []
        if self.length > u.limit:
            raise LongCodeError(f"more than {u.limit:,} steps are not written out")
        steps = range(self.length)
        for step in reversed(steps) if self.backward else steps:
            if u.count > u.limit:
                raise LongCodeError(f"more than {u.limit:,} statements are needed once the loop is unrolled")
            results = u.run(self.body, [*self.constants, *carry, *(x[step] for x in self.sliced)])
            carry = results[: len(carry)]
            rows.append(results[len(carry) :])
        if self.backward:
            rows.reverse()
        columns = zip(*rows, strict=True) if rows else [() for _ in self.stacked]
        return [*carry, *(np.array(c, np.int64).reshape(s) for c, s in zip(columns, self.stacked, strict=True))]

    def repeated(self) -> list[Numbers]:
        u = self.u

        def step(carries: list[Numbers], number: int) -> tuple[list[Numbers], list[Numbers], None]:
            now = [u.at_step(x, number) for x in self.sliced]
            results = u.run(self.body, [*self.constants, *carries, *now])
            return results[: len(carries)], results[len(carries) :], None

        carry, rows = u.repeat(list(self.start), self.length, self.backward, step, self._counts())
        return [*carry, *rows]

    def _counts(self) -> dict[int, int]:
        """Increments per step of the carries that only count, as in `jax.lax.fori_loop`, by position."""
        made = {var: inner for inner in self.body.equations for var in inner.outvars}
        variables = self.body.inputs[len(self.constants) :]
        found = {}
        for place, (var, output) in enumerate(zip(variables, self.body.outputs[: len(self.start)], strict=False)):
            inner = made.get(output) if isinstance(output, Var) else None
            whole = kind_of(_jax.dtype(var)) in ("i32", "i64") and _jax.shape(var) == ()
            if inner is not None and whole and inner.primitive.name == "add" and inner.invars[0] is var:
                known = self.u.builder.value(int(self.start[place].ravel()[0])) is not None
                if known and isinstance(inner.invars[1], Literal):
                    found[place] = int(inner.invars[1].val)
        return found
