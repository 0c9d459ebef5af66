"""Minimum vertex cuts: the cheapest set of vertices that separates one vertex from others."""

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

Neighbours = Mapping[int, Sequence[int]] | Sequence[Sequence[int]]


def minimum_cut(start: int, neighbours: Neighbours, ends: Collection[int], weights: Mapping[int, int]) -> int:
    """The least total weight of vertices that meet every path from ``start`` to one of ``ends``.

    Vertices are numbers from 0. ``start`` cannot be cut; the ends can. Every path must contain a vertex of finite
    weight. By the duality of cuts and flows, the result is the largest flow that the weights let through.
    """
    flow = _Flow(start, neighbours, ends, weights)
    total = 0
    while path := flow.path():
        total += flow.push(path)
    return total


class _Flow:
    """A flow from the start to the ends. The flow enters vertex x at node x and leaves it from node ~x."""

    def __init__(self, start: int, neighbours: Neighbours, ends: Collection[int], weights: Mapping[int, int]):
        self.start, self.neighbours, self.ends, self.weights = start, neighbours, ends, weights
        self.through: dict[int, int] = {}
        self.entering: dict[int, dict[int, int]] = {}

    def path(self) -> list[int]:
        """The nodes of a shortest augmenting path to an end; empty if there is none."""
        through, entering, weights, ends = self.through, self.entering, self.weights, self.ends
        parent: dict[int, int | None] = dict.fromkeys(self.neighbours[self.start])
        queue = deque(parent)
        while queue:
            node = queue.popleft()
            if node >= 0:
                following = list(entering[node]) if node in entering else []
                if through.get(node, 0) < weights[node]:
                    following.append(~node)
            else:
                if ~node in ends:
                    return _walked(parent, node)
                following = [*self.neighbours[~node]]
                if through.get(~node):
                    following.append(~node)
            for new in following:
                if new not in parent:
                    parent[new] = node
                    queue.append(new)
        return []

    def push(self, path: list[int]) -> int:
        """Send as much flow along the path as fits, and return the amount."""
        steps = list(pairwise(path))
        amount = min(self._room(*step) for step in steps if step[0] >= 0 or step[0] == ~step[1])
        for here, there in steps:
            if here == ~there:
                vertex = max(here, there)
                self.through[vertex] = self.through.get(vertex, 0) + (amount if here >= 0 else -amount)
            elif here < 0:
                inflow = self.entering.setdefault(there, {})
                inflow[here] = inflow.get(here, 0) + amount
            elif self.entering[here][there] == amount:
                del self.entering[here][there]
            else:
                self.entering[here][there] -= amount
        return amount

    def _room(self, here: int, there: int) -> int:
        if here < 0:
            return self.through[there]
        return self.weights[here] - self.through.get(here, 0) if here == ~there else self.entering[here][there]


def _walked(parent: dict[int, int | None], node: int | None) -> list[int]:
    path = []
    while node is not None:
        path.append(node)
        node = parent[node]
    return path[::-1]
