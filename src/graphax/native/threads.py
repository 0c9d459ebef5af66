"""The code of a kernel for a GPU: a thread for each point, and what 32 of them, a **warp**, write together.

Elements of a result that are neighbours in memory are in one thread, and memory wants neighbours from neighbouring
threads. So the threads of a warp write rows of elements into a room that they share, and copy them out together. The
last warp has fewer points, and there every thread writes for itself; threads beyond the end repeat the last point.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from .body import Body
from .emit import Emitter, Value, scalar_type, size_of
from .memory import PointLayout, Storage, numeric, stored_as, truth
from .points import POINTS
from .results import numbers_kept, runs
from .statements import Statements

WARP = 32
# Bytes of a point that go through the room at once: a whole transaction of memory.
_ROW = 128
# Bytes that a thread loads at once.
_LOADED = 16
# Bytes of addresses that a kernel can be given, and numbers that loops may keep: of all threads that could run at once,
# whether they do or not, memory is set aside for them.
_MOST_GIVEN, _MOST_KEPT = 4_096, 1_024
_GLOBAL, _SHARED = "ptr addrspace(1)", "ptr addrspace(3)"

_KERNEL = """
{declarations}
{head}
  %left = sub i64 %points, %first
  %full = icmp sge i64 %left, 32
  %lane.wide = zext i32 %lane to i64
  %own = add i64 %first, %lane.wide
  %last = sub i64 %points, 1
  %beyond = icmp sgt i64 %own, %last
  %i = select i1 %beyond, i64 %last, i64 %own
  br label %entry
entry:
{body}
  ret void
}}

!0 = !{{}}
"""
# The threads of a block that are beyond the end stop, unless others of their warp are not.
_DEVICE = """
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare void @llvm.nvvm.bar.warp.sync(i32)
@rooms = external addrspace(3) global [0 x i8], align 16

define ptx_kernel void @{name}({operands}, i64 %points) {{
{allocations}
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %threads = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %lane = and i32 %thread, 31
  %warp = lshr i32 %thread, 5
  %offset = mul i32 %warp, {room}
  %room = getelementptr i8, ptr addrspace(3) @rooms, i32 %offset
  %block.wide = zext i32 %block to i64
  %threads.wide = zext i32 %threads to i64
  %before = mul i64 %block.wide, %threads.wide
  %warp.start = and i32 %thread, -32
  %warp.wide = zext i32 %warp.start to i64
  %first = add i64 %before, %warp.wide
  %outside = icmp sge i64 %first, %points
  br i1 %outside, label %nothing, label %something
nothing:
  ret void
something:
"""
_WAIT_ON_DEVICE = "call void @llvm.nvvm.bar.warp.sync(i32 -1)"
# The same thread as a function of this machine, which says who it is and how it waits for the others of its warp.
_HERE = """
declare void @graphax_wait()
define void @{name}({operands}, i64 %points, i64 %first, i32 %lane, ptr addrspace(3) %room) {{
{allocations}
"""
_WAIT_HERE = "call void @graphax_wait()"


@dataclass(frozen=True)
class ThreadCode:
    """A kernel for a GPU in LLVM's language, and how many bytes of shared memory a warp of it needs."""

    text: str
    room: int


def thread_code(program: Statements, batched: tuple[bool, ...], device: bool = True) -> ThreadCode:
    """A module with one function. Without ``device`` this machine can run it, one call for each thread."""
    memory = ThreadMemory(program, batched, _WAIT_ON_DEVICE if device else _WAIT_HERE)
    emitter = Body(memory).emitter
    arrays = [f"%in{n}" for n in range(len(program.inputs))] + [f"%out{n}" for n in range(len(program.outputs))]
    operands = ", ".join(f"{_GLOBAL} noalias {name}" for name in arrays)
    allocations = "\n".join(f"  {line}" for line in emitter.allocations)
    head = (_DEVICE if device else _HERE).format(
        name=POINTS, operands=operands, room=memory.room, allocations=allocations
    )
    declarations = "\n".join(sorted(emitter.declarations))
    text = _KERNEL.format(declarations=declarations, head=head, body=emitter.text)
    return ThreadCode(text, memory.room)


def reason_for_xla(program: Statements) -> str | None:
    """Why a program cannot be a kernel on a GPU, or None."""
    if 8 * (len(program.inputs) + len(program.outputs) + 1) > _MOST_GIVEN:
        return "it has more operands and results than a kernel on a GPU can be given"
    if numbers_kept(program) > _MOST_KEPT:
        return "a thread of a GPU has no room for what its loops keep"
    return None


class ThreadMemory(Storage):
    """The memory of one thread."""

    def __init__(self, program: Statements, batched: tuple[bool, ...], wait: str):
        super().__init__(program, PointLayout(1, batched), Emitter(1, exact=False, device=True))
        self._wait = wait
        # How many bytes the rows of a warp take.
        self.room = 0

    def loaded(self, operand: int, element: str, kind: str) -> Value:
        if not self.layout.batched[operand]:
            return self.everywhere(f"%in{operand}", element, kind, _GLOBAL)
        stored, size = stored_as(kind), prod(self.program.inputs[operand][0])
        scalar, width = scalar_type(stored), _loaded_together(size, size_of(stored))
        base = self._own(f"%in{operand}", scalar, size)
        if width == 1 or not element.isdecimal():
            place = self._moved(base, scalar, element)
            return truth(self._load(stored, scalar, place, size_of(stored)), kind)
        window, number = divmod(int(element), width)
        place = self._moved(base, scalar, str(window * width))
        vector = f"<{width} x {scalar}>"
        whole = self._load(stored, vector, place, width * size_of(stored))
        return truth(self.emitter.write(stored, f"extractelement {vector} {whole.text}, i32 {number}"), kind)

    def _load(self, kind: str, piece: str, place: str, alignment: int) -> Value:
        return self.emitter.write(kind, f"load {piece}, {_GLOBAL} {place}, align {alignment}, !invariant.load !0")

    def together(self, members: Mapping[int, int]) -> Iterable[tuple[int, tuple[int, ...]]]:
        kinds = {self.program.statements[number].kind for number in members.values()}
        widest = max((size_of(stored_as(kind)) for kind in kinds), default=1)
        return runs(members, min(WARP, _ROW // widest))

    def store(self, result: int, element: str, values: Sequence[Value]) -> None:
        values = [numeric(value) for value in values]
        if len(values) == 1:
            self._store_own(result, element, values)
            return
        emitter = self.emitter
        label = emitter.fresh("rows")
        emitter.perform(f"br i1 %full, label %{label}, label %{label}.own")
        for begin, write in ((label, self._store_rows), (f"{label}.own", self._store_own)):
            emitter.begin(begin)
            with emitter.inside():
                write(result, element, values)
                emitter.perform(f"br label %{label}.after")
        emitter.begin(f"{label}.after")

    def _store_own(self, result: int, element: str, values: Sequence[Value]) -> None:
        kind = values[0].kind
        scalar, size = scalar_type(kind), len(self.program.results[result])
        place = self._moved(self._own(f"%out{result}", scalar, size), scalar, element)
        for number, value in enumerate(values):
            target = self._moved(place, scalar, str(number))
            self.emitter.perform(f"store {scalar} {value.text}, {_GLOBAL} {target}, align {size_of(kind)}")

    def _store_rows(self, result: int, element: str, values: Sequence[Value]) -> None:
        """Write a row of the room, then, when all have, copy several rows at a time, an element by each thread."""
        emitter, width, kind = self.emitter, len(values), values[0].kind
        scalar, size, align = scalar_type(kind), len(self.program.results[result]), size_of(kind)
        # Rows of an odd length: threads that write the same place of their rows then write to different banks.
        pitch = width | 1
        self.room = max(self.room, -(-WARP * pitch * align // 16) * 16)
        row = self._in_room(scalar, emitter.write("i32", f"mul i32 %lane, {pitch}").text)
        for number, value in enumerate(values):
            target = self._in_room(scalar, str(number), row)
            emitter.perform(f"store {scalar} {value.text}, {_SHARED} {target}, align {align}")
        emitter.perform(self._wait)
        start = self._moved(self._row_of(f"%out{result}", scalar, size, "%first"), scalar, element)
        if pitch == width == size:
            # Nothing is between the rows, in the room and outside.
            for step in range(width):
                self._copy(
                    kind,
                    self._in_room(scalar, "%lane"),
                    self._moved(start, scalar, "%lane.wide"),
                    step * WARP,
                    step * WARP,
                )
        else:
            self._copy_rows(kind, start, width, size, pitch)
        emitter.perform(self._wait)

    def _copy_rows(self, kind: str, start: str, width: int, size: int, pitch: int) -> None:
        """As many rows at a time as a warp has threads for."""
        emitter, scalar, rows = self.emitter, scalar_type(kind), WARP // width
        row = emitter.write("i32", f"udiv i32 %lane, {width}").text if rows > 1 else "0"
        column = emitter.write("i32", f"urem i32 %lane, {width}").text if rows > 1 else "%lane"
        inside = emitter.write("i32", f"mul i32 {row}, {pitch}").text
        source = self._in_room(scalar, emitter.write("i32", f"add i32 {inside}, {column}").text)
        outside = emitter.write("i32", f"mul i32 {row}, {size}").text
        moved = emitter.write("i32", f"add i32 {outside}, {column}").text
        target = self._moved(start, scalar, emitter.write("i64", f"zext i32 {moved} to i64").text)
        label = emitter.fresh("copy")
        busy = rows * width
        for step in range(-(-WARP // rows)):
            # In the last step there may be fewer rows left.
            left = min(rows, WARP - step * rows) * width
            if step == 0 or left < busy:
                self._only_first(min(left, busy), f"{label}.{step}", f"{label}.done")
            self._copy(kind, source, target, step * rows * pitch, step * rows * size)
        emitter.perform(f"br label %{label}.done")
        emitter.begin(f"{label}.done")

    def _only_first(self, lanes: int, label: str, otherwise: str) -> None:
        """Go on with so many threads of the warp."""
        emitter = self.emitter
        busy = emitter.write("i1", f"icmp ult i32 %lane, {lanes}").text
        emitter.perform(f"br i1 {busy}, label %{label}, label %{otherwise}")
        emitter.begin(label)

    def _copy(self, kind: str, source: str, target: str, inside: int, outside: int) -> None:
        emitter, scalar, align = self.emitter, scalar_type(kind), size_of(kind)
        name = emitter.fresh("%copied")
        emitter.perform(
            f"{name} = load {scalar}, {_SHARED} {self._in_room(scalar, str(inside), source)}, align {align}"
        )
        emitter.perform(f"store {scalar} {name}, {_GLOBAL} {self._moved(target, scalar, str(outside))}, align {align}")

    def _in_room(self, scalar: str, element: str, base: str = "%room") -> str:
        return self.emitter.write("ptr", f"getelementptr {scalar}, {_SHARED} {base}, i32 {element}").text

    def _own(self, base: str, scalar: str, size: int) -> str:
        return self._row_of(base, scalar, size, "%i")

    def _row_of(self, base: str, scalar: str, size: int, point: str) -> str:
        place = point if size == 1 else self.emitter.write("i64", f"mul i64 {point}, {size}").text
        return self._moved(base, scalar, place)

    def _moved(self, base: str, scalar: str, element: str) -> str:
        if element == "0":
            return base
        return self.emitter.write("ptr", f"getelementptr {scalar}, {_GLOBAL} {base}, i64 {element}").text


def _loaded_together(size: int, bytes_each: int) -> int:
    """How many neighbouring elements of a point begin at addresses that a thread can load at once."""
    width = _LOADED // bytes_each
    while size % width:
        width //= 2
    return width
