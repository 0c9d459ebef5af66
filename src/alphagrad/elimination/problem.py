"""A graph and an objective, prepared for the compiled kernels."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from graphax import ComputationGraph, Cost, Order
from graphax.bound import vertex_bounds

from ..errors import SearchError
from .hash_table import HashedStructures
from .kernels import ADDITIONS, DONE, FULL, LIVE, MULTIPLICATIONS, Net, Prices, empty_net, evaluate, load, rewind
from .objective import Objective

# The maximum number of entries in the log of eliminations. Orders with more fill-in are not worth their memory.
LARGEST_LOG = 1 << 23
# A small charge per addition, so that among otherwise equal orders the one with fewer additions is found.
TIE_BREAK = 1e-6


class TooLarge(SearchError):
    """An order creates more edges than there is memory set aside for."""

    def __init__(self) -> None:
        super().__init__(f"eliminating in this order creates more than {LARGEST_LOG:,} edges; start from a better one")


class Problem:
    """The problem for finders. Intermediate vertices are nodes 0, 1, ... in ascending order; ends come after them."""

    def __init__(self, graph: ComputationGraph, objective: Objective):
        self.graph = graph
        self.objective = objective
        self.structures = HashedStructures(objective.counting)
        self.size = len(graph.intermediates)
        ends = [number for number in graph.vertices if graph.vertices[number].kind != "intermediate"]
        self.numbers = np.array([*graph.intermediates, *ends], np.int64)
        self._index = {int(number): node for node, number in enumerate(self.numbers)}
        edges = sorted(graph.edges.items())
        self._edges = tuple(
            np.array(column, np.int32)
            for column in (
                [self._index[source] for (_, source), _ in edges],
                [self._index[target] for (target, _), _ in edges],
                [self.structures.number(structure) for _, structure in edges],
            )
        )
        self.net = self._new_net(2 * len(edges) + 64)
        self._stored_first = int(self.net.now[LIVE])
        self.plain_prices = objective.prices(self._stored_first)
        self.prices = self.plain_prices._replace(addition=self.plain_prices.addition + TIE_BREAK)

    def _new_net(self, room: int) -> Net:
        net = empty_net(len(self.numbers), self.size, len(self._edges[0]), room)
        load(net, self.structures.table, *self._edges)
        return net

    def call(self, kernel: Callable, *args: Any, prices: Prices | None = None) -> None:
        """Run a kernel from the initial graph until it is done, adding products and sums that it does not know yet.

        The kernel keeps the state that must survive interruptions in its own arguments.
        """
        while True:
            rewind(self.net, 0)
            status = kernel(self.net, self.structures.table, prices or self.prices, *args)
            if status == DONE:
                return
            if status == FULL and len(self.net.log) >= LARGEST_LOG:
                raise TooLarge
            if status == FULL:
                self.net = self._new_net(2 * len(self.net.log))
            else:
                self.structures.learn()

    def nodes(self, vertices: Iterable[int]) -> np.ndarray:
        return np.array([self._index[vertex] for vertex in vertices], np.int32)

    def vertices(self, nodes: Iterable[int]) -> tuple[int, ...]:
        return tuple(int(self.numbers[node]) for node in nodes)

    def cost(self, nodes: np.ndarray) -> Cost:
        """The cost of eliminating in this order, with the same numbers as `graphax.Plan.cost`."""
        if self.graph.has_loops:
            # Kernels only know products of two edges. Several edges pass through a loop together, for less than
            # separately.
            return self.graph.cost(self.vertices(nodes), self.objective.counting)
        self.charged(nodes)
        peak = int(self.net.peak[: self.size].max(initial=self._stored_first))
        multiplications, additions = int(self.net.now[MULTIPLICATIONS]), int(self.net.now[ADDITIONS])
        return Cost(multiplications, additions, peak, self.objective.counting)

    def charged(self, nodes: np.ndarray) -> float:
        """The price of an order in the kernels' measure, without the tie-breaking charge."""
        price = np.zeros(self.size)
        self.call(evaluate, nodes, price, np.zeros(self.size, np.uint64), prices=self.plain_prices)
        return float(price.sum())

    def key(self, nodes: np.ndarray) -> tuple[float, int, int]:
        """The sort key of an order: the objective, then additions, then the peak."""
        try:
            cost = self.cost(nodes)
        except TooLarge:
            return float("inf"), 0, 0
        return self.objective.value(cost), cost.additions, cost.peak

    def value(self, nodes: np.ndarray) -> float:
        return self.key(nodes)[0]

    def value_of(self, order: Order) -> float:
        """The objective of an order, including the orders of its bodies."""
        if order.bodies:
            return self.objective.value(self.graph.cost(order, self.objective.counting))
        return self.value(self.nodes(order.vertices))

    @property
    def scalar(self) -> bool:
        """Whether every vertex is a single number."""
        return all(vertex.shape == () for vertex in self.graph.vertices.values())

    def vertex_bounds(self, known_is_free: bool = False) -> np.ndarray:
        """The lower bound on the cost of each vertex, in every order; see `graphax.bound.vertex_bounds`."""
        bounds = vertex_bounds(self.graph, self.objective.counting, known_is_free)
        return self.objective.weights[0] * np.array([bounds[vertex] for vertex in self.graph.intermediates], float)
