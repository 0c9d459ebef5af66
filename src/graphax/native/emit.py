"""Vectors in LLVM's language: `Value` is a vector with the operators of Python, and `Emitter` writes the instructions.

An instruction that was written before is not written again. So code that needs a value twice, such as the reduction of
an angle for its sine and its cosine, may simply request it twice.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Union

import numpy as np

# Kinds of numbers: LLVM's name and the size in bytes.
_TYPES = {
    "f32": ("float", 4),
    "f64": ("double", 8),
    "i1": ("i1", 1),
    "i8": ("i8", 1),
    "i32": ("i32", 4),
    "i64": ("i64", 8),
    "u32": ("i32", 4),
    "u64": ("i64", 8),
}
_BITS = {"f32": "i32", "f64": "i64"}
_KINDS = {
    "float32": "f32",
    "float64": "f64",
    "bool": "i1",
    "int32": "i32",
    "int64": "i64",
    "uint32": "u32",
    "uint64": "u64",
}

# The time that LLVM spends on a block grows faster than its length, and its scheduler undoes an order that keeps few
# values alive. So code is cut into blocks of about this many instructions.
LONGEST_BLOCK = 500
# The names of constants in memory begin like this.
TABLE = "@quick.table"

Operand = Union["Value", float, int, bool]


def kind_of(dtype: Any) -> str | None:
    """The kind of number of a NumPy dtype, or None if it is not supported."""
    return _KINDS.get(np.dtype(dtype).name) if isinstance(dtype, np.dtype | type) else None


def dtype_of(kind: str) -> np.dtype:
    return np.dtype(next(name for name, found in _KINDS.items() if found == kind))


def size_of(kind: str) -> int:
    return _TYPES[kind][1]


def scalar_type(kind: str) -> str:
    return _TYPES[kind][0]


def _operators(floating: str, integral: str) -> tuple[Callable[["Value", Operand], "Value"], ...]:
    """An operator on vectors, and the same with its operands exchanged."""

    def apply(self: "Value", other: Operand) -> "Value":
        return self.emitter.binary(floating if self.is_float else integral, self, self.emitter.value(self.kind, other))

    def exchanged(self: "Value", other: Operand) -> "Value":
        return apply(self.emitter.value(self.kind, other), self)

    return apply, exchanged


def _comparison(relation: str) -> Callable[["Value", Operand], "Value"]:
    return lambda self, other: self.emitter.compare(relation, self, other)


@dataclass(frozen=True, eq=False)
class Value:
    """A vector of numbers, or a single number if there is one lane."""

    emitter: "Emitter"
    text: str
    kind: str

    @property
    def is_float(self) -> bool:
        return self.kind in _BITS

    def __neg__(self) -> "Value":
        return self.emitter.unary("fneg", self) if self.is_float else 0 - self

    def __invert__(self) -> "Value":
        return self ^ (1 if self.kind == "i1" else -1)

    __add__, __radd__ = _operators("fadd", "add")
    __sub__, __rsub__ = _operators("fsub", "sub")
    __mul__, __rmul__ = _operators("fmul", "mul")

    def __truediv__(self, other: Operand) -> "Value":
        return self.emitter.divide(self, self.emitter.value(self.kind, other))

    def __rtruediv__(self, other: Operand) -> "Value":
        return self.emitter.divide(self.emitter.value(self.kind, other), self)

    __and__, __rand__ = _operators("and", "and")
    __or__, __ror__ = _operators("or", "or")
    __xor__, __rxor__ = _operators("xor", "xor")
    __lshift__, __rlshift__ = _operators("shl", "shl")
    # Keeps the sign.
    __rshift__, __rrshift__ = _operators("ashr", "ashr")
    __lt__, __le__, __gt__, __ge__ = map(_comparison, ("lt", "le", "gt", "ge"))
    equals = _comparison("eq")
    # True for NaN, as in IEEE 754.
    differs = _comparison("ne")

    def bits(self) -> "Value":
        return self.emitter.cast("bitcast", self, _BITS[self.kind])

    def as_float(self) -> "Value":
        return self.emitter.cast("bitcast", self, {"i32": "f32", "i64": "f64"}[self.kind])


@dataclass(eq=False)
class Emitter:
    """Writes instructions on vectors of ``lanes`` numbers.

    Attributes:
        exact: whether arguments may be of any size. If not, `huge` collects where they are too large for the fast code.
        block: the label of the current block: instructions in sequence, up to a jump.
        longest: the number of instructions after which `cut` ends a block; None for no limit.
        lines: the instructions so far.
        declarations: the functions that they call, and constants.
        allocations: the memory that they use, which is reserved before the first instruction.
    """

    lanes: int
    exact: bool = True
    block: str = "entry"
    longest: int | None = None
    lines: list[str] = field(default_factory=list)
    declarations: set[str] = field(default_factory=set)
    allocations: list[str] = field(default_factory=list)
    huge: Value | None = None
    _seen: dict[str, str] = field(default_factory=dict)
    _noted: set[str] = field(default_factory=set)
    _names: int = 0
    _begun: int = 0

    @property
    def text(self) -> str:
        return "\n".join(f"  {line}" for line in self.lines)

    def type(self, kind: str) -> str:
        scalar = _TYPES[kind][0]
        return scalar if self.lanes == 1 else f"<{self.lanes} x {scalar}>"

    def literal(self, kind: str, value: float | int | bool) -> str:
        """A constant of one lane."""
        if kind not in _BITS:
            return str(int(value))
        rounded = np.float32(value) if kind == "f32" else np.float64(value)
        return "0x" + struct.pack(">d", float(rounded)).hex()

    def value(self, kind: str, value: Operand) -> Value:
        """A constant in all lanes. A vector is returned unchanged."""
        if isinstance(value, Value):
            return value
        text = self.literal(kind, value)
        return Value(self, text if self.lanes == 1 else f"splat ({_TYPES[kind][0]} {text})", kind)

    def write(self, kind: str, instruction: str) -> Value:
        """The result of an instruction without effects."""
        name = self._seen.get(instruction)
        if name is None:
            name = self._seen[instruction] = self.fresh("%v")
            self.lines.append(f"{name} = {instruction}")
        return Value(self, name, kind)

    def fresh(self, prefix: str) -> str:
        """A unique name."""
        self._names += 1
        return f"{prefix}{self._names}"

    def begin(self, label: str) -> None:
        """Continue after a label. The code before it must have ended with a jump."""
        self.lines.append(f"{label}:")
        self.block, self._begun = label, len(self.lines)

    def cut(self) -> None:
        """End the block if it is long.

        LLVM must not join it with the next block, so it must not know that `%never` is false. The function provides
        `%never`, and ends at `%stop`.
        """
        if self.longest is not None and len(self.lines) - self._begun >= self.longest:
            label = self.fresh("cut")
            self.perform(f"br i1 %never, label %stop, label %{label}")
            self.begin(label)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """A context for the body of a loop or branch. Code after it does not reuse instructions from inside."""
        outside = self._seen
        self._seen = dict(outside)
        yield
        self._seen = outside

    def allocate(self, room: str) -> str:
        name = self.fresh("%room")
        self.allocations.append(f"{name} = alloca {room}, align 64")
        return name

    def constant(self, content: str) -> str:
        """The name of a constant in memory."""
        name = self.fresh("@exact.table" if self.exact else TABLE)
        self.declarations.add(f"{name} = internal constant {content}")
        return name

    def perform(self, instruction: str) -> None:
        """Write an instruction with an effect and no result."""
        self.lines.append(instruction)

    def unary(self, name: str, x: Value) -> Value:
        return self.write(x.kind, f"{name} {self.type(x.kind)} {x.text}")

    def binary(self, name: str, a: Value, b: Value) -> Value:
        return self.write(a.kind, f"{name} {self.type(a.kind)} {a.text}, {b.text}")

    def divide(self, a: Value, b: Value) -> Value:
        """A quotient of floating-point numbers."""
        return self.binary("fdiv", a, b)

    def sqrt(self, x: Value) -> Value:
        return self.call("sqrt", x)

    def remainder(self, x: Value, y: Value) -> Value:
        """The remainder of x after subtracting y as often as it fits."""
        return self.by_lane("fmodf" if x.kind == "f32" else "fmod", x, y)

    def reduced(self, a: Value, far: Value, angle: Value, quadrant: Value) -> tuple[Value, Value]:
        """The angle and the quadrant of a. The given ones are correct unless a is ``far`` from zero."""
        self.note_huge(far)
        return angle, quadrant

    def compare(self, relation: str, a: Value, b: Operand) -> Value:
        b = self.value(a.kind, b)
        if a.is_float:
            code = f"fcmp {'u' if relation == 'ne' else 'o'}{relation}"
        else:
            code = f"icmp {relation if relation in ('eq', 'ne') else a.kind[0].replace('i', 's') + relation}"
        return self.write("i1", f"{code} {self.type(a.kind)} {a.text}, {b.text}")

    def select(self, condition: Value, a: Operand, b: Operand) -> Value:
        kind = a.kind if isinstance(a, Value) else b.kind if isinstance(b, Value) else None
        assert kind is not None, "a choice between two constants has no kind"
        a, b = self.value(kind, a), self.value(kind, b)
        flag, kind_type = self.type("i1"), self.type(kind)
        return self.write(kind, f"select {flag} {condition.text}, {kind_type} {a.text}, {kind_type} {b.text}")

    def cast(self, name: str, x: Value, kind: str) -> Value:
        return self.write(kind, f"{name} {self.type(x.kind)} {x.text} to {self.type(kind)}")

    def call(self, name: str, *operands: Operand, kind: str | None = None) -> Value:
        """An intrinsic function of vectors of one kind: ``kind``, or that of its first operand."""
        kind = kind or next(operand.kind for operand in operands if isinstance(operand, Value))
        suffix = kind if self.lanes == 1 else f"v{self.lanes}{kind}"
        texts = ", ".join(f"{self.type(kind)} {self.value(kind, operand).text}" for operand in operands)
        result = self.type(kind)
        symbol = f"@llvm.{name}.{suffix}"
        self.declarations.add(f"declare {result} {symbol}({', '.join([result] * len(operands))})")
        return self.write(kind, f"call {result} {symbol}({texts})")

    def by_lane(self, function: str, *operands: Value, declared: bool = False) -> Value:
        """Apply a scalar function lane by lane. It is from the C library unless it is already declared."""
        kind = operands[0].kind
        scalar = _TYPES[kind][0]
        if not declared:
            self.declarations.add(f"declare {scalar} @{function}({', '.join([scalar] * len(operands))})")
        called = []
        for lane in range(self.lanes):
            texts = [f"{scalar} {self.lane(operand, lane).text}" for operand in operands]
            called.append(self.write(kind, f"call {scalar} @{function}({', '.join(texts)})"))
        return self.joined(called)

    def joined(self, numbers: Sequence[Value]) -> Value:
        """Combine one number per lane into a vector."""
        if self.lanes == 1:
            return numbers[0]
        kind = numbers[0].kind
        result = Value(self, "poison", kind)
        for lane, one in enumerate(numbers):
            pieces = f"{self.type(kind)} {result.text}, {scalar_type(kind)} {one.text}"
            result = self.write(kind, f"insertelement {pieces}, i32 {lane}")
        return result

    def rarely(self, condition: Value, usual: Sequence[Value], make: Callable[[], Sequence[Value]]) -> list[Value]:
        """``usual`` values or, in lanes where a condition holds, others that are computed behind a jump."""
        known = self._seen.get(f"rarely {condition.text}")
        label = known or self.fresh("rare")
        names = [f"%{label}.value{n}" for n in range(len(usual))]
        if known is None:
            some, before = self.any(condition), self.block
            self.perform(f"br i1 {some.text}, label %{label}, label %{label}.after")
            self.begin(label)
            with self.inside():
                others = [self.select(condition, new, value) for new, value in zip(make(), usual, strict=True)]
                self.perform(f"br label %{label}.after")
            last = self.block
            self.begin(f"{label}.after")
            for name, value, other in zip(names, usual, others, strict=True):
                kind = self.type(value.kind)
                self.perform(f"{name} = phi {kind} [{value.text}, %{before}], [{other.text}, %{last}]")
            self._seen[f"rarely {condition.text}"] = label
        return [Value(self, name, value.kind) for name, value in zip(names, usual, strict=True)]

    def splat(self, one: Value) -> Value:
        """One number in all lanes."""
        if self.lanes == 1:
            return one
        vector, scalar = self.type(one.kind), scalar_type(one.kind)
        first = self.write(one.kind, f"insertelement {vector} poison, {scalar} {one.text}, i64 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return self.write(one.kind, f"shufflevector {vector} {first.text}, {vector} poison, {zeros}")

    def any(self, flags: Value) -> Value:
        """Whether any lane is true."""
        if self.lanes == 1:
            return flags
        bits = self.write("i1", f"bitcast <{self.lanes} x i1> {flags.text} to i{self.lanes}")
        return self.write("i1", f"icmp ne i{self.lanes} {bits.text}, 0")

    def lane(self, x: Value, lane: int) -> Value:
        if self.lanes == 1:
            return x
        return self.write(x.kind, f"extractelement {self.type(x.kind)} {x.text}, i32 {lane}")

    def note_huge(self, condition: Value) -> None:
        if condition.text not in self._noted:
            self._noted.add(condition.text)
            self.huge = condition if self.huge is None else self.huge | condition


def fma(a: Value, b: Operand, c: Operand) -> Value:
    """a·b + c, rounded once."""
    return a.emitter.call("fma", a, b, c)
