"""Plays the policy: repeatedly eliminates the vertex with the highest score, or samples it."""

from typing import NamedTuple

import numpy as np

from ..elimination.compiling import compiled
from ..elimination.kernels import DEPTH, DONE, eliminate, list_neighbours, price_of
from ..elimination.problem import Problem
from ..elimination.random_numbers import random_unit
from .features import FEATURES, Facts, describe, facts_of
from .network import Network, score

# Indices into `Game.at`.
PLACE, TOUCHED, PRICED, SCORED = range(4)


class Game(NamedTuple):
    """A game in progress. An interrupted kernel resumes from it.

    Attributes:
        facts: the data from which features are computed.
        order: the vertices eliminated so far, with room for the rest.
        done: whether each vertex is eliminated.
        touched: the vertices to update.
        seen: by vertex, the move before which it was touched last.
        near, hidden: work space for neighbours and for the network.
        scores: the score of each vertex.
        at: counters, at the indices named above.
        rng: the state of the random numbers.
        log: the features of all vertices before each move, or empty.
    """

    facts: Facts
    order: np.ndarray
    done: np.ndarray
    touched: np.ndarray
    seen: np.ndarray
    near: np.ndarray
    scores: np.ndarray
    hidden: np.ndarray
    at: np.ndarray
    rng: np.ndarray
    log: np.ndarray


def new_game(problem: Problem, network: Network, seed: int, log: bool = False) -> Game:
    size, nodes = problem.size, len(problem.numbers)
    return Game(
        facts=facts_of(problem),
        order=np.zeros(size, np.int32),
        done=np.zeros(size, np.bool_),
        touched=np.arange(size, dtype=np.int32),
        seen=np.zeros(size, np.int64),
        near=np.zeros((2, 2 * nodes), np.int32),
        scores=np.zeros(size, np.float32),
        hidden=np.zeros((2, len(network.last)), np.float32),
        at=np.array([0, size, 0, 0], np.int64),
        rng=np.random.default_rng(seed).integers(1 << 63, size=1, dtype=np.uint64),
        log=np.zeros((size if log else 0, size, len(FEATURES)), np.float32),
    )


@compiled
def look_again(net, table, prices, network, game):
    """Update prices, features and scores of touched vertices. Returns a status."""
    while game.at[PRICED] < game.at[TOUCHED]:
        vertex = game.touched[game.at[PRICED]]
        price = price_of(net, table, prices, vertex)
        if price < 0:
            return int(-price)
        game.facts.price[vertex] = price
        game.at[PRICED] += 1
    while game.at[SCORED] < game.at[TOUCHED]:
        vertex = game.touched[game.at[SCORED]]
        status = describe(net, table, prices, game.facts, vertex)
        if status != DONE:
            return status
        game.scores[vertex] = score(network, game.facts.features[vertex], game.hidden[0], game.hidden[1])
        game.at[SCORED] += 1
    return DONE


@compiled
def _touch(game, node):
    """Mark ``node`` for an update, if it is a vertex that is not marked yet."""
    if node < len(game.order) and game.seen[node] != game.at[PLACE]:
        game.seen[node] = game.at[PLACE]
        game.touched[game.at[TOUCHED]] = node
        game.at[TOUCHED] += 1


@compiled
def _touch_around(net, game, vertex):
    """Mark the neighbours of the vertex eliminated last, whose prices changed, and theirs, whose features changed."""
    game.at[TOUCHED] = game.at[PRICED] = game.at[SCORED] = 0
    count = list_neighbours(net, vertex, game.near[0])
    for number in range(count):
        _touch(game, game.near[0, number])
    for number in range(count):
        for other in range(list_neighbours(net, game.near[0, number], game.near[1])):
            _touch(game, game.near[1, other])


@compiled
def _chosen(game, temperature):
    """The vertex with the highest score. Noise is added to scores unless the temperature is zero."""
    chosen, highest = -1, -np.inf
    for vertex in range(len(game.order)):
        if not game.done[vertex]:
            value = np.float64(game.scores[vertex])
            if temperature > 0:
                value -= temperature * np.log(-np.log(random_unit(game.rng) * (1 - 1e-12)))
            if value > highest:
                chosen, highest = vertex, value
    return chosen


@compiled
def _record(game, place):
    for vertex in range(len(game.order)):
        for feature in range(game.log.shape[2]):
            game.log[place, vertex, feature] = game.facts.features[vertex, feature]


@compiled
def play(net, table, prices, network, game, temperature):
    """Play to the end. Returns a status. When called again, it resumes where it was interrupted."""
    while net.now[DEPTH] < game.at[PLACE]:
        eliminate(net, table, prices, game.order[net.now[DEPTH]])
    while game.at[PLACE] < len(game.order):
        status = look_again(net, table, prices, network, game)
        if status != DONE:
            return status
        place = game.at[PLACE]
        if len(game.log) > 0:
            _record(game, place)
        before = game.rng[0]
        vertex = _chosen(game, temperature)
        charged = eliminate(net, table, prices, vertex)
        if charged < 0:
            game.rng[0] = before
            return int(-charged)
        game.order[place], game.done[vertex] = vertex, True
        game.at[PLACE] += 1
        _touch_around(net, game, vertex)
    return DONE


def policy_order(problem: Problem, network: Network, seed: int = 0, temperature: float = 0.0) -> np.ndarray:
    """An order that the policy plays. At temperature zero it is deterministic."""
    game = new_game(problem, network, seed)
    problem.call(play, network, game, temperature)
    return game.order
