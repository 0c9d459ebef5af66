"""Operands, results and values that loops keep, in memory: loads and stores of vectors, with one lane per point."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import Any

import numpy as np

from .emit import Emitter, Value, scalar_type, size_of
from .results import Group, powers_of_two
from .schedule import REGISTERS
from .sharing import SharedLoop
from .statements import Statements

# The bytes of a cache line.
LINE = 64
# The memory of a result is fetched this many lines ahead.
_AHEAD = 4
# Operands with at least this many bytes per block are fetched this far ahead.
_LONG, _FAR = 1 << 11, 1 << 12
# A result with at least this many elements starts as zeros, if most of them stay zero.
_MANY_ZEROS = 32
# The number of neighbouring elements of an operand that are loaded at once, and of a result that are stored at once.
_TURNED, _STORED = 4, 8


class Stores(Enum):
    """Ways to write results, for increasing amounts.

    Results that do not fit the cache of a core are fetched before they are written, which the processor does by itself
    only for a few arrays. Results that fit no cache bypass the caches, which pays off for many arrays that nothing
    reads soon.
    """

    CACHED = "cached"
    PREFETCHED = "prefetched"
    STREAMED = "streamed"


@dataclass(frozen=True)
class PointLayout:
    """The layout of points in memory.

    Attributes:
        lanes: the number of points that are computed at once.
        batched: which operands have a value per point.
        stores: how results go to memory.
    """

    lanes: int
    batched: tuple[bool, ...]
    stores: Stores = Stores.CACHED

    @property
    def has_batch(self) -> bool:
        return any(self.batched)


class Storage(ABC):
    """Operands, results, tables and values that loops keep.

    An element is given by the text of a number, which is known or computed.
    """

    # The maximum number of values of a point in registers; None for code that need not be fast.
    registers: int | None = REGISTERS
    # The loop whose steps are taken by separate threads, on a GPU.
    shared: SharedLoop | None = None

    def __init__(self, program: Statements, layout: PointLayout, emitter: Emitter):
        self.program, self.layout, self.emitter = program, layout, emitter

    @abstractmethod
    def loaded(self, operand: int, element: str, kind: str) -> Value:
        """An element of an operand."""

    @abstractmethod
    def together(self, members: Mapping[int, int]) -> Iterable[tuple[int, tuple[int, ...]]]:
        """The elements of a result that are stored at once, out of ``members``, which maps positions to statements."""

    @abstractmethod
    def arrange(self, groups: Sequence[Group]) -> None:
        """Receive the groups of elements that will be stored together."""

    def is_written(self, group: Group) -> bool:
        """Whether a group need not be stored, because `arrange` has already written it."""
        return False

    @abstractmethod
    def arrived(self, group: Group, number: int, value: Value) -> None:
        """Receive the value of a statement in a group. Other values may still be missing."""

    @abstractmethod
    def store(self, group: Group, element: str, values: Sequence[Value]) -> None:
        """Write neighbouring elements of a result, all of which are available now, from ``element`` on."""

    def everywhere(self, base: str, element: str, kind: str, pointer: str = "ptr") -> Value:
        """One number in memory, in all lanes."""
        stored = stored_as(kind)
        scalar = scalar_type(stored)
        place = self.emitter.write("ptr", f"getelementptr {scalar}, {pointer} {base}, i64 {element}")
        one = self.emitter.write(stored, f"load {scalar}, {pointer} {place.text}, !invariant.load !0")
        return truth(self.emitter.splat(one), kind)

    def table(self, values: Sequence[Any], kind: str) -> str:
        """The name of a table of constants."""
        stored = stored_as(kind)
        scalar = scalar_type(stored)
        texts = ", ".join(f"{scalar} {self.emitter.literal(stored, value)}" for value in values)
        return self.emitter.constant(f"[{len(values)} x {scalar}] [{texts}]")

    def tabulated(self, name: str, element: str, kind: str) -> Value:
        return self.everywhere(name, element, kind)

    def reserved(self, count: int, kind: str) -> str:
        """The name of memory for ``count`` numbers per point."""
        return self.emitter.allocate(f"[{count} x {self.emitter.type(stored_as(kind))}]")

    def kept(self, room: str, element: str, value: Value) -> None:
        """Write a number to memory where it can be read again."""
        emitter, stored = self.emitter, numeric(value)
        place = emitter.write("ptr", f"getelementptr {emitter.type(stored.kind)}, ptr {room}, i64 {element}")
        emitter.perform(
            f"store {emitter.type(stored.kind)} {stored.text}, ptr {place.text}, align {size_of(stored.kind)}"
        )

    def read(self, room: str, element: str, kind: str) -> Value:
        emitter, stored = self.emitter, stored_as(kind)
        vector = emitter.type(stored)
        place = emitter.write("ptr", f"getelementptr {vector}, ptr {room}, i64 {element}")
        return truth(emitter.write(stored, f"load {vector}, ptr {place.text}, align {size_of(stored)}"), kind)


class Memory(Storage):
    """The memory of one block of points."""

    def __init__(self, program: Statements, layout: PointLayout, emitter: Emitter):
        super().__init__(program, layout, emitter)
        if emitter.exact:
            # Hardly any point needs this code.
            self.registers = None
        # Neighbouring elements of operands that are already loaded, by operand and first element.
        self._windows: dict[tuple[int, int], list[Value]] = {}
        # Groups of zeros that are already written.
        self._written: set[Group] = set()
        # The lines of operands that are fetched ahead.
        self._fetched: set[tuple[int, int]] = set()

    def loaded(self, operand: int, element: str, kind: str) -> Value:
        emitter, lanes = self.emitter, self.layout.lanes
        stored = stored_as(kind)
        scalar, size = scalar_type(stored), prod(self.program.inputs[operand][0])
        base = f"%in{operand}"
        if not self.layout.batched[operand]:
            return self.everywhere(base, element, kind)
        place = self._address(base, scalar, size, element)
        vector = emitter.type(stored)
        if size == 1 or lanes == 1:
            load = f"load {vector}, ptr {place.text}, align {size_of(stored)}, !invariant.load !0"
            return truth(emitter.write(stored, load), kind)
        if element.isdecimal():
            return truth(self._neighbours(operand, int(element), stored), kind)
        steps = ", ".join(f"i64 {lane * size}" for lane in range(lanes))
        places = emitter.write("ptr", f"getelementptr {scalar}, ptr {place.text}, <{lanes} x i64> <{steps}>")
        symbol = f"@llvm.masked.gather.v{lanes}{stored}.v{lanes}p0"
        signature = f"<{lanes} x ptr>, i32, <{lanes} x i1>, {vector}"
        emitter.declarations.add(f"declare {vector} {symbol}({signature})")
        all_lanes = f"<{lanes} x i1> splat (i1 true), {vector} poison"
        gather = f"call {vector} {symbol}(<{lanes} x ptr> {places.text}, i32 {size_of(stored)}, {all_lanes})"
        return truth(emitter.write(stored, gather), kind)

    def _neighbours(self, operand: int, element: int, kind: str) -> Value:
        """An element of an operand, loaded with its neighbours and transposed. A gather takes several times as long."""
        size, lanes = prod(self.program.inputs[operand][0]), self.layout.lanes
        width = min(_TURNED, lanes, 1 << (size.bit_length() - 1))
        start = min(element // width * width, size - width)
        if (operand, start) not in self._windows:
            rows = [self._row(operand, start, range(row, lanes, width), width, kind) for row in range(width)]
            self._windows[operand, start] = self._exchanged(rows, kind)
        return self._windows[operand, start][element - start]

    def _row(self, operand: int, start: int, points: range, width: int, kind: str) -> Value:
        """Neighbouring elements of some points, one point after the other."""
        emitter, scalar, size = self.emitter, scalar_type(kind), prod(self.program.inputs[operand][0])
        piece, parts = f"<{width} x {scalar}>", []
        for point in points:
            place = self._address(f"%in{operand}", scalar, size, str(start + point * size))
            load = f"load {piece}, ptr {place.text}, align {size_of(kind)}, !invariant.load !0"
            parts.append(emitter.write(kind, load))
            self._fetch_later(operand, place, (start + point * size) * size_of(kind))
        while len(parts) > 1:
            piece = f"<{width} x {scalar}>"
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [self._shuffled(piece, kind, pair, range(2 * width)) for pair in pairs]
            width *= 2
        return parts[0]

    def _fetch_later(self, operand: int, place: Value, offset: int) -> None:
        """Prefetch the same line of a later block, since little is loaded while a block is computed."""
        block = self.layout.lanes * self._bytes(operand)
        if block >= _LONG and (operand, offset // LINE) not in self._fetched:
            self._fetched.add((operand, offset // LINE))
            self._prefetch(place, block * max(1, _FAR // block), writing=False)

    def _bytes(self, operand: int) -> int:
        shape, dtype = self.program.inputs[operand]
        return int(prod(shape) * dtype.itemsize)

    def together(self, members: Mapping[int, int]) -> Iterable[tuple[int, tuple[int, ...]]]:
        return powers_of_two(members, min(_STORED, self.layout.lanes))

    def arrange(self, groups: Sequence[Group]) -> None:
        """Plan the stores. All elements of a group are stored when the last one is available.

        Results that are mostly zeros start as zeros, so that only the other elements need code.
        """
        for result, numbers in enumerate(self.program.results):
            zeros = [group for group in groups if group.result == result and self._is_zero(group)]
            if 2 * sum(len(group.numbers) for group in zeros) >= len(numbers) >= _MANY_ZEROS:
                self._written.update(zeros)
                self._clear(result)

    def is_written(self, group: Group) -> bool:
        return group in self._written

    def _is_zero(self, group: Group) -> bool:
        constants = [self.program.statements[number] for number in group.numbers]
        return all(s.operation == "constant" and not any(np.asarray(s.attribute).tobytes()) for s in constants)

    def _clear(self, result: int) -> None:
        """Write zeros to a result for all points of the block."""
        shape, dtype = self.program.outputs[result]
        place = self._address(f"%out{result}", "i8", prod(shape) * dtype.itemsize, "0")
        count = self.layout.lanes * prod(shape) * dtype.itemsize
        self.emitter.declarations.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        self.emitter.perform(f"call void @llvm.memset.p0.i64(ptr {place.text}, i8 0, i64 {count}, i1 false)")

    def arrived(self, group: Group, number: int, value: Value) -> None:
        """Nothing to do: elements stay in registers until they are stored."""

    def store(self, group: Group, element: str, values: Sequence[Value]) -> None:
        emitter, lanes, width, result = self.emitter, self.layout.lanes, len(values), group.result
        values = [numeric(value) for value in values]
        kind = values[0].kind
        scalar, size = scalar_type(kind), len(self.program.results[result])
        place = self._address(f"%out{result}", scalar, size, element)
        if size == 1 or lanes == 1:
            if self.layout.stores is Stores.PREFETCHED:
                self._prefetch(place, _AHEAD * LINE, writing=True)
            whole = self.layout.stores is Stores.STREAMED and lanes * size_of(kind) == LINE
            how = f"align {LINE}, !nontemporal !2" if whole else f"align {size_of(kind)}"
            emitter.perform(f"store {emitter.type(kind)} {values[0].text}, ptr {place.text}, {how}")
            return
        piece = scalar if width == 1 else f"<{width} x {scalar}>"
        for point, part in self._turned(values, kind):
            target = emitter.write("ptr", f"getelementptr {scalar}, ptr {place.text}, i64 {point * size}")
            emitter.perform(f"store {piece} {part}, ptr {target.text}, align {size_of(kind)}")

    def _prefetch(self, place: Value, distance: int, writing: bool) -> None:
        """Prefetch a line that is needed a few blocks later. Beyond the end this has no effect."""
        ahead = self.emitter.write("ptr", f"getelementptr i8, ptr {place.text}, i64 {distance}")
        self.emitter.declarations.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self.emitter.perform(f"call void @llvm.prefetch.p0(ptr {ahead.text}, i32 {int(writing)}, i32 3, i32 1)")

    def _turned(self, values: list[Value], kind: str) -> list[tuple[int, str]]:
        """The elements of each point side by side."""
        emitter, lanes, width = self.emitter, self.layout.lanes, len(values)
        vector, values = emitter.type(kind), self._exchanged(values, kind)
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

    def _exchanged(self, values: list[Value], kind: str) -> list[Value]:
        """Transpose blocks of lanes, as many as there are values, by exchanging ever larger halves."""
        lanes, values, step = self.layout.lanes, list(values), 1
        vector = self.emitter.type(kind)
        while step < len(values):
            upper = [lane if not lane & step else lane + lanes - step for lane in range(lanes)]
            lower = [lane + step if not lane & step else lane + lanes for lane in range(lanes)]
            for first in range(len(values)):
                if first & step:
                    continue
                pair = values[first], values[first | step]
                for position, mask in ((first, upper), (first | step, lower)):
                    values[position] = self._shuffled(vector, kind, pair, mask)
            step *= 2
        return values

    def _shuffled(self, vector: str, kind: str, pair: tuple[Value, Value], lanes: Sequence[int]) -> Value:
        mask = ", ".join(f"i32 {lane}" for lane in lanes)
        a, b = (f"{vector} {value.text}" for value in pair)
        return self.emitter.write(kind, f"shufflevector {a}, {b}, <{len(lanes)} x i32> <{mask}>")

    def _address(self, base: str, scalar: str, size: int, element: str) -> Value:
        """The address of an element of the first point of the block."""
        emitter = self.emitter
        place = emitter.write("i64", "add i64 %i, 0" if size == 1 else f"mul i64 %i, {size}")
        if element != "0":
            place = emitter.write("i64", f"add i64 {place.text}, {element}")
        return emitter.write("ptr", f"getelementptr {scalar}, ptr {base}, i64 {place.text}")


def stored_as(kind: str) -> str:
    """The kind of number that represents ``kind`` in memory."""
    return "i8" if kind == "i1" else kind


def truth(value: Value, kind: str) -> Value:
    return value.differs(0) if kind == "i1" else value


def numeric(value: Value) -> Value:
    """A truth value in the form it has in memory; any other number unchanged."""
    return value.emitter.cast("zext", value, "i8") if value.kind == "i1" else value
