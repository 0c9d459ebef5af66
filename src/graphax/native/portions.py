"""Portions of a program, which warps of a GPU compute side by side.

With few points most of a GPU is idle, and one thread takes long for long code. So several warps share the points of a
warp: each computes a portion of the results, with everything that it depends on. Work that several portions depend on
is repeated, which limits how many pay off.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ..gpu_times import LONGEST_CODE, ThreadWork, kernel_on_gpu
from .needed import needed
from .operations import instructions_of
from .results import targets
from .statements import ELSEWHERE, Statement, Statements

# The numbers of portions to try, and the instructions that storing an element takes about as long as.
_COUNTS, _STORING = (2, 4, 8, 16, 32), 8

# An element of a result: the number of the result, and its position.
_Element = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Portions:
    """Programs that together store all results of a program, each in warps of its own.

    Attributes:
        work: the work of the thread that has most to do.
    """

    parts: tuple[Statements, ...]
    work: ThreadWork


@dataclass(frozen=True)
class _Portion:
    """Some elements of the results, and the number of instructions that compute them, in the code and executed."""

    elements: tuple[_Element, ...]
    code: int
    executed: int


@lru_cache(8)
def portions(program: Statements, points: int) -> Portions | None:
    """The portions that take the least estimated time for some points; None if the program should not be divided."""
    # An array that a loop stores by itself cannot be divided.
    if targets(program):
        return None
    ways = [(way, work_of(way)) for way in divided(program)]
    fitting = [(way, work) for way, work in ways if work.code + work.others <= LONGEST_CODE]
    if not fitting:
        return None
    way, work = min(fitting, key=lambda each: kernel_on_gpu(each[1], points))
    return Portions(tuple(part(program, each.elements) for each in way), work)


def work_of(way: Sequence[_Portion]) -> ThreadWork:
    """The work of the thread that has most to do."""
    longest = max(each.code for each in way)
    return ThreadWork(
        threads=1,
        code=longest,
        executed=max(each.executed for each in way),
        stored=max(len(each.elements) for each in way),
        warps=len(way),
        others=sum(each.code for each in way) - longest,
    )


def divided(program: Statements) -> Iterator[list[_Portion]]:
    """Yield ways to divide the results into more and more pieces of neighbours, which are stored fastest."""
    elements = [(result, place) for result, numbers in enumerate(program.results) for place in range(len(numbers))]
    lengths = [instructions_of(s) if s.operation != "constant" else 0 for s in program.statements]
    whole = sum(lengths) + _STORING * len(elements)
    for count in _COUNTS if whole <= 2 * LONGEST_CODE else ():
        found = _divided(program, elements, lengths, whole / count, 2 * count)
        if len(found) > 1:
            yield found


def _divided(
    program: Statements, elements: Sequence[_Element], lengths: Sequence[int], longest: float, most: int
) -> list[_Portion]:
    """Divide elements into runs of at most ``longest`` instructions, or more if a single element takes more.

    Returns nothing if that takes more than ``most`` runs, as if every element depends on nearly everything.
    """
    found: list[tuple[list[_Element], set[int]]] = []
    length = 0.0
    for result, place in elements:
        number = program.results[result][place]
        new = _depends_on(program, number, found[-1][1]) if found else set()
        length += _STORING + sum(lengths[n] for n in new)
        if not found or length > longest:
            if len(found) == most:
                return []
            new = _depends_on(program, number, set())
            length = _STORING + sum(lengths[n] for n in new)
            found.append(([], set()))
        found[-1][0].append((result, place))
        found[-1][1].update(new)
    times = program.times
    return [
        _Portion(
            tuple(elements),
            sum(lengths[n] for n in numbers),
            sum(lengths[n] * times[program.statements[n].scope] for n in numbers),
        )
        for elements, numbers in found
    ]


def _depends_on(program: Statements, number: int, known: set[int]) -> set[int]:
    """A statement with all that it depends on, except what is known and what that depends on."""
    found: set[int] = set()
    rest = [number]
    while rest:
        number = rest.pop()
        if number not in known and number not in found:
            found.add(number)
            rest.extend(program.statements[number].operands)
    return found


def part(program: Statements, elements: Sequence[_Element]) -> Statements:
    """The program that computes some elements and leaves the others to other warps."""
    statements = (*program.statements, Statement(ELSEWHERE, (), "i1"))
    results = [[len(program.statements)] * len(numbers) for numbers in program.results]
    for result, place in elements:
        results[result][place] = program.results[result][place]
    kept, places = needed(statements, results)
    return replace(program, statements=kept, results=tuple(tuple(places[n] for n in numbers) for numbers in results))
