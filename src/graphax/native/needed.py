"""The statements that results depend on, also through loops."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from .statements import Statement


def needed(
    statements: Sequence[Statement], results: Sequence[Sequence[int]]
) -> tuple[tuple[Statement, ...], dict[int, int]]:
    """The statements that results depend on, renumbered, and the new number of each."""
    found = {number for result in results for number in result}
    becomes = becoming(statements)
    size = 0
    # The new value of a carry is written after the carry itself, so one pass around a loop is not enough.
    while size < len(found):
        size = len(found)
        for number in range(len(statements) - 1, -1, -1):
            if number in found:
                found.update(_uses(statements[number]))
                found.update(becomes.get(number, ()))
    places = {number: place for place, number in enumerate(sorted(found))}
    kept = [_without(statements[number], found) for number in places]
    return tuple(s._replace(operands=tuple(places[n] for n in s.operands)) for s in kept), places


def becoming(statements: Sequence[Statement]) -> dict[int, tuple[int]]:
    """Per carry, its value in the next step."""
    found: dict[int, tuple[int]] = {}
    for statement in statements:
        if statement.operation == "repeat":
            carries, new, _ = parts(statement)
            found.update((carry, (number,)) for carry, number in zip(carries, new, strict=True))
    return found


def parts(repeat: Statement) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The carries of a loop, their next values, and the written values."""
    first, count = repeat.attribute.length is None, repeat.attribute.carries
    middle, last = first + count, first + 2 * count
    return repeat.operands[first:middle], repeat.operands[middle:last], repeat.operands[last:]


def _uses(statement: Statement) -> Iterable[int]:
    """The operands that a statement needs directly. For a loop this is only its condition."""
    if statement.operation == "repeat":
        return statement.operands[:1] if statement.attribute.length is None else ()
    return statement.operands


def _without(statement: Statement, found: set[int]) -> Statement:
    """A loop without carries that nothing depends on and without written values that nothing reads."""
    if statement.operation != "repeat":
        return statement
    carries, new, written = parts(statement)
    kept = [(carry, number) for carry, number in zip(carries, new, strict=True) if carry in found]
    operands = (
        *_uses(statement), *(carry for carry, _ in kept), *(number for _, number in kept),
        *(n for n in written if n in found),
    )  # fmt: skip
    return statement._replace(operands=operands, attribute=replace(statement.attribute, carries=len(kept)))
