"""Training data of the policy: generated functions, the losses of moves in states of their games, and games.

The order of a teacher, found by search, gives a good continuation from any state: the rest of the order. The loss of a
move is how much more the game costs if the move is made first and the rest follows the order of the teacher.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from graphax import ComputationGraph, build_graph

from ...elimination.compiling import compiled
from ...elimination.kernels import DEPTH, DONE, eliminate, evaluate, rewind
from ...elimination.objective import Objective
from ...elimination.problem import Problem
from ...finders.search import search
from ...tasks.random_functions import DEFAULT, RandomFunction, random_function
from ..network import Network
from ..play import Game, look_again, new_game, play
from .random_networks import random_network

# Seeds of functions to learn from begin here. Lower seeds are reserved for measurements.
FIRST_SEED = 1_000_000
# A function that is too small or too large is replaced by the one at this offset of the seed.
REPLACEMENT = 500_000_000
# The maximum number of vertices of a function to learn from.
LARGEST = 140
# The number of moves per game to learn from.
MOVES = 24


class Lesson(NamedTuple):
    """States of games, padded to [states, vertices, features], the loss of each move, and which moves are legal.

    Losses are relative to the mean price of a move of the teacher.
    """

    features: np.ndarray
    losses: np.ndarray
    legal: np.ndarray


class Moves(NamedTuple):
    """Moves of the policy's own games: the state before, the move, and the advantage of the game.

    The advantage is how much better the game was than others on the same graph.
    """

    features: np.ndarray
    legal: np.ndarray
    chosen: np.ndarray
    advantages: np.ndarray


def training_graph(seed: int) -> ComputationGraph:
    """The graph of a generated function or neural network; sometimes of its sum of squares.

    Functions are of scalars or arrays, narrow or wide, with operations in varying proportions.
    """
    rng = np.random.default_rng([seed, 1])
    if rng.random() < 0.2:
        function, args = random_network(seed)
    else:
        generated = _random_function(seed, rng)
        function, args = generated, generated.args
    if rng.random() < 0.1:
        function = partial(_sum_of_squares, function)
    graph = build_graph(function, *args, argnums=tuple(range(len(args))))
    size = len(graph.intermediates)
    return graph if 3 <= size <= LARGEST else training_graph(seed + REPLACEMENT)


def _random_function(seed: int, rng: np.random.Generator) -> RandomFunction:
    probabilities: Mapping[str, float] = {name: p * float(rng.gamma(1.0) + 0.05) for name, p in DEFAULT.items()}
    ranks = [(0,), (0, 1), (0, 1, 2), (1, 2)][int(rng.choice(4, p=[0.4, 0.2, 0.3, 0.1]))]
    intermediates = int(rng.integers(10, LARGEST - 20))
    return random_function(
        FIRST_SEED + seed,
        inputs=int(rng.integers(1, 1 + min(12, intermediates // 3))),
        outputs=int(rng.integers(1, 1 + min(10, intermediates // 3))),
        intermediates=intermediates,
        ranks=ranks,
        sizes=(2, 3, 4) if rng.random() < 0.7 else (2, 5, 8),
        probabilities=probabilities,
    )


def _sum_of_squares(function: Callable, *args: Any) -> Any:
    return sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(function(*args)))


def training_problem(seed: int) -> Problem:
    return Problem(training_graph(seed), Objective(counting=("raw", "folded")[seed % 2]))


def taught(problem: Problem, seconds: float) -> np.ndarray:
    """The order of the teacher, found by search."""
    objective = problem.objective
    found = search(problem.graph, budget=seconds, counting=objective.counting, record=False)
    return problem.nodes(found.order.vertices)


@compiled
def _survey(net, table, prices, network, game, order, cursor, price, digest, losses):
    """In the state before ``cursor``, describe all remaining vertices and compute the loss of eliminating each next."""
    if net.now[DEPTH] == 0:
        status = evaluate(net, table, prices, order, price, digest)
        if status != DONE:
            return status
        rewind(net, cursor)
    status = look_again(net, table, prices, network, game)
    if status != DONE:
        return status
    for place in range(cursor, len(order)):
        status, losses[order[place]] = _loss(net, table, prices, order, cursor, place, price, digest)
        rewind(net, cursor)
        if status != DONE:
            return status
    return DONE


@compiled
def _loss(net, table, prices, order, cursor, place, price, digest):
    """The extra cost of eliminating the vertex at ``place`` first. Returns a status and this loss."""
    loss = 0.0
    charged = eliminate(net, table, prices, order[place])
    for later in range(cursor, len(order)):
        if charged < 0:
            return int(-charged), 0.0
        loss += charged - price[later]
        if later >= place and net.digest[0] == digest[later]:
            break
        following = later if later < place else later + 1
        if following < len(order):
            charged = eliminate(net, table, prices, order[following])
    return DONE, loss


def lesson(problem: Problem, teacher: np.ndarray, network: Network, states: int, seed: Sequence[int]) -> Lesson:
    """A lesson of states from the teacher's game and, every other one, from the policy's own game.

    The latter teach the policy to continue from its own mistakes.
    """
    rng = np.random.default_rng(seed)
    size = problem.size
    own = new_game(problem, network, int(rng.integers(1 << 31)))
    problem.call(play, network, own, 1.0)
    scale = max(problem.value(teacher), 1.0) / size
    parts = []
    for number in range(states):
        cursor = int(rng.integers(0, size - 1))
        start = (teacher if number % 2 == 0 else own.order)[:cursor]
        order = np.concatenate([start, teacher[~np.isin(teacher, start)]]).astype(np.int32)
        game, losses = surveyed(problem, network, order, cursor)
        parts.append((game.facts.features, losses / scale, ~game.done))
    return Lesson(*(padded(np.stack(part)) for part in zip(*parts, strict=True)))


def surveyed(problem: Problem, network: Network, order: np.ndarray, cursor: int) -> tuple[Game, np.ndarray]:
    """A game in which the first ``cursor`` vertices of ``order`` are eliminated, and the losses of the others.

    The remaining vertices are described.
    """
    size = len(order)
    game, losses = new_game(problem, network, 0), np.zeros(size)
    game.done[order[:cursor]] = True
    game.touched[: size - cursor] = order[cursor:]
    game.at[:] = cursor, size - cursor, 0, 0
    problem.call(_survey, network, game, order, cursor, np.zeros(size), np.zeros(size, np.uint64), losses)
    return game, losses


def played_moves(problem: Problem, network: Network, games: int, seed: Sequence[int]) -> Moves:
    """Some moves of several games on one graph. The advantage of a game is its saving relative to the mean cost."""
    rng = np.random.default_rng(seed)
    played = [new_game(problem, network, int(rng.integers(1 << 31)), log=True) for _ in range(games)]
    for game in played:
        problem.call(play, network, game, 1.0)
    costs = np.array([problem.value(game.order) for game in played], float)
    # If games cost nearly the same, their differences are not worth learning.
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


def padded(states: np.ndarray) -> np.ndarray:
    """States of shape [states, vertices, ...], padded to the largest function."""
    room = [(0, 0), (0, LARGEST - states.shape[1])] + [(0, 0)] * (states.ndim - 2)
    return np.pad(states, room).astype(bool if states.dtype == bool else np.float32)
