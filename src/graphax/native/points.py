"""The code of a kernel: a loop over blocks of points, each with the statements on vectors, one lane per point."""

from collections.abc import Iterable

from .body import Body
from .emit import LONGEST_BLOCK, Emitter
from .inverses import share_inverses
from .memory import LINE, Memory, PointLayout, Stores
from .statements import Statements

# The name of the function of a kernel.
POINTS = "graphax_points"


_LOOP = """
define void @graphax_points(ptr %in, ptr %out, i64 %begin, i64 %end) {{
entry:
{pointers}
{allocations}
{alignment}
  %never = icmp slt i64 %end, %begin
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
next:
  %after = add i64 %start, {lanes}
  %more = icmp slt i64 %after, %end
  br i1 %more, label %block, label %stop
stop:
  ret void
}}
"""
# Computes every point of a block separately, which takes less code than all of them together.
_POINT_BY_POINT = """  br label %slow.point
slow.point:
  %slow.done = phi i64 [0, %slow], [%slow.next, %slow.point]
  %point = add i64 %i, %slow.done
  call void @exact(ptr %in, ptr %out, i64 %point)
  %slow.next = add i64 %slow.done, 1
  %slow.more = icmp slt i64 %slow.next, {lanes}
  br i1 %slow.more, label %slow.point, label %next"""
# Computes one point, correctly for all arguments and for any alignment of the results.
_EXACT = """
define internal void @exact(ptr %in, ptr %out, i64 %i) noinline optnone cold {{
entry:
{pointers}
{allocations}
  %never = icmp slt i64 %i, 0
{body}
  br label %stop
stop:
  ret void
}}
"""
_STREAMED = """  %odd = or i1 %beyond, %misaligned
  br i1 %odd, label %slow, label %quick, !prof !1"""
_METADATA = """
!0 = !{}
!1 = !{!"branch_weights", i32 1, i32 1000000}
!2 = !{i32 1}
"""


def kernel_code(program: Statements, layout: PointLayout) -> str:
    """A module with one function, which computes a range of points."""
    quick = Body(Memory(share_inverses(program), layout, _emitter(layout, exact=False, block="quick"))).emitter
    parts, written = [], [quick]
    if quick.huge is not None or layout.stores is Stores.STREAMED:
        alone = PointLayout(1, layout.batched)
        exact = Body(Memory(program, alone, _emitter(alone, exact=True))).emitter
        written.append(exact)
        parts.append(_EXACT.format(pointers=_pointers(program), allocations=_text(exact.allocations), body=exact.text))
    parts.append(
        _LOOP.format(
            pointers=_pointers(program),
            allocations=_text(quick.allocations),
            alignment=_alignment(program) if layout.stores is Stores.STREAMED else "",
            branch=_STREAMED if layout.stores is Stores.STREAMED else "  br label %quick",
            body=quick.text,
            check="  br label %next" if quick.huge is None else _check(quick),
            exact=_POINT_BY_POINT.format(lanes=layout.lanes) if parts else "  br label %next",
            lanes=layout.lanes,
        )
    )
    declarations = set().union(*(emitter.declarations for emitter in written))
    return "\n".join([*sorted(declarations), *parts, _METADATA])


def _emitter(layout: PointLayout, exact: bool, block: str = "entry") -> Emitter:
    return Emitter(layout.lanes, exact, block, LONGEST_BLOCK)


def _text(lines: Iterable[str]) -> str:
    return "\n".join(f"  {line}" for line in lines)


def _pointers(program: Statements) -> str:
    lines = []
    for name, count in (("in", len(program.inputs)), ("out", len(program.outputs))):
        for n in range(count):
            lines.append(f"  %{name}{n}.slot = getelementptr ptr, ptr %{name}, i64 {n}")
            lines.append(f"  %{name}{n} = load ptr, ptr %{name}{n}.slot, !invariant.load !0")
    return "\n".join(lines)


def _alignment(program: Statements) -> str:
    """Code that checks whether all results and the first point begin at a cache line."""
    lines = ["  %bits0 = shl i64 %begin, 2"]
    for n in range(len(program.outputs)):
        lines.append(f"  %address{n} = ptrtoint ptr %out{n} to i64")
        lines.append(f"  %bits{n + 1} = or i64 %bits{n}, %address{n}")
    lines.append(f"  %odd.bits = and i64 %bits{len(program.outputs)}, {LINE - 1}")
    lines.append("  %misaligned = icmp ne i64 %odd.bits, 0")
    return "\n".join(lines)


def _check(quick: Emitter) -> str:
    """Code that computes the block again, slowly, if an argument was too large for the fast code."""
    assert quick.huge is not None
    written = len(quick.lines)
    some = quick.any(quick.huge)
    return _text([*quick.lines[written:], f"br i1 {some.text}, label %slow, label %next, !prof !1"])
