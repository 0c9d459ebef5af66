"""Moves of single vertices within an order, where only the window that they cross is evaluated again.

A walk sweeps a cursor along the order. With everything before the cursor eliminated, it tries moves of the vertices
after it: one is pulled to the cursor, or the vertex at the cursor is pushed back. The window between the two places is
eliminated in its new order. If the graph after the window is the same as before, the rest of the order costs the same.
"""

from typing import NamedTuple

import numpy as np

from .compiling import compiled
from .kernels import DONE, advance, eliminate, evaluate, list_neighbours, rewind
from .problem import Problem
from .random_numbers import random_below, random_unit

# The number of moves tried at each position of the cursor.
ATTEMPTS = 4
# The longest window.
REACH = 256
# Temperatures relative to the mean price of an elimination.
HOT, COLD = 1.3, 0.05
# Indices into `Walk.at`.
SWEEP, CURSOR, ATTEMPT, EVALUATIONS, READY = range(5)
# Indices into `Walk.total`.
CURRENT, BEST = range(2)


class Walk(NamedTuple):
    """An order on its way through the space of orders."""

    order: np.ndarray
    position: np.ndarray
    price: np.ndarray
    digest: np.ndarray
    new_price: np.ndarray
    new_digest: np.ndarray
    near: np.ndarray
    best: np.ndarray
    total: np.ndarray
    at: np.ndarray
    rng: np.ndarray


def new_walk(problem: Problem, order: np.ndarray, seed: int) -> Walk:
    size = problem.size
    return Walk(
        order=order.astype(np.int32),
        position=np.zeros(size, np.int64),
        price=np.zeros(size),
        digest=np.zeros(size, np.uint64),
        new_price=np.zeros(size),
        new_digest=np.zeros(size, np.uint64),
        near=np.zeros(2 * len(problem.numbers), np.int32),
        best=order.astype(np.int32),
        total=np.array([np.inf, np.inf]),
        at=np.zeros(5, np.int64),
        rng=np.random.default_rng(seed).integers(1 << 63, size=1, dtype=np.uint64),
    )


@compiled
def _far_end(net, walk, cursor, reach):
    """The other end of the window to change.

    It is at a neighbour of the vertex at the cursor, or at a random distance of any order of magnitude.
    """
    size = len(walk.order)
    room = min(reach, size - 1 - cursor)
    if random_below(walk.rng, 2) == 0:
        count = list_neighbours(net, walk.order[cursor], walk.near)
        neighbour = walk.near[random_below(walk.rng, count)]
        if neighbour < size and walk.position[neighbour] - cursor <= room:
            return walk.position[neighbour]
    return cursor + min(room, np.int64(np.exp(random_unit(walk.rng) * np.log(room + 1.0))))


@compiled
def _shift(order, start, end):
    """Move the element at ``start`` to ``end``, in either direction."""
    moved = order[start]
    step = 1 if end > start else -1
    for place in range(start, end, step):
        order[place] = order[place + step]
    order[end] = moved


@compiled
def _retrace(net, table, prices, walk, cursor, end, allowance):
    """Eliminate the changed window and continue until the graph is the same as before.

    Returns (status, change of the total, position after the last one evaluated). Gives up with an infinite change as
    soon as it is certain to exceed the allowance.
    """
    old = 0.0
    for place in range(cursor, end + 1):
        old += walk.price[place]
    new = 0.0
    place = cursor
    while place < len(walk.order):
        if place > end:
            if net.digest[0] == walk.digest[place - 1]:
                break
            old += walk.price[place]
        charged = eliminate(net, table, prices, walk.order[place])
        if charged < 0:
            return int(-charged), 0.0, place
        new += charged
        walk.new_price[place], walk.new_digest[place] = charged, net.digest[0]
        place += 1
        if new - old > allowance and place <= end + 1:
            return DONE, np.inf, place
    return DONE, new - old, place


@compiled
def _note_best(walk):
    if walk.total[CURRENT] < walk.total[BEST] - 1e-9:
        walk.total[BEST] = walk.total[CURRENT]
        for place in range(len(walk.order)):
            walk.best[place] = walk.order[place]


@compiled
def settle(net, table, prices, walk, cursor, end, allowance):
    """Keep a changed window of the order if the total grows by at most ``allowance``.

    Returns (status, whether it is kept). If not, the caller restores the window.
    """
    status, change, stop = _retrace(net, table, prices, walk, cursor, end, allowance)
    rewind(net, cursor)
    if status != DONE or change > allowance:
        return status, False
    for place in range(cursor, stop):
        walk.price[place], walk.digest[place] = walk.new_price[place], walk.new_digest[place]
        walk.position[walk.order[place]] = place
    walk.total[CURRENT] += change
    _note_best(walk)
    return DONE, True


@compiled
def _try_move(net, table, prices, walk, cursor, temperature, reach):
    """Propose one move and accept or reject it. Returns a status."""
    end = _far_end(net, walk, cursor, reach)
    pull = random_below(walk.rng, 2) == 0
    allowance = -temperature * np.log(random_unit(walk.rng)) + 1e-9
    start, goal = (end, cursor) if pull else (cursor, end)
    _shift(walk.order, start, goal)
    status, kept = settle(net, table, prices, walk, cursor, end, allowance)
    if not kept:
        _shift(walk.order, goal, start)
    return status


@compiled
def evaluate_walk(net, table, prices, walk):
    """Evaluate the order of a new walk. Returns a status."""
    if walk.at[READY]:
        return DONE
    status = evaluate(net, table, prices, walk.order, walk.price, walk.digest)
    if status != DONE:
        return status
    rewind(net, 0)
    walk.total[CURRENT] = 0.0
    for place in range(len(walk.order)):
        walk.position[walk.order[place]] = place
        walk.total[CURRENT] += walk.price[place]
    _note_best(walk)
    walk.at[READY] = 1
    return DONE


@compiled
def sweep(net, table, prices, walk, sweeps, hot, cold, reach, pause):
    """Anneal for a number of sweeps, until ``pause`` moves were tried in total. When called again, it resumes.

    The temperature falls geometrically from ``hot`` to ``cold``. If both are zero, only moves that do not raise the
    cost are accepted.
    """
    status = evaluate_walk(net, table, prices, walk)
    if status != DONE:
        return status
    advance(net, table, prices, walk.order, walk.at[CURSOR])
    while walk.at[SWEEP] < sweeps:
        temperature = hot * (cold / hot) ** (walk.at[SWEEP] / sweeps) if hot > 0 else 0.0
        # A descent spends its moves where there is something to gain.
        dear = walk.total[CURRENT] / len(walk.order) if hot <= 0 else 0.0
        while walk.at[CURSOR] < len(walk.order) - 1:
            while walk.at[ATTEMPT] < ATTEMPTS and walk.price[walk.at[CURSOR]] >= dear:
                if walk.at[EVALUATIONS] >= pause:
                    return DONE
                before = walk.rng[0]
                status = _try_move(net, table, prices, walk, walk.at[CURSOR], temperature, reach)
                if status != DONE:
                    # Retry the same move once its structures are known, so that the walk stays the same.
                    walk.rng[0] = before
                    return status
                walk.at[ATTEMPT] += 1
                walk.at[EVALUATIONS] += 1
            walk.at[ATTEMPT] = 0
            eliminate(net, table, prices, walk.order[walk.at[CURSOR]])
            walk.at[CURSOR] += 1
        rewind(net, 0)
        walk.at[CURSOR] = 0
        walk.at[SWEEP] += 1
    return DONE


def mean_price(problem: Problem, nodes: np.ndarray) -> float:
    walk = new_walk(problem, nodes, 0)
    problem.call(evaluate_walk, walk)
    return float(walk.total[CURRENT]) / max(1, problem.size)
