"""The code of a kernel for a GPU. Usually each point has a thread.

A thread has a few points if all arrays have one number per point. A point has several threads if they share the steps
of a loop, or if each computes a portion of the results. Threads come in warps of 32, which store their results
together. In the last warp, threads beyond the end repeat the last point.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from .body import Body
from .device import INVERSE_ROOT, RECIPROCAL
from .divisions import Division
from .emit import TABLE
from .inverses import relax_quotients
from .memory import PointLayout
from .points import POINTS
from .portions import Portions
from .results import numbers_kept
from .sharing import POINT, STEP, SharedLoop
from .statements import Statements
from .thread_memory import GLOBAL, LOADED, WARP, ThreadMemory

# The maximum bytes of addresses that a kernel can take, and numbers that loops may keep. Memory for these numbers is
# reserved for all threads that could run at once, whether they do or not.
_MOST_GIVEN, _MOST_KEPT = 4_096, 1_024
# The number of points per thread, up to this many operations: more bytes at a time, as long as registers suffice.
_POINTS_OF_A_THREAD = ((160, 4), (600, 2))

# On a GPU: identifies the thread. Threads beyond the end stop, unless others of their warp are not beyond it.
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
  %block.any = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %block = udiv i32 %block.any, {portions}
  %portion = urem i32 %block.any, {portions}
  %lane = and i32 %thread, 31
  %warp = lshr i32 %thread, 5
  %offset = mul i32 %warp, {room}
  %room = getelementptr i8, ptr addrspace(3) @rooms, i32 %offset
  %block.wide = zext i32 %block to i64
  %threads.wide = zext i32 %threads to i64
  %before = mul i64 %block.wide, %threads.wide
  %warp.start = and i32 %thread, -32
  %warp.wide = zext i32 %warp.start to i64
  %first.thread = add i64 %before, %warp.wide
  %first = mul i64 %first.thread, {lanes}
  %outside = icmp sge i64 %first, %points
  br i1 %outside, label %nothing, label %something
nothing:
  ret void
something:
"""
_WAIT_ON_DEVICE = "call void @llvm.nvvm.bar.warp.sync(i32 -1)"
# On the host: the same thread as a function that is told its identity and how to wait for the others of its warp.
_HERE = """
declare void @graphax_wait()
declare float @llvm.sqrt.f32(float)
define internal float @reciprocal(float %x) {{
  %inverse = fdiv float 1.0, %x
  ret float %inverse
}}
define internal float @inverse_root(float %x) {{
  %root = call float @llvm.sqrt.f32(float %x)
  %inverse = fdiv float 1.0, %root
  ret float %inverse
}}
define void @{name}({operands}, i64 %points, i64 %first, i32 %lane, ptr addrspace(3) %room, i32 %portion) {{
{allocations}
"""
_WAIT_HERE = "call void @graphax_wait()"

_START = """  %left = sub i64 %points, %first
  %full = icmp sge i64 %left, {together}
  %valid = trunc i64 %left to i32
  %lane.wide = zext i32 %lane to i64
"""
_ONE_POINT = """
  %own = add i64 %first, %lane.wide
  %last = sub i64 %points, 1
  %beyond = icmp sgt i64 %own, %last
  %i = select i1 %beyond, i64 %last, i64 %own
  br label %entry
"""
# For threads that share a point; `%points` counts all of these threads.
_WHICH_STEP = """
  {point} = udiv i64 %i, {threads}
  {step} = urem i64 %i, {threads}
"""
# The points that are left at the end are computed one at a time.
_SEVERAL_POINTS = """
  br i1 %full, label %all, label %some
some:
  %start = add i64 %first, %lane.wide
  br label %next
next:
  %point = phi i64 [%start, %some], [%point.after, %one]
  %inside = icmp slt i64 %point, %points
  br i1 %inside, label %one, label %finished
one:
  call void @rest({operands}, i64 %point)
  %point.after = add i64 %point, 32
  br label %next
finished:
  ret void
all:
  %moved = mul i64 %lane.wide, {lanes}
  %i = add i64 %first, %moved
  br label %entry
"""
# Each portion of the results has a function of its own, and all threads of a warp call the same one.
_PORTION = """
define internal void @portion{number}({operands}, {state}) noinline {{
{allocations}
  br label %entry
{body}
"""
_STATE = "i64 %i, i64 %first, i32 %lane, i32 %valid, i1 %full, ptr addrspace(3) %room"
_REST = """
define internal void @rest({operands}, i64 %i) noinline {{
{allocations}
  br label %entry
{body}
"""
_BODY = """entry:
{text}
  ret void
}}
"""
# Loops that copy rows are not unrolled: that would take longer to compile and run no faster.
_METADATA = """
!0 = !{}
!1 = distinct !{!1, !2}
!2 = !{!"llvm.loop.unroll.disable"}
"""


@dataclass(frozen=True)
class ThreadCode:
    """A kernel for a GPU in LLVM's language.

    Attributes:
        room: the bytes of shared memory per warp.
        points: the number of points per thread.
        threads: the number of threads per point that take steps of a loop.
        portions: the number of warps that share the points of a warp.
    """

    text: str
    room: int
    points: int
    threads: int = 1
    portions: int = 1


def reason_for_xla(program: Statements) -> str | None:
    """The reason why a program cannot be a kernel on a GPU, or None."""
    if 8 * (len(program.inputs) + len(program.outputs) + 1) > _MOST_GIVEN:
        return "it has more operands and results than a kernel on a GPU can be given"
    if numbers_kept(program) > _MOST_KEPT:
        return "a thread of a GPU has no room for what its loops keep"
    return None


def thread_code(
    program: Statements, batched: tuple[bool, ...], division: Division = None, device: bool = True
) -> ThreadCode:
    """A module with one kernel, in which threads divide the work of a point, if a division is given.

    Without ``device`` the host can run it, with one call per thread.
    """
    arrays = [f"%in{n}" for n in range(len(program.inputs))] + [f"%out{n}" for n in range(len(program.outputs))]
    wait = _WAIT_ON_DEVICE if device else _WAIT_HERE
    made = _CodeOfPoint.of(program, batched, division, wait, arrays)
    head, threads = _DEVICE if device else _HERE, division.length if isinstance(division, SharedLoop) else 1
    parts = len(division.parts) if isinstance(division, Portions) else 1
    start = _SEVERAL_POINTS.format(operands=_given(arrays, ""), lanes=made.lanes) if made.lanes > 1 else _ONE_POINT
    text = "".join([
        "\n".join(sorted(made.declarations)),
        *made.functions,
        head.format(
            name=POINTS, operands=_given(arrays, "noalias "), room=made.room, lanes=made.lanes, portions=parts,
            allocations=_lines(made.allocations),
        ),
        _START.format(together=WARP * made.lanes),
        start,
        _BODY.format(text=made.text),
        _METADATA,
    ])  # fmt: skip
    for name, instead in () if device else ((RECIPROCAL, "reciprocal"), (INVERSE_ROOT, "inverse_root")):
        text = text.replace(f"declare float @{name}(float)", "").replace(f"@{name}", f"@{instead}")
    return ThreadCode(text, made.room, made.lanes, threads, parts)


@dataclass(frozen=True, eq=False)
class _CodeOfPoint:
    """The code of a thread once it knows its points, and the functions that it calls.

    Attributes:
        room: the bytes of shared memory per warp.
        lanes: the number of points per thread.
    """

    text: str
    allocations: list[str]
    declarations: set[str]
    functions: list[str]
    room: int
    lanes: int = 1

    @staticmethod
    def of(
        program: Statements, batched: tuple[bool, ...], division: Division, wait: str, arrays: Sequence[str]
    ) -> "_CodeOfPoint":
        one = PointLayout(1, batched)
        if isinstance(division, Portions):
            return _CodeOfPoint._of_portions(division, one, wait, arrays)
        lanes, program = _points_of_a_thread(program, batched), relax_quotients(program)
        if division is not None:
            memory = ThreadMemory(program, one, wait, division)
            body = Body(memory).emitter
            which = _WHICH_STEP.format(point=POINT, step=STEP, threads=division.length)
            return _CodeOfPoint(which + body.text, body.allocations, set(body.declarations), [], memory.room)
        memory = ThreadMemory(program, PointLayout(lanes, batched), wait)
        body = Body(memory).emitter
        declarations, functions = set(body.declarations), []
        if lanes > 1:
            rest = Body(ThreadMemory(program, one, wait)).emitter
            declarations |= rest.declarations
            text = _BODY.format(text=rest.text)
            allocations = _lines(rest.allocations)
            functions.append(_REST.format(operands=_given(arrays, "noalias "), allocations=allocations, body=text))
        return _CodeOfPoint(body.text, body.allocations, declarations, functions, memory.room, lanes)

    @staticmethod
    def _of_portions(portions: Portions, layout: PointLayout, wait: str, arrays: Sequence[str]) -> "_CodeOfPoint":
        declarations: set[str] = set()
        functions, calls, room = [], [], 0
        for number, part in enumerate(portions.parts):
            memory = ThreadMemory(relax_quotients(part), layout, wait)
            body = Body(memory).emitter
            room = max(room, memory.room)

            def own(text: str, number: int = number) -> str:
                # Every portion counts its tables from the first.
                return text.replace(TABLE, f"@portion{number}.table")

            declarations |= set(map(own, body.declarations))
            functions.append(
                _PORTION.format(
                    number=number, operands=_given(arrays, "noalias "), state=_STATE,
                    allocations=_lines(body.allocations), body=_BODY.format(text=own(body.text)),
                )
            )  # fmt: skip
            calls.append(
                f"portion{number}:\n  call void @portion{number}({_given(arrays, '')}, {_STATE})\n  br label %computed"
            )
        cases = " ".join(f"i32 {number}, label %portion{number}" for number in range(len(calls)))
        text = "\n".join([f"  switch i32 %portion, label %computed [{cases}]", *calls, "computed:"])
        return _CodeOfPoint(text, [], declarations, functions, room)


def _given(arrays: Sequence[str], how: str) -> str:
    """The arrays as parameters or arguments of a function."""
    return ", ".join(f"{GLOBAL} {how}{name}" for name in arrays)


def _lines(lines: list[str]) -> str:
    return "\n".join(f"  {line}" for line in lines)


def _points_of_a_thread(program: Statements, batched: tuple[bool, ...]) -> int:
    """The number of points per thread.

    It is more than one if all arrays have one number per point and there is little to compute.
    """
    moved = [array for array, marked in zip(program.inputs, batched, strict=True) if marked] + list(program.outputs)
    stored = any(s.operation in ("repeat", "kept", "table") for s in program.statements)
    if stored or not moved or any(prod(shape) != 1 for shape, _ in moved):
        return 1
    widest = max(dtype.itemsize for _, dtype in moved)
    most = next((points for operations, points in _POINTS_OF_A_THREAD if program.operations <= operations), 1)
    return min(most, LOADED // widest)
