"""An order of statements in which few values are alive at once, so that they stay in registers."""

import heapq
from collections.abc import Sequence

from .statements import Statement

# Vector registers that are not needed for something else, on a machine that has 32.
REGISTERS = 26


def schedule(statements: Sequence[Statement], results: Sequence[int]) -> list[int]:
    """The best of the order as written, depth first from the results, and one that is greedy for few live values."""
    candidates = (
        list(range(len(statements))),
        _depth_first(statements, results),
        _greedy(statements, results),
    )
    return min(candidates, key=lambda order: pressure(statements, results, order))


def pressure(statements: Sequence[Statement], results: Sequence[int], order: Sequence[int]) -> tuple[int, int]:
    """How many values are alive beyond the registers, summed over time; and how many are alive at all.

    Constants are operands from memory, inputs are loaded when they are first used, and results are stored at once.
    """
    last = {operand: time for time, number in enumerate(order) for operand in statements[number].operands}
    ends: dict[int, int] = {}
    alive = beyond = total = 0
    for time, number in enumerate(order):
        if statements[number].operation != "constant" and number in last:
            alive += 1
            ends[last[number]] = ends.get(last[number], 0) + 1
        total += alive
        beyond += max(0, alive - REGISTERS)
        alive -= ends.pop(time, 0)
    return beyond, total


def _depth_first(statements: Sequence[Statement], results: Sequence[int]) -> list[int]:
    """Every result in turn, and of the operands of a statement first the one that needs more registers."""
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
    """Next the statement that leaves the fewest values alive; of equals, the one whose operands are freshest."""
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
                # Its last user frees a register now; the old entry is skipped when it comes up.
                for user in users[operand]:
                    if not done[user] and not missing[user]:
                        heapq.heappush(ready, (priority(user), user))
        for user in users[number]:
            missing[user] -= 1
            if not missing[user]:
                heapq.heappush(ready, (priority(user), user))
    return order
