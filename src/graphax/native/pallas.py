"""The kernel of a GPU: the statements on blocks of points, every operand loaded once and every result stored once.

XLA makes several loops of a long program, which load operands again and hand values over through memory. Operations are
as exact as XLA's: both divide by `div.full` and take elementary functions from the same library.
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import _jax
from .emit import dtype_of
from .needed import parts
from .results import results_outside, targets
from .schedule import by_scope
from .statements import Place, Statement, Statements

# Points of a block. A thread has two, so that it moves eight bytes at a time, or one where the values of two points
# would not fit its registers, or where elements of arrays lie apart in memory. Few points are spread over more blocks.
_POINTS, _THREADS_OF_A_WARP = 128, 32
_FEW_POINTS = 16_384
_MOST_STATEMENTS_OF_TWO_POINTS = 500
# Statements and elements of results. Of 900 Triton makes a kernel in four seconds; of many more it would take too long.
_MOST_STATEMENTS = 2_000
# In every step of a loop; a thread is slower than the many that XLA has for a large step.
_MOST_STATEMENTS_IN_LOOPS = 1_000
# Elements of an array are numbered by integers of 32 bits.
_MOST_ELEMENTS = 1 << 31


def _extreme(of_numbers: Callable) -> Callable:
    """Triton's leave out what is not a number."""
    return lambda a, b: lax.select(a != a, a, lax.select(b != b, b, of_numbers(a, b)))


# What Triton has, as JAX has it.
_OPERATIONS: dict[str, Callable] = {
    **{
        name: getattr(lax, name)
        for name in (
            "add", "sub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge", "select", "abs", "floor", "ceil", "sqrt",
            "rsqrt", "pow", "sin", "cos", "tan", "exp", "exp2", "expm1", "log", "log1p", "tanh", "sinh", "cosh", "asin",
            "acos", "atan", "asinh", "acosh", "atanh", "atan2", "logistic", "cbrt",
        )
    },
    "and": lax.bitwise_and,
    "or": lax.bitwise_or,
    "xor": lax.bitwise_xor,
    "not": lax.bitwise_not,
    # Triton subtracts from zero, which has no negative one.
    "neg": lambda x: x * -1,
    "max": _extreme(lax.max),
    "min": _extreme(lax.min),
    "sign": lambda x: lax.select(x > 0, jnp.ones_like(x), lax.select(x < 0, -jnp.ones_like(x), x)),
    "is_finite": lambda x: abs(x) < np.inf,
}  # fmt: skip
_OTHERWISE = frozenset(
    {"constant", "input", "convert", "bitcast", "repeat", "carry", "step", "after", "written", "entry"}
)


def reason_for_xla(program: Statements) -> str | None:
    """Why a program cannot be a kernel on a GPU, or None."""
    if _jax.triton() is None:
        return "this JAX has no Triton"
    if any(s.operation in ("kept", "table") for s in program.statements):
        return "a thread has no room for what loops read"
    missing = {s.operation for s in program.statements} - _OTHERWISE - set(_OPERATIONS)
    if missing:
        return f"Triton has no {', '.join(sorted(missing))}"
    if program.operations + results_outside(program) > _MOST_STATEMENTS:
        return f"more than {_MOST_STATEMENTS:,} statements and results take Triton long to compile"
    if program.loops and program.operations > _MOST_STATEMENTS_IN_LOOPS:
        return f"more than {_MOST_STATEMENTS_IN_LOOPS:,} statements in loops are quicker with XLA"
    if any(dtype.kind == "b" for _, dtype in (*program.inputs, *program.outputs)):
        return "truth values are not moved to and from kernels"
    if len(targets(program)) < sum(s.operation == "written" for s in program.statements):
        return "a thread has no room for what loops keep"
    return None


def on_blocks(program: Statements, batched: Sequence[bool], batch: int, interpret: bool = False) -> Callable | None:
    """From operands, of which those that are marked have a leading axis of points, to results for all points.

    None where that has to be left to XLA. ``interpret`` runs it anywhere, slowly.
    """
    arrays = (*program.inputs, *program.outputs)
    if reason_for_xla(program) or any(not 0 < batch * prod(shape) < _MOST_ELEMENTS for shape, _ in arrays):
        return None
    from jax.experimental import pallas as pl

    triton = _jax.triton()
    points = _POINTS if batch > _FEW_POINTS else _THREADS_OF_A_WARP

    def body(*refs: Any) -> None:
        point = pl.program_id(0) * points + jnp.arange(points)
        inside = None if batch % points == 0 else point < batch

        def place(ref: Any, size: int, element: Any) -> Any:
            return ref.at[point if size == 1 else point * size + element]

        def loaded(operand: int, element: Any) -> Any:
            if not batched[operand]:
                return jnp.full((points,), refs[operand][element])
            return triton.load(place(refs[operand], prod(program.inputs[operand][0]), element), mask=inside)

        def stored(result: int, element: Any, value: Any) -> None:
            ref, size = refs[len(program.inputs) + result], len(program.results[result])
            triton.store(place(ref, size, element), value, mask=inside)

        _Block(program, points, loaded, stored).run()

    flat = [jax.ShapeDtypeStruct((batch * prod(shape),), dtype) for shape, dtype in program.outputs]
    grid = (pl.cdiv(batch, points),)
    parameters = triton.CompilerParams(num_warps=_warps(program, points), num_stages=1)
    call = pl.pallas_call(body, flat, grid=grid, compiler_params=parameters, interpret=interpret)

    def run(*operands: Any) -> list[Any]:
        results = call(*[jnp.reshape(x, -1) for x in operands])
        return [jnp.reshape(x, (batch, *shape)) for x, (shape, _) in zip(results, program.outputs, strict=True)]

    return run


def _warps(program: Statements, points: int) -> int:
    arrays = any(prod(shape) > 1 for shape, _ in (*program.inputs, *program.outputs))
    points_of_a_thread = 1 if arrays or len(program.statements) > _MOST_STATEMENTS_OF_TWO_POINTS else 2
    return max(1, points // (points_of_a_thread * _THREADS_OF_A_WARP))


class _Block:
    """The statements on a block of points, given how to load elements of operands and to store those of results."""

    def __init__(self, program: Statements, points: int, loaded: Callable, stored: Callable):
        self.program, self.points, self.loaded, self.stored = program, points, loaded, stored
        self.scopes, self.direct = by_scope(program.statements), targets(program)

    def run(self) -> None:
        values = self._scope(0, {}, {})
        for result, numbers in enumerate(self.program.results):
            for element, number in enumerate(numbers):
                # What is missing was stored by a loop.
                if number in values:
                    self.stored(result, element, values[number])

    def _scope(self, scope: int, values: Mapping[int, Any], steps: Mapping[int, Any]) -> dict[int, Any]:
        """All values after the statements of a scope, given those before and the numbers of steps by scope."""
        values = dict(values)
        for number in self.scopes.get(scope, ()):
            statement = self.program.statements[number]
            match statement.operation:
                case "input":
                    operand, place = statement.attribute
                    values[number] = self.loaded(operand, self._element(place, statement.operands, steps))
                case "repeat":
                    values |= self._repeat(statement, values, steps)
                case "step":
                    values[number] = jnp.full((self.points,), steps[scope], np.int32)
                case "written":
                    target, value = self.direct[number], values[statement.operands[0]]
                    self.stored(target.result, target.offset + target.stride * steps[scope], value)
                case "after" | "carry" | "entry":
                    pass
                case "constant":
                    values[number] = jnp.full((self.points,), statement.attribute)
                case _:
                    values[number] = _computed(statement, values)
        return values

    def _element(self, place: Place, numbers: Sequence[int], steps: Mapping[int, Any]) -> Any:
        at = [steps[self.program.statements[number].scope] for number in numbers]
        return place.offset + sum(stride * step for stride, step in zip(place.strides, at, strict=True))

    def _repeat(self, repeat: Statement, values: Mapping[int, Any], steps: Mapping[int, Any]) -> dict[int, Any]:
        """A loop; returns what comes after it."""
        how, statements = repeat.attribute, self.program.statements
        carries, new, _ = parts(repeat)
        start = tuple(values[statements[carry].operands[0]] for carry in carries)

        def made(carried: Any, step: Any) -> dict[int, Any]:
            return self._scope(
                how.scope, {**values, **dict(zip(carries, carried, strict=True))}, {**steps, how.scope: step}
            )

        def one(number: Any, carried: Any) -> Any:
            found = made(carried, how.length - 1 - number if how.backward else number)
            return tuple(found[n] for n in new)

        def another(carried: Any) -> Any:
            found = made(carried, 0)
            going = found[repeat.operands[0]]
            return tuple(lax.select(going, found[n], now) for n, now in zip(new, carried, strict=True))

        def goes_on(carried: Any) -> Any:
            return jnp.max(made(carried, 0)[repeat.operands[0]].astype(np.int32)) > 0

        counted = how.length is not None
        last = lax.fori_loop(0, how.length, one, start) if counted else lax.while_loop(goes_on, another, start)
        after = {s.operands[1]: n for n, s in enumerate(statements) if s.operation == "after"}
        return {after[carry]: value for carry, value in zip(carries, last, strict=True) if carry in after}


def _computed(statement: Statement, values: Mapping[int, Any]) -> Any:
    operands = [values[number] for number in statement.operands]
    match statement.operation:
        case "convert" if statement.kind == "i1":
            return operands[0] != 0
        case "convert":
            return operands[0].astype(dtype_of(statement.kind))
        case "bitcast":
            return lax.bitcast_convert_type(operands[0], dtype_of(statement.kind))
    return _OPERATIONS[statement.operation](*operands)
