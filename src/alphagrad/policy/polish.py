"""The final order of the policy: the cheapest of its game and of simple orders, after a few sweeps of moves.

A network that looks at one vertex and its neighbours cannot see that forward order is right for one part of a graph and
reverse order for the other. Moving vertices within a whole order can find this, and compiled moves take microseconds.
"""

from contextlib import suppress

import numpy as np

from graphax.presets import BASELINES, preset_vertices

from ..elimination.problem import Problem, TooLarge
from ..elimination.walk import ATTEMPTS, COLD, REACH, mean_price, new_walk, sweep
from .network import Network
from .play import policy_order

# The minimum number of sweeps over the order, and of moves in all sweeps, which gives small graphs more sweeps. More
# moves find better orders; these leave time to play 100 vertices in less than 20 ms.
SWEEPS, MOVES = 6, 2400
# The temperature of the first sweep, relative to the mean price of an elimination.
WARM = 0.4


def answer(problem: Problem, network: Network) -> np.ndarray:
    """An order that never costs more than the policy's game, Markowitz, forward or reverse order. Deterministic."""
    orders = [problem.nodes(preset_vertices(name, problem.graph)) for name in BASELINES]
    with suppress(TooLarge):
        orders.append(policy_order(problem, network))
    best = min(orders, key=problem.key)
    with suppress(TooLarge):
        return min(best, polished(problem, best), key=problem.key)
    return best


def polished(problem: Problem, order: np.ndarray) -> np.ndarray:
    """The best order that a few sweeps of moves reach from ``order``."""
    if problem.size < 2:
        return order
    walk, scale = new_walk(problem, order, 0), mean_price(problem, order)
    each = ATTEMPTS * problem.size
    sweeps = max(SWEEPS, MOVES // each)
    problem.call(sweep, walk, sweeps, WARM * scale, COLD * scale, REACH, sweeps * each)
    return walk.best
