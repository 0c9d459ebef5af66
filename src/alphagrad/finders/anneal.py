"""Simulated annealing over orders: vertices move within the order, at falling temperatures."""

from collections.abc import Iterator
from itertools import count

import numpy as np

from ..elimination.problem import Problem, TooLarge
from ..elimination.walk import (
    ATTEMPTS,
    BEST,
    COLD,
    CURRENT,
    CURSOR,
    EVALUATIONS,
    HOT,
    REACH,
    SWEEP,
    Walk,
    mean_price,
    new_walk,
    sweep,
)
from .finder import Step, cheapest

# The approximate number of moves between two pauses, at which the search checks the clock.
PAUSE = 4000
# Above this size a walk only descends, with this maximum window: larger orders would never cool down in time.
DESCEND_ONLY, REACH_ON_LARGE = 5000, 64
# The number of different orders that a search starts from.
STARTS = 6


def walked(problem: Problem, walk: Walk, sweeps: int, hot: float, cold: float) -> Iterator[Step]:
    """Anneal along ``walk``, pausing often."""
    walk.at[SWEEP] = walk.at[CURSOR] = 0
    # Resuming after a pause eliminates everything up to the cursor again, so large graphs pause less often.
    pause = max(PAUSE, problem.size)
    reach = REACH_ON_LARGE if problem.size > DESCEND_ONLY else REACH
    while walk.at[SWEEP] < sweeps:
        best, evaluations = walk.total[BEST], walk.at[EVALUATIONS]
        problem.call(sweep, walk, sweeps, hot, cold, reach, evaluations + pause)
        improved = walk.total[BEST] < best
        yield Step(walk.best.copy() if improved else None, int(walk.at[EVALUATIONS] - evaluations))


def anneal(problem: Problem, seed: int, starts: list[np.ndarray]) -> Iterator[Step]:
    """Yield from endless annealing runs, each longer than the last, because the result depends strongly on the start.

    Runs alternate between a start at full temperature, best start first, and the best order so far at a lower one.
    """
    best = cheapest(problem, starts)
    if problem.size < 2:
        return
    keyed = {problem.key(nodes): nodes for nodes in [best, *starts]}
    ranked = sorted((key, nodes) for key, nodes in keyed.items() if key[0] < np.inf)[:STARTS]
    if not ranked:
        raise TooLarge
    for run in count():
        again = run % 2 == 1
        first = ranked[run // 2 % len(ranked)][1]
        walk = new_walk(problem, best if again else first, seed * 1_000_003 + run)
        scale = mean_price(problem, walk.order)
        hot = 0.0 if problem.size > DESCEND_ONLY else HOT * scale * (0.5 if again else 1.0)
        yield from walked(problem, walk, 32 << (run // 2), hot, COLD * scale)
        best = cheapest(problem, [best, walk.best])


def temper(problem: Problem, seed: int, starts: list[np.ndarray]) -> Iterator[Step]:
    """Yield from parallel tempering: walks at fixed temperatures that exchange their orders."""
    if problem.size < 2:
        return
    start = cheapest(problem, starts)
    scale = mean_price(problem, start)
    temperatures = scale * COLD * (HOT / COLD) ** np.linspace(0, 1, 6)
    walks = [new_walk(problem, start, seed * 1_000_003 + number) for number in range(len(temperatures))]
    rng = np.random.default_rng(seed)
    sweeps = 1 + PAUSE // (ATTEMPTS * problem.size)
    for odd in count():
        for walk, temperature in zip(walks, temperatures, strict=True):
            yield from walked(problem, walk, sweeps, temperature, temperature)
        for low in range(odd % 2, len(walks) - 1, 2):
            gain = (1 / temperatures[low] - 1 / temperatures[low + 1]) * float(
                walks[low].total[CURRENT] - walks[low + 1].total[CURRENT]
            )
            if gain >= 0 or rng.random() < np.exp(gain):
                walks[low], walks[low + 1] = walks[low + 1], walks[low]
