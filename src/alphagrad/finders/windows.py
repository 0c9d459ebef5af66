"""Exact reordering of windows: the best order of a few consecutive eliminations, by dynamic programming."""

from collections.abc import Iterator

import numpy as np

from ..elimination.compiling import compiled
from ..elimination.kernels import DEPTH, DONE, advance, eliminate, price_of, rewind, undo
from ..elimination.problem import Problem
from ..elimination.walk import BEST, CURRENT, CURSOR, Walk, evaluate_walk, new_walk, settle
from .finder import Step, cheapest

# The number of eliminations in a window, on small and on large graphs. Each one more doubles the work.
WIDTH, WIDTH_OF_LARGE = 9, 5
LARGE = 2000


@compiled
def _subset_prices(net, table, prices, window, width, charged):
    """Compute the price of every vertex of the window after every subset of the others. Returns a status.

    Subsets are counted in binary, so that the step to the next subset undoes the last few eliminations and does one.
    """
    base = net.now[DEPTH]
    for subset in range(1 << width):
        if subset > 0:
            bit = 0
            while not subset >> bit & 1:
                undo(net)
                bit += 1
            price = eliminate(net, table, prices, window[bit])
            if price < 0:
                rewind(net, base)
                return int(-price)
        for bit in range(width):
            if not subset >> bit & 1:
                price = price_of(net, table, prices, window[bit])
                if price < 0:
                    rewind(net, base)
                    return int(-price)
                charged[subset, bit] = price
    rewind(net, base)
    return DONE


@compiled
def _best_order(window, width, charged, least, last, result):
    """Write the cheapest order of the window to ``result``."""
    for subset in range(1, 1 << width):
        least[subset] = np.inf
        for bit in range(width):
            if subset >> bit & 1:
                before = subset ^ (1 << bit)
                price = least[before] + charged[before, bit]
                if price < least[subset]:
                    least[subset], last[subset] = price, bit
    subset = (1 << width) - 1
    for place in range(width - 1, -1, -1):
        result[place] = window[last[subset]]
        subset ^= 1 << last[subset]


@compiled
def reorder(net, table, prices, walk, stop, width, charged, least, last, window, result):
    """Reorder the windows at the cursor and after it, up to ``stop``. Returns a status."""
    status = evaluate_walk(net, table, prices, walk)
    if status != DONE:
        return status
    while walk.at[CURSOR] < stop:
        cursor = walk.at[CURSOR]
        advance(net, table, prices, walk.order, cursor)
        size = min(width, len(walk.order) - cursor)
        for place in range(size):
            window[place] = walk.order[cursor + place]
        status = _subset_prices(net, table, prices, window, size, charged)
        if status != DONE:
            return status
        _best_order(window, size, charged, least, last, result)
        for place in range(size):
            walk.order[cursor + place] = result[place]
        status, kept = settle(net, table, prices, walk, cursor, cursor + size - 1, 1e-9)
        if not kept:
            for place in range(size):
                walk.order[cursor + place] = window[place]
        if status != DONE:
            return status
        walk.at[CURSOR] += max(1, width // 3)
    return DONE


def reordered(problem: Problem, walk: Walk) -> Iterator[Step]:
    """Yield from one pass over all windows of the order."""
    width = min(WIDTH if problem.size <= LARGE else WIDTH_OF_LARGE, problem.size)
    charged, least = np.zeros((1 << width, width)), np.zeros(1 << width)
    last, window, result = (np.zeros(n, np.int32) for n in (1 << width, width, width))
    walk.at[CURSOR] = 0
    # Every call eliminates up to the cursor again, so their number is limited.
    stride = max(32, problem.size // 64)
    for stop in range(stride, problem.size + stride, stride):
        before = walk.total[BEST]
        problem.call(reorder, walk, min(stop, problem.size - 1), width, charged, least, last, window, result)
        yield Step(walk.best.copy() if walk.total[BEST] < before else None, stride)
    walk.at[CURSOR] = 0


def windows(problem: Problem, seed: int, starts: list[np.ndarray]) -> Iterator[Step]:
    """Reorder the windows of the best start until none improves."""
    if problem.size < 2:
        return
    walk = new_walk(problem, cheapest(problem, starts), seed)
    before = np.inf
    while True:
        yield from reordered(problem, walk)
        if walk.total[CURRENT] >= before:
            return
        before = walk.total[CURRENT]
