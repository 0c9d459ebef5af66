"""The implementation of every operation of a statement on vectors."""

from collections import Counter
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from . import device, elementary
from .elementary import INFINITY, absolute, select, sqrt
from .emit import Emitter, Value, dtype_of, size_of
from .inverses import INVERSE, QUOTIENT
from .statements import Statement, Statements

# Products and sums may be contracted to fused multiply-adds; nothing else is relaxed.
_CONTRACTED = {"add": "fadd", "sub": "fsub", "mul": "fmul"}


def _arithmetic(name: str) -> Callable[[Value, Value], Value]:
    def apply(a: Value, b: Value) -> Value:
        instruction = f"{_CONTRACTED[name]} contract" if a.is_float else name
        return a.emitter.binary(instruction, a, b)

    return apply


def _intrinsic(name: str) -> Callable[..., Value]:
    return lambda x, *rest: x.emitter.call(name, x, *rest)


def _extreme(floating: str, relation: str) -> Callable[[Value, Value], Value]:
    return lambda a, b: a.emitter.call(floating, a, b) if a.is_float else select(_compared(relation)(a, b), a, b)


def _shift(instruction: str) -> Callable[[Value, Value], Value]:
    """A shift that leaves nothing but zeros, or copies of the sign, if the distance is too long."""

    def apply(x: Value, distance: Value) -> Value:
        last = 8 * size_of(x.kind) - 1
        within = (distance & ~last).equals(0)
        if instruction == "ashr":
            return x.emitter.binary(instruction, x, select(within, distance, last))
        return select(within, x.emitter.binary(instruction, x, distance & last), 0)

    return apply


def _compared(relation: str) -> Callable[[Value, Value], Value]:
    # False < True, which would be reversed for signed one-bit integers.
    def apply(a: Value, b: Value) -> Value:
        if a.kind == "i1" and relation not in ("eq", "ne"):
            a, b = (x.emitter.cast("zext", x, "i32") for x in (a, b))
        return a.emitter.compare(relation, a, b)

    return apply


def _inverse(x: Value) -> Value:
    inverse = 1 / x
    x.emitter.note_huge(absolute(inverse) < float(np.finfo(dtype_of(x.kind)).tiny))
    return inverse


def _quotient(a: Value, b: Value) -> Value:
    if a.is_float:
        return a / b
    # A quotient by zero is -1, or the largest unsigned number: all bits are ones.
    return select(b.equals(0), -1, _whole("div", a, b))


def _remainder(a: Value, b: Value) -> Value:
    if a.is_float:
        return a.emitter.remainder(a, b)
    return select(b.equals(0), a, _whole("rem", a, b))


def _whole(name: str, a: Value, b: Value) -> Value:
    """A division of whole numbers. Processors trap on division by zero and on overflow, so both are avoided."""
    if a.kind in ("u32", "u64"):
        return a.emitter.binary(f"u{name}", a, select(b.equals(0), 1, b))
    safe = a.emitter.binary(f"s{name}", a, select(b.equals(0) | b.equals(-1), 1, b))
    return select(b.equals(-1), 0 - a if name == "div" else 0, safe)


def _sign(x: Value) -> Value:
    return select(x > 0.0, 1.0, select(x < 0.0, -1.0, x))


def convert(x: Value, kind: str) -> Value:
    """A number converted to another kind. Values that do not fit an integer saturate, and NaN becomes zero."""
    emitter = x.emitter
    if kind == "i1":
        return x.differs(0)
    if x.is_float and kind in ("f32", "f64"):
        return emitter.cast("fpext" if kind == "f64" else "fptrunc", x, kind)
    if x.is_float:
        target, source = emitter.type(kind), emitter.type(x.kind)
        parts = (kind, x.kind) if emitter.lanes == 1 else (f"v{emitter.lanes}{kind}", f"v{emitter.lanes}{x.kind}")
        symbol = f"@llvm.fptosi.sat.{parts[0]}.{parts[1]}"
        emitter.declarations.add(f"declare {target} {symbol}({source})")
        return emitter.write(kind, f"call {target} {symbol}({source} {x.text})")
    if kind in ("f32", "f64"):
        return emitter.cast("uitofp" if x.kind == "i1" else "sitofp", x, kind)
    if size_of(kind) <= size_of(x.kind) and x.kind != "i1":
        return emitter.cast("trunc" if size_of(kind) < size_of(x.kind) else "bitcast", x, kind)
    return emitter.cast("sext" if x.kind in ("i32", "i64") else "zext", x, kind)


OPERATIONS: dict[str, Callable[..., Value]] = {
    "add": _arithmetic("add"),
    "sub": _arithmetic("sub"),
    "mul": _arithmetic("mul"),
    "div": _quotient,
    INVERSE: _inverse,
    QUOTIENT: device.quotient,
    "neg": lambda a: -a,
    "max": _extreme("maximum", "gt"),
    "min": _extreme("minimum", "lt"),
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "not": lambda a: ~a,
    **{relation: _compared(relation) for relation in ("eq", "ne", "lt", "le", "gt", "ge")},
    "shift_left": _shift("shl"),
    "shift_right_logical": _shift("lshr"),
    "shift_right_arithmetic": _shift("ashr"),
    "select": select,
    "abs": lambda a: absolute(a) if a.is_float else select(a < 0, 0 - a, a),
    "sign": _sign,
    "floor": _intrinsic("floor"),
    "ceil": _intrinsic("ceil"),
    "round": _intrinsic("round"),
    "round_to_even": _intrinsic("roundeven"),
    "rem": _remainder,
    "is_finite": lambda a: absolute(a) < INFINITY,
    "sqrt": sqrt,
    "rsqrt": lambda a: 1 / sqrt(a),
    "pow": elementary.power,
    **{
        name: getattr(elementary, name)
        for name in (
            "sin", "cos", "tan", "exp", "exp2", "expm1", "log", "log1p", "tanh", "sinh", "cosh", "asin", "acos", "atan",
            "asinh", "acosh", "atanh", "atan2", "logistic", "erf", "erfc", "erf_inv", "cbrt",
        )
    },
}  # fmt: skip


def instructions(program: Statements, executed: bool = False, within: int | None = None) -> int:
    """The approximate number of instructions of a program on vectors, without those that store results.

    With ``executed``, instructions of loops count as often as they run. With ``within``, only those of that scope and
    of scopes inside it count.
    """
    scopes = None if within is None else program.inside(within)
    counted = (s for s in program.statements if scopes is None or s.scope in scopes)
    kinds = Counter((s.operation, s.kind, len(s.operands), s.scope) for s in counted)
    return sum(
        count * _instructions_of(*kind) * (program.times[scope] if executed else 1)
        for (*kind, scope), count in kinds.items()
    )


def instructions_of(statement: Statement) -> int:
    """The approximate number of instructions of one statement."""
    return _instructions_of(statement.operation, statement.kind, len(statement.operands))


@lru_cache(1024)
def _instructions_of(operation: str, kind: str, operands: int) -> int:
    """The number of instructions of an operation; one for everything that is not floating-point arithmetic."""
    if operation not in OPERATIONS or kind not in ("f32", "f64"):
        return 1
    emitter = Emitter(8, exact=False)
    values = [Value(emitter, f"%x{n}", kind) for n in range(operands)]
    if operation == "select":
        values[0] = Value(emitter, "%x0", "i1")
    OPERATIONS[operation](*values)
    return len(emitter.lines)
