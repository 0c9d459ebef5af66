"""What the policy sees of a vertex: its price, what its elimination does to its neighbours, and where it stands.

What changes is local, so that after an elimination only vertices nearby are looked at again. Nothing depends on how
large the graph is: places are relative to its length, and prices to their mean.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from graphax import ComputationGraph

from ..elimination.compiling import compiled, inlined
from ..elimination.kernels import DONE, EDGES, LIVE, NEXT_IN, NEXT_OUT, SOURCE, TARGET, eliminate, price_of, undo
from ..elimination.problem import Problem

DYNAMIC = (
    "price",
    "slack",
    "predecessors",
    "successors",
    "one_predecessor",
    "one_successor",
    "created",
    "merged",
    "live",
    "change_before",
    "change_after",
    "largest_change",
    "smallest_change",
    "cheapest_neighbour",
    "price_before",
    "price_after",
    "slack_before",
    "slack_after",
    "inputs_before",
    "outputs_after",
)
STATIC = ("bound", "position", "elements", "inputs", "outputs", "depth", "height")
FEATURES = (*DYNAMIC, *STATIC)
# Places in a row of features. What is told of both sides stands side by side: first before, then after the vertex.
PRICE = DYNAMIC.index("price")
SLACK = DYNAMIC.index("slack")
PREDECESSORS = DYNAMIC.index("predecessors")
ONE_PREDECESSOR = DYNAMIC.index("one_predecessor")
CREATED = DYNAMIC.index("created")
MERGED = DYNAMIC.index("merged")
LIVE_CHANGE = DYNAMIC.index("live")
CHANGE_BEFORE = DYNAMIC.index("change_before")
LARGEST_CHANGE = DYNAMIC.index("largest_change")
SMALLEST_CHANGE = DYNAMIC.index("smallest_change")
CHEAPEST = DYNAMIC.index("cheapest_neighbour")
PRICE_BEFORE = DYNAMIC.index("price_before")
SLACK_BEFORE = DYNAMIC.index("slack_before")
INPUTS_BEFORE = DYNAMIC.index("inputs_before")
# The mean price of a vertex of the whole graph is described as the logarithm of this, plus one.
UNITS = 4.0
# How the price of the cheapest neighbour is described where there is none.
DEAR = 8.0


class Board(NamedTuple):
    """The facts from which features are made, by vertex.

    Attributes:
        unit: the mean price of a vertex in the whole graph, in which prices are described.
        bound: what each vertex costs at least.
        price: what it costs now.
        features: as described last, [vertices, features].
    """

    unit: np.ndarray
    bound: np.ndarray
    price: np.ndarray
    features: np.ndarray


def new_board(problem: Problem) -> Board:
    """The board of the whole graph, with prices, before any vertex is described."""
    bound, price = problem.vertex_bounds(), np.zeros(problem.size)
    problem.call(_price_all, price)
    unit = max(float(price.mean()), 1e-3) if problem.size else 1.0
    features = np.zeros((problem.size, len(FEATURES)), np.float32)
    features[:, len(DYNAMIC) :] = _static(problem.graph, bound / unit)
    return Board(np.array([unit]), bound, price, features)


@compiled
def _price_all(net, table, prices, into):
    for vertex in range(len(into)):
        price = price_of(net, table, prices, vertex)
        if price < 0:
            return int(-price)
        into[vertex] = price
    return DONE


def _static(graph: ComputationGraph, bound: np.ndarray) -> np.ndarray:
    """What does not change, in the order of `STATIC`."""
    inner = graph.intermediates
    sources: dict[int, list[int]] = {number: [] for number in graph.vertices}
    targets: dict[int, list[int]] = {number: [] for number in graph.vertices}
    for target, source in graph.edges:
        sources[target].append(source)
        targets[source].append(target)
    inputs, depth = _looking(inner, sources)
    outputs, height = _looking(inner[::-1], targets)
    columns = (
        np.log1p(UNITS * bound),
        np.arange(len(inner)) / max(len(inner), 1),
        np.log1p([float(np.prod(graph.vertices[number].shape)) for number in inner]),
        np.log1p([inputs[number] for number in inner]),
        np.log1p([outputs[number] for number in inner]),
        [depth[number] for number in inner],
        [height[number] for number in inner],
    )
    return np.stack([np.asarray(column, np.float32) for column in columns], axis=1)


def _looking(inner: Sequence[int], neighbours: dict[int, list[int]]) -> tuple[dict[int, int], dict[int, float]]:
    """In one direction, how many ends each vertex sees, and the longest way to one of them relative to all others'."""
    seen: dict[int, int] = {}
    longest: dict[int, int] = {}
    for number in inner:
        seen[number], longest[number] = 0, 0
        for neighbour in neighbours[number]:
            if neighbour not in seen:
                seen[neighbour], longest[neighbour] = 1 << len(seen), 0
            seen[number] |= seen[neighbour]
            longest[number] = max(longest[number], longest[neighbour] + 1)
    most = max(longest.values(), default=0) or 1
    return {n: bits.bit_count() for n, bits in seen.items()}, {n: length / most for n, length in longest.items()}


@inlined
def _compressed(value):
    """The logarithm of a number of either sign."""
    return np.log1p(value) if value >= 0 else -np.log1p(-value)


@inlined
def _compressed_price(board, price):
    return _compressed(price * UNITS / board.unit[0])


@compiled
def _look(net, table, prices, board, vertex, side):
    """Write what stands before (``side`` is 0) or after (1) the vertex that was just eliminated. Returns a status and
    how many neighbours there are."""
    row, following = board.features[vertex], NEXT_IN if side == 0 else NEXT_OUT
    degree, ends, change, paid, slack = 0, 0, 0.0, 0.0, 0.0
    edge = net.edges[vertex, following]
    while edge != vertex:
        node = net.edges[edge, SOURCE if side == 0 else TARGET]
        degree += 1
        if node >= len(board.price):
            ends += 1
        else:
            after = price_of(net, table, prices, node)
            if after < 0:
                return int(-after), degree
            difference = after - board.price[node]
            change += difference
            paid += board.price[node]
            slack += max(board.price[node] - board.bound[node], 0.0)
            row[LARGEST_CHANGE] = max(row[LARGEST_CHANGE], difference)
            row[SMALLEST_CHANGE] = min(row[SMALLEST_CHANGE], difference)
            row[CHEAPEST] = min(row[CHEAPEST], board.price[node])
        edge = net.edges[edge, following]
    row[PREDECESSORS + side] = np.log1p(degree)
    row[ONE_PREDECESSOR + side] = 1.0 if degree == 1 else 0.0
    row[CHANGE_BEFORE + side] = _compressed_price(board, change)
    row[PRICE_BEFORE + side] = _compressed_price(board, paid)
    row[SLACK_BEFORE + side] = _compressed_price(board, slack)
    row[INPUTS_BEFORE + side] = np.log1p(ends)
    return DONE, degree


@compiled
def describe(net, table, prices, board, vertex):
    """Write the features of ``vertex`` as the graph is now; the prices of its neighbours must be known. Returns a
    status."""
    row, edges, live = board.features[vertex], net.now[EDGES], net.now[LIVE]
    price = eliminate(net, table, prices, vertex)
    if price < 0:
        return int(-price)
    created, live = net.now[EDGES] - edges, net.now[LIVE] - live
    row[LARGEST_CHANGE], row[SMALLEST_CHANGE], row[CHEAPEST] = 0.0, 0.0, np.inf
    status, predecessors = _look(net, table, prices, board, vertex, 0)
    successors = 0
    if status == DONE:
        status, successors = _look(net, table, prices, board, vertex, 1)
    undo(net)
    row[PRICE] = _compressed_price(board, price)
    row[SLACK] = _compressed_price(board, max(price - board.bound[vertex], 0.0))
    row[CREATED], row[MERGED] = np.log1p(created), np.log1p(max(predecessors * successors - created, 0))
    row[LIVE_CHANGE] = _compressed(float(live))
    row[LARGEST_CHANGE] = _compressed_price(board, row[LARGEST_CHANGE])
    row[SMALLEST_CHANGE] = _compressed_price(board, row[SMALLEST_CHANGE])
    row[CHEAPEST] = min(_compressed_price(board, row[CHEAPEST]), DEAR)
    return status
