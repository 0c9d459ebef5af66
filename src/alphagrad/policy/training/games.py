"""Games that the policy plays to learn from."""

from collections.abc import Sequence

import numpy as np

from ...elimination.problem import Problem
from ..network import Network
from ..play import new_game, play
from .learn import Moves
from .lessons import padded

# How many moves of a game are learnt from.
MOVES = 24


def played_moves(problem: Problem, network: Network, games: int, seed: Sequence[int]) -> Moves:
    """Some moves of several games on one graph; a game is as good as it is cheaper than the others."""
    rng = np.random.default_rng(seed)
    played = [new_game(problem, network, int(rng.integers(1 << 31)), log=True) for _ in range(games)]
    for game in played:
        problem.call(play, network, game, 1.0)
    costs = np.array([problem.value(game.order) for game in played], float)
    # Where games cost nearly the same, what differs is not worth learning.
    advantages = (costs.mean() - costs) / (costs.std() + 0.002 * costs.mean() + 1e-6)
    features, legal, chosen = [], [], []
    for game in played:
        for place in rng.integers(0, problem.size, MOVES):
            left = np.ones(problem.size, bool)
            left[game.order[:place]] = False
            features.append(game.log[place])
            legal.append(left)
            chosen.append(game.order[place])
    weights = np.repeat(advantages, MOVES).astype(np.float32)
    return Moves(padded(np.stack(features)), padded(np.stack(legal)), np.array(chosen), weights)
