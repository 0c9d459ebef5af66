"""The code of a kernel: a loop over blocks of points, in each the statements on vectors, one lane a point."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import prod

from .emit import Emitter, Value, scalar_type, size_of
from .inverses import share_inverses
from .operations import OPERATIONS, convert
from .schedule import schedule
from .statements import Statements

# The function of a kernel.
POINTS = "graphax_points"

# Elements of one result that are turned from lanes into neighbours in memory at once.
_GROUP = 8

_LOOP = """
define void @graphax_points(ptr %in, ptr %out, i64 %begin, i64 %end) {{
entry:
{pointers}
{alignment}
  %last = sub i64 %end, {lanes}
  br label %block
block:
  %start = phi i64 [%begin, %entry], [%after, %next]
  ; The last block overlaps the one before it where the points do not come out even.
  %beyond = icmp sgt i64 %start, %last
  %i = select i1 %beyond, i64 %last, i64 %start
{branch}
quick:
{body}
{check}
slow:
{exact}
  br label %next
next:
  %after = add i64 %start, {lanes}
  %more = icmp slt i64 %after, %end
  br i1 %more, label %block, label %done
done:
  ret void
}}
"""
# One block that is right for all arguments and wherever the results lie in memory.
_EXACT = """
define internal void @exact(ptr %in, ptr %out, i64 %i) noinline cold {{
{pointers}
{body}
  ret void
}}
"""
_STREAMED = """  %odd = or i1 %beyond, %misaligned
  br i1 %odd, label %slow, label %quick, !prof !1"""
_LINE = 64
# So many lines ahead of a result its memory is fetched.
_AHEAD = 4
_METADATA = """
!0 = !{}
!1 = !{!"branch_weights", i32 1, i32 1000000}
!2 = !{i32 1}
"""


class Stores(Enum):
    """Ways to write results, for ever more of them.

    What does not fit the cache of a core is fetched before it is written, which the processor does by itself for a few
    arrays only. What fits no cache goes past them, which pays for many arrays that nothing reads soon.
    """

    CACHED = "cached"
    PREFETCHED = "prefetched"
    STREAMED = "streamed"


@dataclass(frozen=True)
class PointLayout:
    """How the points lie in memory.

    Attributes:
        lanes: how many are computed at once.
        batched: which operands have a value for each point.
        stores: how results go to memory.
    """

    lanes: int
    batched: tuple[bool, ...]
    stores: Stores = Stores.CACHED

    @property
    def has_batch(self) -> bool:
        return any(self.batched)


def kernel_code(program: Statements, layout: PointLayout) -> str:
    """A module with one function, which computes points from a first to a last one."""
    quick = _Body(share_inverses(program), layout, exact=False)
    huge = quick.emitter.huge
    parts, declarations = [], set(quick.emitter.declarations)
    if huge is not None or layout.stores is Stores.STREAMED:
        exact = _Body(program, replace(layout, stores=Stores.CACHED), exact=True)
        declarations |= exact.emitter.declarations
        parts.append(_EXACT.format(pointers=_pointers(program), body=exact.text))
    parts.append(
        _LOOP.format(
            pointers=_pointers(program),
            alignment=_alignment(program) if layout.stores is Stores.STREAMED else "",
            branch=_STREAMED if layout.stores is Stores.STREAMED else "  br label %quick",
            body=quick.text,
            check="  br label %next" if huge is None else _check(layout.lanes, huge),
            exact="  call void @exact(ptr %in, ptr %out, i64 %i)" if len(parts) else "",
            lanes=layout.lanes,
        )
    )
    return "\n".join([*sorted(declarations), *parts, _METADATA])


def _pointers(program: Statements) -> str:
    lines = []
    for name, count in (("in", len(program.inputs)), ("out", len(program.outputs))):
        for n in range(count):
            lines.append(f"  %{name}{n}.slot = getelementptr ptr, ptr %{name}, i64 {n}")
            lines.append(f"  %{name}{n} = load ptr, ptr %{name}{n}.slot, !invariant.load !0")
    return "\n".join(lines)


def _alignment(program: Statements) -> str:
    """Whether all results and the first point begin where a line of the cache does."""
    lines = ["  %bits0 = shl i64 %begin, 2"]
    for n in range(len(program.outputs)):
        lines.append(f"  %address{n} = ptrtoint ptr %out{n} to i64")
        lines.append(f"  %bits{n + 1} = or i64 %bits{n}, %address{n}")
    lines.append(f"  %odd.bits = and i64 %bits{len(program.outputs)}, {_LINE - 1}")
    lines.append("  %misaligned = icmp ne i64 %odd.bits, 0")
    return "\n".join(lines)


def _check(lanes: int, huge: Value) -> str:
    """Compute the block again, slowly, if an argument was too large for the quick way."""
    if lanes == 1:
        return f"  br i1 {huge.text}, label %slow, label %next, !prof !1"
    return f"""  %any = bitcast <{lanes} x i1> {huge.text} to i{lanes}
  %some = icmp ne i{lanes} %any, 0
  br i1 %some, label %slow, label %next, !prof !1"""


class _Body:
    """The statements of one block of points, from loads to stores."""

    def __init__(self, program: Statements, layout: PointLayout, exact: bool):
        self.emitter = Emitter(layout.lanes, exact)
        self.layout = layout
        self.program = program
        self.values: dict[int, Value] = {}
        waiting = self._groups()
        for number in schedule(program.statements, [n for result in program.results for n in result]):
            self.values[number] = self._computed(number)
            for group in waiting.get(number, ()):
                group.missing.discard(number)
                if not group.missing:
                    self._store(group)

    @property
    def text(self) -> str:
        return "\n".join(f"  {line}" for line in self.emitter.lines)

    def _computed(self, number: int) -> Value:
        statement = self.program.statements[number]
        if statement.operation == "constant":
            return self.emitter.value(statement.kind, statement.attribute)
        if statement.operation == "input":
            operand, element = statement.attribute
            return self._loaded(operand, element, statement.kind)
        operands = [self.values[n] for n in statement.operands]
        if statement.operation == "convert":
            return convert(operands[0], statement.kind)
        if statement.operation == "bitcast":
            return self.emitter.cast("bitcast", operands[0], statement.kind)
        return OPERATIONS[statement.operation](*operands)

    def _loaded(self, operand: int, element: int, kind: str) -> Value:
        emitter, lanes = self.emitter, self.layout.lanes
        stored = "i8" if kind == "i1" else kind
        scalar, size = scalar_type(stored), prod(self.program.inputs[operand][0])
        base = f"%in{operand}"
        if not self.layout.batched[operand]:
            place = emitter.write("ptr", f"getelementptr {scalar}, ptr {base}, i64 {element}")
            one = emitter.write(stored, f"load {scalar}, ptr {place.text}, !invariant.load !0")
            return self._truth(self._splat(one), kind)
        place = self._address(base, scalar, size, element)
        vector = emitter.type(stored)
        if size == 1 or lanes == 1:
            load = f"load {vector}, ptr {place.text}, align {size_of(stored)}, !invariant.load !0"
            return self._truth(emitter.write(stored, load), kind)
        steps = ", ".join(f"i64 {lane * size}" for lane in range(lanes))
        places = emitter.write("ptr", f"getelementptr {scalar}, ptr {place.text}, <{lanes} x i64> <{steps}>")
        symbol = f"@llvm.masked.gather.v{lanes}{stored}.v{lanes}p0"
        signature = f"<{lanes} x ptr>, i32, <{lanes} x i1>, {vector}"
        emitter.declarations.add(f"declare {vector} {symbol}({signature})")
        all_lanes = f"<{lanes} x i1> splat (i1 true), {vector} poison"
        gather = f"call {vector} {symbol}(<{lanes} x ptr> {places.text}, i32 {size_of(stored)}, {all_lanes})"
        return self._truth(emitter.write(stored, gather), kind)

    def _truth(self, value: Value, kind: str) -> Value:
        return value.differs(0) if kind == "i1" else value

    def _splat(self, one: Value) -> Value:
        if self.layout.lanes == 1:
            return one
        vector, scalar = self.emitter.type(one.kind), scalar_type(one.kind)
        first = self.emitter.write(one.kind, f"insertelement {vector} poison, {scalar} {one.text}, i64 0")
        zeros = f"<{self.layout.lanes} x i32> zeroinitializer"
        return self.emitter.write(one.kind, f"shufflevector {vector} {first.text}, {vector} poison, {zeros}")

    def _address(self, base: str, scalar: str, size: int, element: int) -> Value:
        """Where an element of the first point of the block is."""
        emitter = self.emitter
        place = emitter.write("i64", "add i64 %i, 0" if size == 1 else f"mul i64 %i, {size}")
        if element:
            place = emitter.write("i64", f"add i64 {place.text}, {element}")
        return emitter.write("ptr", f"getelementptr {scalar}, ptr {base}, i64 {place.text}")

    def _groups(self) -> dict[int, list["_Group"]]:
        """Elements that are stored together, by the statements they wait for."""
        waiting: dict[int, list[_Group]] = {}
        for result, numbers in enumerate(self.program.results):
            start = 0
            while start < len(numbers):
                width = 1
                while width < min(_GROUP, self.layout.lanes) and start + 2 * width <= len(numbers):
                    width *= 2
                members = numbers[start : start + width]
                group = _Group(result, start, members, set(members))
                for number in group.missing:
                    waiting.setdefault(number, []).append(group)
                start += width
        return waiting

    def _store(self, group: "_Group") -> None:
        emitter, lanes, width = self.emitter, self.layout.lanes, len(group.numbers)
        values = [self.values[number] for number in group.numbers]
        kind = values[0].kind
        if kind == "i1":
            values, kind = [emitter.cast("zext", value, "i8") for value in values], "i8"
        scalar, size = scalar_type(kind), len(self.program.results[group.result])
        place = self._address(f"%out{group.result}", scalar, size, group.start)
        if size == 1 or lanes == 1:
            if self.layout.stores is Stores.PREFETCHED:
                self._prefetch(place)
            whole = self.layout.stores is Stores.STREAMED and lanes * size_of(kind) == _LINE
            how = f"align {_LINE}, !nontemporal !2" if whole else f"align {size_of(kind)}"
            emitter.perform(f"store {emitter.type(kind)} {values[0].text}, ptr {place.text}, {how}")
            return
        piece = scalar if width == 1 else f"<{width} x {scalar}>"
        for point, part in self._turned(values, kind):
            target = emitter.write("ptr", f"getelementptr {scalar}, ptr {place.text}, i64 {point * size}")
            emitter.perform(f"store {piece} {part}, ptr {target.text}, align {size_of(kind)}")

    def _prefetch(self, place: Value) -> None:
        """Have the line fetched that is written a few blocks later; beyond the end nothing happens."""
        ahead = self.emitter.write("ptr", f"getelementptr i8, ptr {place.text}, i64 {_AHEAD * _LINE}")
        self.emitter.declarations.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self.emitter.perform(f"call void @llvm.prefetch.p0(ptr {ahead.text}, i32 1, i32 3, i32 1)")

    def _turned(self, values: list[Value], kind: str) -> list[tuple[int, str]]:
        """For each point its elements side by side: a transposition by exchanging ever larger halves."""
        emitter, lanes, width = self.emitter, self.layout.lanes, len(values)
        vector = emitter.type(kind)
        step = 1
        while step < width:
            upper = [lane if not lane & step else lane + lanes - step for lane in range(lanes)]
            lower = [lane + step if not lane & step else lane + lanes for lane in range(lanes)]
            for first in range(width):
                if first & step:
                    continue
                pair = values[first], values[first | step]
                for position, mask in ((first, upper), (first | step, lower)):
                    values[position] = self._shuffled(vector, kind, pair, mask)
            step *= 2
        parts = []
        for point in range(lanes):
            block, row = divmod(point, width)
            value = values[row]
            if width == 1:
                parts.append((point, emitter.lane(value, point).text))
                continue
            wanted = list(range(block * width, block * width + width))
            parts.append((point, self._shuffled(vector, kind, (value, value), wanted).text))
        return parts

    def _shuffled(self, vector: str, kind: str, pair: tuple[Value, Value], lanes: Sequence[int]) -> Value:
        mask = ", ".join(f"i32 {lane}" for lane in lanes)
        a, b = (f"{vector} {value.text}" for value in pair)
        return self.emitter.write(kind, f"shufflevector {a}, {b}, <{len(lanes)} x i32> <{mask}>")


@dataclass(eq=False)
class _Group:
    """Neighbouring elements of a result, and which of them are not computed yet."""

    result: int
    start: int
    numbers: Sequence[int]
    missing: set[int]
