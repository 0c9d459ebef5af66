"""The features of a vertex for the policy: its price, the effects of its elimination, and its place.

Changes are local, so after an elimination only vertices nearby are updated. Nothing depends on the size of the graph:
places are relative to its length, and prices to their mean.
"""

from collections import namedtuple
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from graphax import ComputationGraph

from ..elimination.compiling import compiled, inlined
from ..elimination.kernels import DONE, EDGES, LIVE, NEXT_IN, NEXT_OUT, SOURCE, TARGET, eliminate, price_of, undo
from ..elimination.problem import Problem

# Features of both sides are adjacent: first the side before the vertex, then the side after it.
DYNAMIC = (
    "price", "slack", "predecessors", "successors", "one_predecessor", "one_successor", "created", "merged", "live",
    "change_before", "change_after", "largest_change", "smallest_change", "cheapest_neighbour", "price_before",
    "price_after", "slack_before", "slack_after", "inputs_before", "outputs_after",
)  # fmt: skip
STATIC = ("bound", "position", "elements", "inputs", "outputs", "depth", "height")
FEATURES = (*DYNAMIC, *STATIC)
# The index of each feature by name. The compiler knows these numbers.
AT: Any = namedtuple("Places", FEATURES)(*range(len(FEATURES)))
# The mean price of a vertex in the whole graph is encoded as the logarithm of this plus one.
UNITS = 4.0
# The encoded price of the cheapest neighbour if there is none.
DEAR = 8.0


class Facts(NamedTuple):
    """The data from which features are computed, by vertex.

    Attributes:
        unit: the mean price of a vertex in the whole graph, the unit of prices.
        bound: the lower bound on the cost of each vertex.
        price: the current cost of each vertex.
        features: the features as of the last update, of shape [vertices, features].
    """

    unit: np.ndarray
    bound: np.ndarray
    price: np.ndarray
    features: np.ndarray


def facts_of(problem: Problem) -> Facts:
    """The facts of the whole graph, with prices but before any vertex is described."""
    # The network that ships was trained with these bounds.
    bound, price = problem.vertex_bounds(known_is_free=True), np.zeros(problem.size)
    problem.call(_price_all, price)
    unit = max(float(price.mean()), 1e-3) if problem.size else 1.0
    features = np.zeros((problem.size, len(FEATURES)), np.float32)
    features[:, len(DYNAMIC) :] = _static(problem.graph, bound / unit)
    return Facts(np.array([unit]), bound, price, features)


@compiled
def _price_all(net, table, prices, into):
    for vertex in range(len(into)):
        price = price_of(net, table, prices, vertex)
        if price < 0:
            return int(-price)
        into[vertex] = price
    return DONE


def _static(graph: ComputationGraph, bound: np.ndarray) -> np.ndarray:
    """The features that do not change, in the order of `STATIC`."""
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
    """In one direction, the number of ends that each vertex reaches, and the relative length of its longest path."""
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
    """The logarithm of one plus the magnitude of a number, with its sign."""
    return np.log1p(value) if value >= 0 else -np.log1p(-value)


@inlined
def _compressed_price(facts, price):
    return _compressed(price * UNITS / facts.unit[0])


@compiled
def _look(net, table, prices, facts, vertex, side):
    """Write the features before (``side`` is 0) or after (1) the vertex that was just eliminated.

    Returns a status and the number of neighbours.
    """
    row, following = facts.features[vertex], NEXT_IN if side == 0 else NEXT_OUT
    degree, ends, change, paid, slack = 0, 0, 0.0, 0.0, 0.0
    edge = net.edges[vertex, following]
    while edge != vertex:
        node = net.edges[edge, SOURCE if side == 0 else TARGET]
        degree += 1
        if node >= len(facts.price):
            ends += 1
        else:
            after = price_of(net, table, prices, node)
            if after < 0:
                return int(-after), degree
            difference = after - facts.price[node]
            change += difference
            paid += facts.price[node]
            slack += max(facts.price[node] - facts.bound[node], 0.0)
            row[AT.largest_change] = max(row[AT.largest_change], difference)
            row[AT.smallest_change] = min(row[AT.smallest_change], difference)
            row[AT.cheapest_neighbour] = min(row[AT.cheapest_neighbour], facts.price[node])
        edge = net.edges[edge, following]
    row[AT.predecessors + side] = np.log1p(degree)
    row[AT.one_predecessor + side] = 1.0 if degree == 1 else 0.0
    row[AT.change_before + side] = _compressed_price(facts, change)
    row[AT.price_before + side] = _compressed_price(facts, paid)
    row[AT.slack_before + side] = _compressed_price(facts, slack)
    row[AT.inputs_before + side] = np.log1p(ends)
    return DONE, degree


@compiled
def describe(net, table, prices, facts, vertex):
    """Write the current features of ``vertex``. The prices of its neighbours must be known. Returns a status."""
    row, edges, live = facts.features[vertex], net.now[EDGES], net.now[LIVE]
    price = eliminate(net, table, prices, vertex)
    if price < 0:
        return int(-price)
    created, live = net.now[EDGES] - edges, net.now[LIVE] - live
    row[AT.largest_change], row[AT.smallest_change], row[AT.cheapest_neighbour] = 0.0, 0.0, np.inf
    status, predecessors = _look(net, table, prices, facts, vertex, 0)
    successors = 0
    if status == DONE:
        status, successors = _look(net, table, prices, facts, vertex, 1)
    undo(net)
    row[AT.price] = _compressed_price(facts, price)
    row[AT.slack] = _compressed_price(facts, max(price - facts.bound[vertex], 0.0))
    row[AT.created], row[AT.merged] = np.log1p(created), np.log1p(max(predecessors * successors - created, 0))
    row[AT.live] = _compressed(float(live))
    row[AT.largest_change] = _compressed_price(facts, row[AT.largest_change])
    row[AT.smallest_change] = _compressed_price(facts, row[AT.smallest_change])
    row[AT.cheapest_neighbour] = min(_compressed_price(facts, row[AT.cheapest_neighbour]), DEAR)
    return status
