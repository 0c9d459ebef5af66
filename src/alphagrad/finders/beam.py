"""Beam search: the most promising sets of eliminated vertices, level by level."""

from collections.abc import Iterator
from itertools import count

import numpy as np

from ..elimination.compiling import compiled
from ..elimination.kernels import DONE, eliminate, price_of, rewind
from ..elimination.problem import Problem
from .finder import Step, cheapest


@compiled
def expand(net, table, prices, prefixes, depth, done, charged, at):
    """Compute the price of eliminating each remaining vertex after each prefix. Returns a status."""
    while at[0] < len(prefixes):
        beam = at[0]
        rewind(net, 0)
        for place in range(depth):
            price = eliminate(net, table, prices, prefixes[beam, place])
            if price < 0:
                return int(-price)
        for vertex in range(charged.shape[1]):
            charged[beam, vertex] = np.inf
            if not done[beam, vertex]:
                price = price_of(net, table, prices, vertex)
                if price < 0:
                    return int(-price)
                charged[beam, vertex] = price
        at[0] += 1
    return DONE


def beam_orders(problem: Problem, seed: int, width: int, start: np.ndarray | None = None) -> Iterator[Step]:
    """One beam search, whose last step has its best order.

    The sets that ``start`` eliminates always stay in the beam, so the result is never worse than ``start``.
    """
    size = problem.size
    rng = np.random.default_rng(seed)
    # Of two ways to eliminate the same set only the cheaper is kept. Sets are identified by a sum of random words.
    words = rng.integers(1 << 63, size=size, dtype=np.uint64)
    bounds = problem.vertex_bounds()
    prefixes, done = np.zeros((1, size), np.int32), np.zeros((1, size), bool)
    score, key = np.zeros(1), np.zeros(1, np.uint64)
    for depth in range(size):
        charged = np.empty((len(prefixes), size))
        problem.call(expand, prefixes, depth, done, charged, np.zeros(1, np.int64))
        # The cost of a vertex beyond its bound is lost for good.
        scores = (score[:, None] + charged - bounds).ravel()
        jitter = rng.random(len(scores)) * 1e-6
        ranked = np.argsort(scores + jitter, kind="stable")[: min(16 * width, np.isfinite(scores).sum())]
        keys = key[ranked // size] + words[ranked % size]
        _, first = np.unique(keys, return_index=True)
        chosen = ranked[np.sort(first)[:width]]
        if start is not None:
            chosen = _with_start(chosen, start[: depth + 1], key, words)
        parent, vertex = np.divmod(chosen, size)
        score, key = scores[chosen], key[parent] + words[vertex]
        prefixes, done = prefixes[parent], done[parent]
        prefixes[:, depth] = vertex
        done[np.arange(len(done)), vertex] = True
        yield Step(prefixes[0].copy() if depth == size - 1 else None, charged.shape[0] * (size - depth))


def _with_start(chosen: np.ndarray, start: np.ndarray, key: np.ndarray, words: np.ndarray) -> np.ndarray:
    """The chosen extensions of the beam, including one to the set of vertices in ``start``."""
    size = len(words)
    before, after = (words[part].sum(dtype=np.uint64) for part in (start[:-1], start))
    if after in key[chosen // size] + words[chosen % size]:
        return chosen
    return np.append(chosen, np.flatnonzero(key == before)[0] * size + start[-1])


def beam(problem: Problem, seed: int, starts: list[np.ndarray]) -> Iterator[Step]:
    """Yield from endless beam searches, each twice as wide as the last, with the best start in each."""
    if problem.size < 2:
        return
    start = cheapest(problem, starts) if starts else None
    for number in count():
        width = min(1 << number, max(1, (1 << 22) // problem.size))
        yield from beam_orders(problem, seed + number, width, start)
