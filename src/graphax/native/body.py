"""The instructions for one block of points, from loads to stores, including loops."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .emit import Value
from .memory import Storage
from .needed import parts
from .operations import OPERATIONS, convert
from .results import groups, targets
from .schedule import schedules
from .sharing import STEP
from .statements import Place, Repetition, Statement


class Body:
    """Writes the instructions of a program."""

    def __init__(self, memory: Storage):
        self.emitter, self.program, self.memory = memory.emitter, memory.program, memory
        self.values: dict[int, Value] = {}
        self.after: dict[int, Value] = {}
        # The names of step numbers and of memory, by statement.
        self.steps: dict[int, str] = {}
        self.rooms: dict[int, str] = {}
        self.orders = schedules(self.program, memory.registers)
        self.direct = targets(self.program)
        waiting = groups(self.program, self.direct, memory.together)
        memory.arrange(list(dict.fromkeys(group for found in waiting.values() for group in found)))
        self.waiting = {n: [g for g in found if not memory.is_written(g)] for n, found in waiting.items()}
        if 0 in self.orders:
            self.run(self.orders[0].rest)

    def run(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self.emitter.cut()
            value = self._performed(number)
            if value is not None:
                self.values[number] = value
            for group in self.waiting.get(number, ()):
                group.missing.discard(number)
                self.memory.arrived(group, number, self.values[number])
                if not group.missing:
                    scope = self.program.statements[number].scope
                    element = self._element(Place(group.start, (group.stride,)), (self.steps.get(scope, "0"),))
                    self.memory.store(group, element, [self.values[n] for n in group.numbers])

    def _performed(self, number: int) -> Value | None:
        """The value of a statement, or None if it has none."""
        statement = self.program.statements[number]
        match statement.operation:
            case "constant":
                return self.emitter.value(statement.kind, statement.attribute)
            case "elsewhere":
                return None
            case "input":
                operand, place = statement.attribute
                return self.memory.loaded(operand, self._place(place, statement.operands), statement.kind)
            case "repeat":
                if self.memory.shared is not None and number == self.memory.shared.number:
                    self._step_of_a_thread(self.memory.shared.scope)
                else:
                    self._repeat(statement)
                return None
            case "after":
                return self.after[statement.operands[1]]
            case "carry":
                return self.values[number]
            case "step":
                counted = self.emitter.write("i32", f"trunc i64 {self.steps[statement.scope]} to i32")
                return self.emitter.splat(counted)
            case "written":
                return self._written(number, statement)
            case "kept" | "table":
                self._kept(number, statement)
                return None
            case "entry":
                return self._entry(statement)
            case "convert":
                return convert(self.values[statement.operands[0]], statement.kind)
            case "bitcast":
                return self.emitter.cast("bitcast", self.values[statement.operands[0]], statement.kind)
        return OPERATIONS[statement.operation](*(self.values[n] for n in statement.operands))

    def _place(self, place: Place, steps: Sequence[int]) -> str:
        return self._element(place, [self.steps[self.program.statements[n].scope] for n in steps])

    def _element(self, place: Place, steps: Sequence[str]) -> str:
        """The index of an element, given the steps that it moves with."""
        text = str(place.offset)
        for step, stride in zip(steps, place.strides, strict=True):
            if stride == 0:
                continue
            moved = step if stride == 1 else self.emitter.write("i64", f"mul i64 {step}, {stride}").text
            text = moved if text == "0" else self.emitter.write("i64", f"add i64 {moved}, {text}").text
        return text

    def _written(self, number: int, statement: Statement) -> Value:
        value = self.values[statement.operands[0]]
        if number not in self.direct:
            self.memory.kept(self.rooms[number], self.steps[statement.scope], value)
        return value

    def _kept(self, number: int, statement: Statement) -> None:
        if statement.operation == "table":
            self.rooms[number] = self.memory.table(statement.attribute, statement.kind)
            return
        self.rooms[number] = self.memory.reserved(len(statement.operands), statement.kind)
        for element, operand in enumerate(statement.operands):
            self.memory.kept(self.rooms[number], str(element), self.values[operand])

    def _entry(self, statement: Statement) -> Value | None:
        source = statement.operands[0]
        if source in self.direct:
            return None
        operation = self.program.statements[source].operation
        steps = statement.operands[2:] if operation == "written" else statement.operands[1:]
        element = self._place(statement.attribute, steps)
        read = self.memory.tabulated if operation == "table" else self.memory.read
        return read(self.rooms[source], element, statement.kind)

    def _step_of_a_thread(self, scope: int) -> None:
        """Emit the one step of a loop that this thread takes."""
        self.steps[scope] = STEP
        self.run(self.orders[scope].rest)

    def _repeat(self, statement: Statement) -> None:
        """Emit a loop: a label, the statements of a step, and a jump back."""
        emitter, how = self.emitter, statement.attribute
        carries, new, written = parts(statement)
        for number in written:
            if number not in self.direct:
                self.rooms[number] = self.memory.reserved(how.length, self.program.statements[number].kind)
        label, before, outer = emitter.fresh("loop"), emitter.block, emitter.huge
        emitter.huge = None
        emitter.perform(f"br label %{label}")
        emitter.begin(label)
        head = len(emitter.lines)
        self.steps[how.scope] = f"%{label}.step"
        for place, number in enumerate(carries):
            self.values[number] = Value(emitter, f"%{label}.carry{place}", self.program.statements[number].kind)
        with emitter.inside():
            going = self._head(statement, label)
            self.run(self.orders[how.scope].rest)
            changes = [
                Change(self.values[c], self._start(c), self.values[n]) for c, n in zip(carries, new, strict=True)
            ]
            if emitter.huge is not None:
                flag = Value(emitter, f"%{label}.huge", "i1")
                changes.append(Change(flag, emitter.value("i1", False), flag | emitter.huge))
            # A lane that is finished keeps its values.
            changes = [replace(c, new=emitter.select(going, c.new, c.now)) if going else c for c in changes]
            self._jump_back(how, label, going)
        phis = [f"{c.now.text} = phi {emitter.type(c.now.kind)} {_from(c, before, emitter.block)}" for c in changes]
        emitter.lines[head:head] = [*self._counter(how, label, before), *phis]
        emitter.begin(f"{label}.after")
        last = [c.now if going else c.new for c in changes]
        self.after.update(zip(carries, last, strict=False))
        found = last[len(carries)] if len(last) > len(carries) else None
        emitter.huge = outer | found if outer and found else outer or found

    def _start(self, carry: int) -> Value:
        return self.values[self.program.statements[carry].operands[0]]

    def _head(self, statement: Statement, label: str) -> Value | None:
        """The lanes that continue, if there is a condition. The loop ends when no lane does."""
        how, emitter = statement.attribute, self.emitter
        if how.length is not None:
            return None
        self.run(self.orders[how.scope].head if how.scope in self.orders else ())
        going = self.values[statement.operands[0]]
        emitter.perform(f"br i1 {emitter.any(going).text}, label %{label}.body, label %{label}.after")
        emitter.begin(f"{label}.body")
        return going

    def _jump_back(self, how: Repetition, label: str, going: Value | None) -> None:
        emitter = self.emitter
        if going is not None:
            emitter.perform(f"br label %{label}")
            return
        step = f"%{label}.step"
        emitter.perform(f"{step}.next = add i64 {step}, {-1 if how.backward else 1}")
        emitter.perform(f"{step}.more = icmp ne i64 {step}.next, {-1 if how.backward else how.length}")
        emitter.perform(f"br i1 {step}.more, label %{label}, label %{label}.after")

    def _counter(self, how: Repetition, label: str, before: str) -> list[str]:
        if how.length is None:
            return []
        step, first = f"%{label}.step", how.length - 1 if how.backward else 0
        return [f"{step} = phi i64 [{first}, %{before}], [{step}.next, %{self.emitter.block}]"]


@dataclass(frozen=True)
class Change:
    """A number that a loop carries: its name, its start, and its value in the next step."""

    now: Value
    start: Value
    new: Value


def _from(change: Change, before: str, last: str) -> str:
    return f"[{change.start.text}, %{before}], [{change.new.text}, %{last}]"
