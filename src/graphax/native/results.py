"""The elements of results that are stored together, and those that a loop can store by itself."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ..errors import NativeError
from .needed import parts
from .statements import ELSEWHERE, Statement, Statements

# The maximum number of values that loops keep. Each takes a cache line, and a thread has a few megabytes.
_MOST_KEPT = 1 << 14


@dataclass(frozen=True)
class Target:
    """Where the steps of a loop write a number: at ``offset`` of a result, plus ``stride`` per step."""

    result: int
    offset: int
    stride: int


@dataclass(eq=False)
class Group:
    """Neighbouring elements of a result from ``start`` on, and those of them that are not computed yet.

    Elements that a loop writes move by ``stride`` in each step.
    """

    result: int
    start: int
    stride: int
    numbers: tuple[int, ...]
    missing: set[int]


def targets(program: Statements) -> dict[int, Target]:
    """The targets of values that loops write and that only results read, by statement."""
    statements = program.statements
    lengths = {
        written: statements[loop].attribute.length
        for loop in program.loops
        if statements[loop].scope == 0
        for written in parts(statements[loop])[2]
    }
    read = {operand for statement in statements for operand in statement.operands}
    found: dict[int, dict[int, tuple[int, int]]] = {written: {} for written in lengths}
    for result, numbers in enumerate(program.results):
        for position, number in enumerate(numbers):
            entry = statements[number]
            if entry.operation == "entry" and entry.operands[0] in found:
                steps = found[entry.operands[0]]
                # A value that is read again, or stored twice, has to be kept.
                step = -1 if number in read or entry.attribute.offset in steps else entry.attribute.offset
                steps[step] = result, position
    others = {s.operands[0] for n, s in enumerate(statements) if s.operation == "entry" and s.attribute.strides}
    return {
        written: target
        for written, steps in found.items()
        if written not in others and (target := _target(steps, lengths[written])) is not None
    }


def results_outside(program: Statements) -> int:
    """The number of result elements with code of their own: those that are not constants and not stored by a loop."""
    steps = sum(program.statements[n].operation != "constant" for numbers in program.results for n in numbers)
    return steps - sum(n * (program.statements[loop].attribute.length or 0) for loop, n in _stored(program).items())


def _stored(program: Statements) -> Counter[int]:
    """The number of values that each loop stores by itself."""
    direct = targets(program)
    return Counter({loop: sum(n in direct for n in parts(program.statements[loop])[2]) for loop in program.loops})


def check_room(program: Statements) -> None:
    """Raise `NativeError` if loops keep more values than a thread has room for."""
    kept = numbers_kept(program)
    if kept > _MOST_KEPT:
        raise NativeError(f"its loops keep {kept:,} numbers, and there is room for {_MOST_KEPT:,}")


def numbers_kept(program: Statements) -> int:
    """The number of values per point that loops keep for later."""
    kept = sum(len(s.operands) for s in program.statements if s.operation == "kept")
    stored = _stored(program)
    for loop in program.loops:
        repeat = program.statements[loop]
        kept += (repeat.attribute.length or 0) * (len(parts(repeat)[2]) - stored[loop])
    return kept


def _target(steps: Mapping[int, tuple[int, int]], length: int) -> Target | None:
    if set(steps) != set(range(length)):
        return None
    result, first = steps[0]
    stride = steps[1][1] - first
    regular = all(steps[n] == (result, first + n * stride) for n in range(length))
    return Target(result, first, stride) if regular else None


# A function that selects elements that are stored together. Yields first positions and statements.
Together = Callable[[Mapping[int, int]], Iterable[tuple[int, tuple[int, ...]]]]


def groups(program: Statements, direct: Mapping[int, Target], together: Together) -> dict[int, list[Group]]:
    """Groups of elements that are stored together, by the statements that they wait for."""
    pieces: dict[tuple[int, int, int], dict[int, int]] = {}
    for result, numbers in enumerate(program.results):
        # Elements that a loop stores are not stored after it.
        pieces[result, 0, 0] = {
            position: number
            for position, number in enumerate(numbers)
            if _is_stored(program.statements[number], direct)
        }
    for written, target in direct.items():
        scope = program.statements[written].scope
        pieces.setdefault((target.result, target.stride, scope), {})[target.offset] = written
    waiting: dict[int, list[Group]] = {}
    for (result, stride, _), members in pieces.items():
        for start, numbers in together(members):
            group = Group(result, start, stride, numbers, set(numbers))
            for number in group.missing:
                waiting.setdefault(number, []).append(group)
    return waiting


def _is_stored(statement: Statement, direct: Mapping[int, Target]) -> bool:
    """Whether an element of a result is stored by itself."""
    by_a_loop = statement.operation == "entry" and statement.operands[0] in direct
    return statement.operation != ELSEWHERE and not by_a_loop


def powers_of_two(members: Mapping[int, int], widest: int) -> Iterable[tuple[int, tuple[int, ...]]]:
    """Yield runs of neighbours whose lengths are powers of two, up to ``widest``."""
    for start, numbers in runs(members, len(members)):
        done = 0
        while done < len(numbers):
            width = min(widest, 1 << ((len(numbers) - done).bit_length() - 1))
            yield start + done, numbers[done : done + width]
            done += width


def runs(members: Mapping[int, int], widest: int) -> Iterable[tuple[int, tuple[int, ...]]]:
    """Yield runs of neighbours, up to ``widest`` at once."""
    rest = sorted(members)
    while rest:
        width = 1
        while width < min(widest, len(rest)) and rest[width] == rest[0] + width:
            width += 1
        yield rest[0], tuple(members[position] for position in rest[:width])
        rest = rest[width:]
