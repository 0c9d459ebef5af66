"""Greedy orders: the presets of graphax, and a compiled greedy search with sampled weights.

The compiled search scores a vertex by four quantities: the charge for eliminating it now, the edges that this creates,
whether its value is used more than once, and its position in the program. Markowitz, reverse and forward order, and
"single-use values first" are corners of this space.
"""

import heapq
from collections.abc import Iterator
from functools import partial
from itertools import count

import numpy as np

from graphax.presets import PRESETS, preset_vertices

from ..elimination.compiling import allocating
from ..elimination.kernels import DONE, EDGES, NEXT_OUT, eliminate, list_neighbours, undo
from ..elimination.problem import Problem
from ..elimination.random_numbers import mixed
from .finder import Step, attempted

# Up to this size all presets are tried. They are written in Python.
PRESETS_LIMIT = 1500
# price, new edges, used more than once, late in the program, noise
CORNERS = ((1, 0, 0, 0, 0), (1, 0.5, 0, 0, 0), (0.001, 0, 10, -1, 0), (1, 0, 1, -1, 0))


@allocating
def _score(net, table, prices, weights, seed, vertex):
    """The score of a vertex and `DONE`, or minus infinity and another status if the score is not known yet."""
    edges = net.now[EDGES]
    price = eliminate(net, table, prices, vertex)
    if price < 0:
        return -np.inf, int(-price)
    created = net.now[EDGES] - edges
    undo(net)
    successors = net.edges[net.edges[vertex, NEXT_OUT], NEXT_OUT] != vertex
    late = vertex / len(net.eliminated)
    noise = (mixed(np.uint64(seed) + np.uint64(vertex) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(11)) * 2.0**-53
    score = weights[0] * price + weights[1] * created + weights[2] * successors + weights[3] * late + weights[4] * noise
    return score, DONE


@allocating
def build(net, table, prices, weights, seed, order):
    """Repeatedly eliminate the vertex with the lowest score. Only neighbours are scored again. Returns a status."""
    size = len(order)
    current = np.zeros(size)
    heap = [(0.0, np.int64(0)) for _ in range(0)]
    for vertex in range(size):
        current[vertex], status = _score(net, table, prices, weights, seed, vertex)
        if status != DONE:
            return status
        heap.append((current[vertex], np.int64(vertex)))
    heapq.heapify(heap)
    done = np.zeros(size, np.bool_)
    place = 0
    touched = np.zeros(len(net.mark), np.int32)
    while place < size:
        lowest, chosen = heapq.heappop(heap)
        vertex = int(chosen)
        if done[vertex] or current[vertex] != lowest:
            continue
        charged = eliminate(net, table, prices, vertex)
        if charged < 0:
            return int(-charged)
        order[place] = vertex
        done[vertex] = True
        place += 1
        for number in range(list_neighbours(net, vertex, touched)):
            neighbour = touched[number]
            if neighbour < size:
                score, status = _score(net, table, prices, weights, seed, neighbour)
                if status != DONE:
                    return status
                if score != current[neighbour]:
                    current[neighbour] = score
                    heapq.heappush(heap, (score, np.int64(neighbour)))
    return DONE


def greedy_order(problem: Problem, weights: np.ndarray, seed: int = 0) -> np.ndarray:
    order = np.zeros(problem.size, np.int32)
    problem.call(build, weights, seed, order)
    return order


def presets(problem: Problem, seed: int, starts: list[np.ndarray]) -> Iterator[Step]:
    """Yield the compiled greedy orders with well-known weights, and every preset of graphax for small graphs."""
    yield from corners(problem)
    if problem.size <= PRESETS_LIMIT:
        for name in PRESETS:
            yield Step(problem.nodes(preset_vertices(name, problem.graph)), 1)


def corners(problem: Problem) -> Iterator[Step]:
    for weights in CORNERS:
        yield attempted(partial(greedy_order, problem, np.array(weights, float)))


def greedy(problem: Problem, seed: int, starts: list[np.ndarray]) -> Iterator[Step]:
    """Yield compiled greedy orders endlessly, with well-known and then with random weights."""
    yield from corners(problem)
    rng = np.random.default_rng(seed)
    for number in count():
        weights = np.exp(rng.normal(0.0, 2.0, 5)) * rng.integers(0, 2, 5)
        weights[3] *= rng.choice((-1, 1))
        weights[4] *= 0.3
        weights[0] = max(weights[0], 1e-3)
        yield attempted(partial(greedy_order, problem, weights, seed * 1_000_003 + number))
