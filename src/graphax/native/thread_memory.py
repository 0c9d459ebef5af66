"""The memory of a GPU thread: loads of its own elements, and stores through memory that the threads of a warp share.

Neighbouring elements of a result are in one thread, but memory is fastest if neighbouring threads write neighbours. So
the threads of a warp write rows of elements into a shared **room**, as soon as they have them, and copy all rows
together. The last warp may have fewer points, and copies as many rows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

from .device import ThreadEmitter
from .emit import Value, scalar_type, size_of
from .memory import PointLayout, Storage, numeric, stored_as, truth
from .results import Group, runs
from .sharing import POINT, SharedLoop
from .statements import Statements

WARP = 32
GLOBAL, _SHARED = "ptr addrspace(1)", "ptr addrspace(3)"
# The maximum bytes of the room of a warp, such that seven warps fit into a processor: about as many as have registers
# for long programs.
ROOM = 30_000
# The number of elements in the smallest memory transactions.
_SECTOR = 8
# The bytes that a thread loads at once, and the number of elements that it copies at once.
LOADED, _AT_ONCE = 16, 8


class ThreadMemory(Storage):
    """The memory of one thread."""

    # A thread has 255 registers, and needs some for addresses.
    registers = 220

    def __init__(self, program: Statements, layout: PointLayout, wait: str, shared: SharedLoop | None = None):
        super().__init__(program, layout, ThreadEmitter(layout.lanes, exact=False))
        self._wait, self.shared = wait, shared
        # The position of the 1, in tables that have a single 1 among zeros.
        self._ones: dict[str, int] = {}
        # The bytes that the rows of a warp take, the place of each group, and whether each group has a place of its
        # own.
        self.room = 0
        self._places: dict[Group, int] = {}
        self._apart = True

    def loaded(self, operand: int, element: str, kind: str) -> Value:
        if not self.layout.batched[operand]:
            return self.everywhere(f"%in{operand}", element, kind, GLOBAL)
        stored, size = stored_as(kind), prod(self.program.inputs[operand][0])
        scalar, width = scalar_type(stored), _loaded_together(size, size_of(stored))
        base = self._own(f"%in{operand}", scalar, size)
        if self.layout.lanes > 1:
            vector = self.emitter.type(stored)
            return truth(self._load(stored, vector, base, self.layout.lanes * size_of(stored)), kind)
        if width == 1 or not element.isdecimal():
            place = self._moved(base, scalar, element)
            return truth(self._load(stored, scalar, place, size_of(stored)), kind)
        window, number = divmod(int(element), width)
        place = self._moved(base, scalar, str(window * width))
        vector = f"<{width} x {scalar}>"
        whole = self._load(stored, vector, place, width * size_of(stored))
        return truth(self.emitter.write(stored, f"extractelement {vector} {whole.text}, i32 {number}"), kind)

    def table(self, values: Sequence[Any], kind: str) -> str:
        name, places = super().table(values, kind), np.flatnonzero(np.asarray(values))
        if len(places) == 1 and values[places[0]] == 1 and not np.signbit(np.asarray(values, float)).any():
            self._ones[name] = int(places[0])
        return name

    def tabulated(self, name: str, element: str, kind: str) -> Value:
        if name not in self._ones:
            return super().tabulated(name, element, kind)
        # Threads read different elements, and comparing is faster than waiting for memory.
        here = self.emitter.write("i1", f"icmp eq i64 {element}, {self._ones[name]}")
        return self.emitter.select(here, self.emitter.value(kind, 1), self.emitter.value(kind, 0))

    def _load(self, kind: str, piece: str, place: str, alignment: int) -> Value:
        return self.emitter.write(kind, f"load {piece}, {GLOBAL} {place}, align {alignment}, !invariant.load !0")

    def together(self, members: Mapping[int, int]) -> Iterable[tuple[int, tuple[int, ...]]]:
        kinds = {self.program.statements[number].kind for number in members.values()}
        row = WARP * max((size_of(stored_as(kind)) for kind in kinds), default=1)
        # Pieces of equal size, whose ends are ends of transactions if those of all elements are.
        widest = ROOM // row - 1
        pieces = -(-len(members) // widest)
        return runs(members, -(-len(members) // (pieces * _SECTOR)) * _SECTOR if pieces > 1 else widest)

    def arrange(self, groups: Sequence[Group]) -> None:
        """Give every group a place in the room, or the same place to all if there is not enough room."""
        sizes = {group: self._row(group) * WARP for group in groups if len(group.numbers) > 1}
        self._apart = sum(sizes.values()) <= ROOM
        for group, size in sizes.items():
            self._places[group] = self.room if self._apart else 0
            self.room = self.room + size if self._apart else max(self.room, size)

    def _row(self, group: Group) -> int:
        """The bytes of a row, such that threads that write the same place of their rows write to different banks."""
        return (len(group.numbers) | 1) * size_of(self._kind(group))

    def _kind(self, group: Group) -> str:
        return stored_as(self.program.statements[group.numbers[0]].kind)

    def arrived(self, group: Group, number: int, value: Value) -> None:
        if self._apart and group in self._places:
            self._put(group, [place for place, n in enumerate(group.numbers) if n == number], value)

    def _put(self, group: Group, places: Iterable[int], value: Value) -> None:
        """Write an element to the thread's own row."""
        value = numeric(value)
        scalar, size = scalar_type(value.kind), size_of(value.kind)
        for place in places:
            target = self._in_row(group, str(place * size))
            self.emitter.perform(f"store {scalar} {value.text}, {_SHARED} {target}, align {size}")

    def _in_row(self, group: Group, offset: str) -> str:
        start = self.emitter.write("i32", f"mul i32 %lane, {self._row(group)}").text
        row = self._in_room(self._in_room("%room", str(self._places[group])), start)
        return self._in_room(row, offset)

    def store(self, group: Group, element: str, values: Sequence[Value]) -> None:
        emitter, width = self.emitter, len(values)
        kind = self._kind(group)
        scalar, size = scalar_type(kind), len(self.program.results[group.result])
        own = self._moved(self._own(f"%out{group.result}", scalar, size), scalar, element)
        if width == 1:
            align = self.layout.lanes * size_of(kind)
            emitter.perform(f"store {emitter.type(kind)} {numeric(values[0]).text}, {GLOBAL} {own}, align {align}")
            return
        if not self._apart:
            for place, value in enumerate(values):
                self._put(group, [place], value)
        if self.shared is None:
            self._copy_together(group, size, element)
        elif self.shared.has_rows(self.program, group):
            self._copy_together(group, group.stride, str(group.start))
        else:
            self._copy_own(group, own, width)
        if group.stride or not self._apart:
            # Other elements will be written to the same place.
            emitter.perform(self._wait)

    def _copy_together(self, group: Group, size: int, element: str) -> None:
        """Copy the rows of all threads of a warp that have a point. The rows are ``size`` elements apart."""
        emitter, width, scalar = self.emitter, len(group.numbers), scalar_type(self._kind(group))
        emitter.perform(self._wait)
        start = self._moved(self._row_of(f"%out{group.result}", scalar, size, "%first"), scalar, element)
        room = self._in_room("%room", str(self._places[group]))
        label = emitter.fresh("rows")
        emitter.perform(f"br i1 %full, label %{label}, label %{label}.some")
        emitter.begin(label)
        with emitter.inside():
            # Each of `width` steps copies one element per thread. Several at once do not wait for each other.
            whole, rest = divmod(width, _AT_ONCE)
            if whole:
                with self._repeated(whole) as step:
                    self._copy_elements(
                        group, emitter.write("i32", f"mul i32 {step}, {_AT_ONCE}").text, _AT_ONCE, room, start, size
                    )
            self._copy_elements(group, str(whole * _AT_ONCE), rest, room, start, size)
            emitter.perform(f"br label %{label}.after")
        emitter.begin(f"{label}.some")
        with emitter.inside():
            with self._taken(emitter.write("i32", f"mul i32 %valid, {width}").text) as at:
                self._copy_element(group, at, room, start, size)
            emitter.perform(f"br label %{label}.after")
        emitter.begin(f"{label}.after")

    def _copy_elements(self, group: Group, first: str, count: int, room: str, start: str, size: int) -> None:
        """Emit code for ``count`` steps that copy one element per thread each, from the step ``first`` on."""
        emitter = self.emitter
        begin = emitter.write("i32", f"mul i32 {first}, {WARP}").text
        begin = emitter.write("i32", f"add i32 {begin}, %lane").text
        for number in range(count):
            at = emitter.write("i32", f"add i32 {begin}, {number * WARP}").text
            self._copy_element(group, at, room, start, size)

    def _copy_element(self, group: Group, at: str, room: str, start: str, size: int) -> None:
        """Emit code that copies one element, numbered along the rows of the warp."""
        emitter, kind, width = self.emitter, self._kind(group), len(group.numbers)
        scalar, bytes_each, pitch = scalar_type(kind), size_of(kind), width | 1
        row = emitter.write("i32", f"udiv i32 {at}, {width}").text
        inside = at if pitch == width else emitter.write("i32", f"add i32 {at}, {row}").text
        offset = emitter.write("i32", f"mul i32 {inside}, {bytes_each}").text
        outside = at
        if size != width:
            gap = emitter.write("i32", f"mul i32 {row}, {size - width}").text
            outside = emitter.write("i32", f"add i32 {at}, {gap}").text
        place = emitter.write("i64", f"zext i32 {outside} to i64").text
        self._copy(group, self._in_room(room, offset), self._moved(start, scalar, place))

    def _copy_own(self, group: Group, own: str, width: int) -> None:
        """Emit code in which every thread copies its own row."""
        scalar, bytes_each = scalar_type(self._kind(group)), size_of(self._kind(group))
        with self._repeated(width) as number:
            offset = self.emitter.write("i32", f"mul i32 {number}, {bytes_each}").text
            place = self.emitter.write("i64", f"zext i32 {number} to i64").text
            self._copy(group, self._in_row(group, offset), self._moved(own, scalar, place))

    @contextmanager
    def _repeated(self, times: int) -> Iterator[str]:
        """A loop of ``times`` steps. Yields the number of the step."""
        emitter = self.emitter
        label, before = emitter.fresh("copy"), emitter.block
        emitter.perform(f"br label %{label}")
        emitter.begin(label)
        emitter.perform(f"%{label}.n = phi i32 [0, %{before}], [%{label}.next, %{label}]")
        with emitter.inside():
            yield f"%{label}.n"
        emitter.perform(f"%{label}.next = add i32 %{label}.n, 1")
        emitter.perform(f"%{label}.more = icmp ult i32 %{label}.next, {times}")
        emitter.perform(f"br i1 %{label}.more, label %{label}, label %{label}.done, !llvm.loop !1")
        emitter.begin(f"{label}.done")

    @contextmanager
    def _taken(self, count: str) -> Iterator[str]:
        """A loop in which the threads of a warp take ``count`` elements in turn. Yields the number of the element."""
        emitter = self.emitter
        label, before = emitter.fresh("taken"), emitter.block
        emitter.perform(f"br label %{label}")
        emitter.begin(label)
        emitter.perform(f"%{label}.n = phi i32 [%lane, %{before}], [%{label}.next, %{label}.one]")
        emitter.perform(f"%{label}.more = icmp slt i32 %{label}.n, {count}")
        emitter.perform(f"br i1 %{label}.more, label %{label}.one, label %{label}.done")
        emitter.begin(f"{label}.one")
        with emitter.inside():
            yield f"%{label}.n"
        emitter.perform(f"%{label}.next = add i32 %{label}.n, {WARP}")
        emitter.perform(f"br label %{label}, !llvm.loop !1")
        emitter.begin(f"{label}.done")

    def _copy(self, group: Group, source: str, target: str) -> None:
        scalar, align = scalar_type(self._kind(group)), size_of(self._kind(group))
        name = self.emitter.fresh("%copied")
        self.emitter.perform(f"{name} = load {scalar}, {_SHARED} {source}, align {align}")
        self.emitter.perform(f"store {scalar} {name}, {GLOBAL} {target}, align {align}")

    def _in_room(self, base: str, offset: str) -> str:
        """An address ``offset`` bytes further in the room."""
        if offset == "0":
            return base
        return self.emitter.write("ptr", f"getelementptr i8, {_SHARED} {base}, i32 {offset}").text

    def _own(self, base: str, scalar: str, size: int) -> str:
        return self._row_of(base, scalar, size, "%i" if self.shared is None else POINT)

    def _row_of(self, base: str, scalar: str, size: int, point: str) -> str:
        place = point if size == 1 else self.emitter.write("i64", f"mul i64 {point}, {size}").text
        return self._moved(base, scalar, place)

    def _moved(self, base: str, scalar: str, element: str) -> str:
        if element == "0":
            return base
        return self.emitter.write("ptr", f"getelementptr {scalar}, {GLOBAL} {base}, i64 {element}").text


def _loaded_together(size: int, bytes_each: int) -> int:
    """The number of neighbouring elements of a point that a thread can load at once, given their alignment."""
    width = LOADED // bytes_each
    while size % width:
        width //= 2
    return width
