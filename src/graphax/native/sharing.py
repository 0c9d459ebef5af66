"""Loops whose steps the threads of a GPU take side by side.

A GPU has far more threads than there are points in most batches. If a program ends in a loop with independent steps,
such as one pass of forward or reverse mode per column or row of a Jacobian, each step becomes a thread. All threads of
a point repeat the code before the loop.
"""

from dataclasses import dataclass

from ..gpu_times import ThreadWork
from .needed import parts
from .operations import instructions
from .results import Group, targets
from .statements import Statements

# The names of the point of a thread, and of the step of the loop that it takes.
POINT, STEP = "%point.of.thread", "%step.of.thread"


@dataclass(frozen=True)
class SharedLoop:
    """A loop whose steps are distributed to threads, one per thread.

    Attributes:
        number: the number of its statement.
        scope: the scope of the repeated statements.
        length: the number of steps, which is the number of threads per point.
    """

    number: int
    scope: int
    length: int

    def has_rows(self, program: Statements, group: Group) -> bool:
        """Whether the elements of a group are adjacent for neighbouring threads, also across points."""
        inside = program.statements[group.numbers[0]].scope == self.scope
        whole = group.stride * self.length == len(program.results[group.result])
        return inside and whole and group.start + len(group.numbers) <= group.stride


def shared_loop(program: Statements) -> SharedLoop | None:
    """The longest loop whose steps are independent and write nothing but results; None if there is none."""
    direct, found = targets(program), []
    for number in program.loops:
        repeat = program.statements[number]
        how, (carries, _, written) = repeat.attribute, parts(repeat)
        independent = repeat.scope == 0 and how.length is not None and not carries
        if independent and how.length > 1 and written and all(n in direct for n in written):
            found.append(SharedLoop(number, how.scope, how.length))
    return max(found, key=lambda loop: loop.length, default=None)


def work_of_a_thread(program: Statements, loop: SharedLoop | None) -> ThreadWork:
    """The work of each thread if the steps of a loop are distributed, or if each point has a single thread."""
    code, executed = instructions(program), instructions(program, True)
    stored = sum(map(len, program.results))
    if loop is None:
        return ThreadWork(1, code, executed, stored)
    _, _, written = parts(program.statements[loop.number])
    spared = loop.length - 1
    others = instructions(program, True, loop.scope) // loop.length * spared
    return ThreadWork(loop.length, code, executed - others, stored - spared * len(written))
