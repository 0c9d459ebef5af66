"""The best order of each task that a training run has found, saved as soon as it is found."""

from collections.abc import Callable, Sequence

import numpy as np

from graphax import Order

from .games import Games
from .run_folder import RunFolder


class BestOrders:
    """The best order and the lower bound of each task."""

    def __init__(self, games: Games, names: Sequence[str], finder: str, seed: int, folder: RunFolder):
        self._games, self._names, self._finder, self._seed, self._folder = games, names, finder, seed, folder
        self._played = [float("inf")] * len(names)
        self.orders: dict[str, Order] = {}
        self.bounds = {name: games.bound(task) for task, name in enumerate(names)}

    def offer(self, costs: Sequence[float], actions: Callable[[], np.ndarray]) -> None:
        """Consider the best games of all tasks. ``actions`` fetches the played actions; it is called only if needed."""
        better = [task for task, cost in enumerate(costs) if cost < self._played[task]]
        if not better:
            return
        played = actions()
        for task in better:
            self._played[task] = costs[task]
            name, graph = self._names[task], self._games.graphs[task]
            vertices = self._games.order(task, played[task].tolist())
            cost = self._games.cost(task, vertices)
            about = {"finder": self._finder, "seed": self._seed, "cost": cost, "bound": self.bounds[name]}
            self.orders[name] = self._folder.keep(name, graph.order(vertices, **about))

    @property
    def costs(self) -> dict[str, float]:
        """The costs of the orders by task, as graphax counts them."""
        return {name: float(order.cost or 0) for name, order in self.orders.items()}

    @property
    def optimal(self) -> bool:
        """Whether every task has an order whose cost equals the lower bound."""
        costs = self.costs
        return all(name in costs and costs[name] <= self.bounds[name] for name in self._names)
