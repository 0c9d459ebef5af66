"""Orders of statements in which few values are alive at once, so that they stay in registers."""

import heapq
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from .statements import STORED, Statement, Statements

# The vector registers that are not needed for something else, on a machine with 32.
REGISTERS = 26


@dataclass(frozen=True)
class Schedule:
    """The statements of a scope in a good order. ``head`` holds those that decide whether a loop continues."""

    head: tuple[int, ...]
    rest: tuple[int, ...]


def schedules(program: Statements, registers: int | None = REGISTERS) -> dict[int, Schedule]:
    """Schedules by scope. An inner loop counts as a statement that needs everything it reads.

    If ``registers`` is None, any order will do, so the statements stay as written.
    """
    statements, scopes = program.statements, by_scope(program.statements)
    inside: dict[int, set[int]] = {}
    reads: dict[int, Collection[int]] = {n: s.operands for n, s in enumerate(statements)}
    asked: dict[int, tuple[int, ...]] = {0: ()}
    results = {0: [n for result in program.results for n in result]}
    for number in program.loops:
        repeat, scope = statements[number], statements[number].attribute.scope
        members = scopes.get(scope, [])
        inner = [inside[statements[n].attribute.scope] for n in members if statements[n].operation == "repeat"]
        inside[scope] = set(members).union(*inner)
        # The next value of a carry may have been computed before the loop.
        read = {n for member in members for n in reads[member]}.union(repeat.operands)
        reads[number] = sorted(read - inside[scope])
        results[scope] = [n for n in repeat.operands if statements[n].operation != "carry"]
        asked[scope] = repeat.operands[:1] if repeat.attribute.length is None else ()
    return {
        scope: _scheduled(statements, members, reads, asked[scope], results[scope], registers)
        for scope, members in scopes.items()
    }  # fmt: skip


def by_scope(statements: Sequence[Statement]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for number, statement in enumerate(statements):
        found.setdefault(statement.scope, []).append(number)
    return found


def _scheduled(
    statements: Sequence[Statement],
    members: Sequence[int],
    reads: Mapping[int, Collection[int]],
    asked: Sequence[int],
    results: Sequence[int],
    registers: int | None,
) -> Schedule:
    """An order of ``members``. Values defined elsewhere are not part of it."""
    places = {number: place for place, number in enumerate(members)}
    local = [
        statements[number]._replace(operands=tuple(places[n] for n in reads[number] if n in places))
        for number in members
    ]
    order = [members[place] for place in schedule(local, [places[n] for n in results if n in places], registers)]
    head = set(asked)
    for number in sorted(order, reverse=True):
        head.update(reads[number] if number in head else ())
    return Schedule(tuple(n for n in order if n in head), tuple(n for n in order if n not in head))


def schedule(statements: Sequence[Statement], results: Sequence[int], registers: int | None = REGISTERS) -> list[int]:
    """The best of three orders: as written, depth first from the results, and greedy for few live values."""
    if registers is None:
        return _as_written(statements)
    candidates = _as_written(statements), _depth_first(statements, results), _greedy(statements, results)
    return min(candidates, key=lambda order: pressure(statements, results, order, registers))


def pressure(
    statements: Sequence[Statement], results: Sequence[int], order: Sequence[int], registers: int = REGISTERS
) -> tuple[int, int]:
    """The number of live values beyond the registers, summed over time, and the total number of live values.

    Constants are operands from memory, inputs are loaded on first use, and results are stored at once.
    """
    last = {operand: time for time, number in enumerate(order) for operand in statements[number].operands}
    ends: dict[int, int] = {}
    alive = beyond = total = 0
    for time, number in enumerate(order):
        if statements[number].operation != "constant" and number in last:
            alive += 1
            ends[last[number]] = ends.get(last[number], 0) + 1
        total += alive
        beyond += max(0, alive - registers)
        alive -= ends.pop(time, 0)
    return beyond, total


def _as_written(statements: Sequence[Statement]) -> list[int]:
    """The order as written, but with loads from memory right before their first use."""
    order: dict[int, None] = {}
    for number, statement in enumerate(statements):
        if statement.operation not in STORED or statement.operands:
            order.update(dict.fromkeys((*statement.operands, number)))
    return list(order | dict.fromkeys(range(len(statements))))


def _depth_first(statements: Sequence[Statement], results: Sequence[int]) -> list[int]:
    """Every result in turn. Of the operands of a statement, the one that needs more registers comes first."""
    need = [0] * len(statements)
    for number, statement in enumerate(statements):
        needs = sorted((need[n] for n in set(statement.operands)), reverse=True)
        need[number] = max([1, *(n + place for place, n in enumerate(needs))])
    order: list[int] = []
    done: set[int] = set()
    for result in results:
        stack = [(result, False)]
        while stack:
            number, ready = stack.pop()
            if number in done:
                continue
            if ready:
                done.add(number)
                order.append(number)
                continue
            stack.append((number, True))
            operands = sorted(set(statements[number].operands), key=lambda n: need[n])
            stack.extend((operand, False) for operand in operands)
    return order


def _greedy(statements: Sequence[Statement], results: Sequence[int]) -> list[int]:
    """Next the statement that leaves the fewest values alive; among equals, the one with the most recent operands."""
    users: list[list[int]] = [[] for _ in statements]
    for number, statement in enumerate(statements):
        for operand in set(statement.operands):
            users[operand].append(number)
    remaining = [len(users[n]) for n in range(len(statements))]
    missing = [len(set(s.operands)) for s in statements]
    stamp = [0] * len(statements)

    def priority(number: int) -> tuple[int, int, int]:
        operands = {n for n in statements[number].operands if statements[n].operation != "constant"}
        freed = sum(remaining[n] == 1 for n in operands)
        freshest = max((stamp[n] for n in operands), default=0)
        return bool(users[number]) - freed, -freshest, number

    ready = [(priority(n), n) for n in range(len(statements)) if not missing[n]]
    heapq.heapify(ready)
    order: list[int] = []
    done = [False] * len(statements)
    while ready:
        known, number = heapq.heappop(ready)
        if done[number]:
            continue
        now = priority(number)
        if now != known:
            heapq.heappush(ready, (now, number))
            continue
        done[number] = True
        order.append(number)
        stamp[number] = len(order)
        for operand in set(statements[number].operands):
            remaining[operand] -= 1
            if remaining[operand] == 1:
                # The last user of the operand now frees a register; the old entry is skipped when it comes up.
                for user in users[operand]:
                    if not done[user] and not missing[user]:
                        heapq.heappush(ready, (priority(user), user))
        for user in users[number]:
            missing[user] -= 1
            if not missing[user]:
                heapq.heappush(ready, (priority(user), user))
    return order
