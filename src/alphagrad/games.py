"""Games side by side: the tasks that agents learn, environments that play them, and episodes that are over.

An episode is kept as its actions alone. Its states are had by playing it again, which costs next to nothing compared
to a network, and takes no memory for states that nobody looks at.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from graphax import ComputationGraph, Order

from . import game
from .finders.objective import Objective
from .game import GameState, GameTables, Sizes
from .reward_scaling import Scaling


class Episodes(NamedTuple):
    """Whole games: the task, the actions and the cost of each."""

    tasks: Array
    actions: Array
    cost: Array


class Replay(NamedTuple):
    """Episodes played again, [moves, episodes, ...]: each state, what the move cost, and whether there was one to make."""

    states: GameState
    costs: Array
    active: Array


@dataclass(frozen=True)
class Games:
    """The graphs to find orders for, as games of one size.

    Attributes:
        graphs: one for each task.
        counting, minimize: what an order costs.
        sizes: those of every graph, with padding.
        tables: those of all tasks, stacked.
        references: what reverse mode costs, by which costs are divided to be about 1.
    """

    graphs: tuple[ComputationGraph, ...]
    counting: str
    minimize: str
    sizes: Sizes
    tables: GameTables
    references: np.ndarray

    @staticmethod
    def of(graphs: Sequence[ComputationGraph], counting: str = "raw", minimize: str = "multiplications") -> "Games":
        sizes = game.common_sizes([game.sizes_of(graph) for graph in graphs])
        tables = game.stack_tables([game.make_tables(graph, counting, minimize, sizes) for graph in graphs])
        references = [max(cost_of(graph, "rev", counting, minimize), 1.0) for graph in graphs]
        return Games(tuple(graphs), counting, minimize, sizes, tables, np.array(references, np.float32))

    @property
    def moves(self) -> int:
        """How many moves the longest game can have."""
        return self.sizes.intermediates

    def assigned(self, key: Array, environments: Array, total: int) -> Array:
        """A task for each environment: each task equally often, as far as that is possible."""
        return jax.random.permutation(key, jnp.arange(total) % len(self.graphs))[environments]

    def environments(self, tasks: Array) -> "Environments":
        references = jnp.asarray(self.references)[tasks]
        if len(self.graphs) == 1:
            return Environments(jax.tree.map(lambda leaf: leaf[0], self.tables), None, tasks, references)
        return Environments(jax.tree.map(lambda leaf: leaf[tasks], self.tables), 0, tasks, references)

    def order(self, task: int, actions: Sequence[int]) -> tuple[int, ...]:
        """The vertices that a game eliminated, and then those whose elimination it was spared because it is free."""
        vertices = self.graphs[task].intermediates
        played = dict.fromkeys(vertices[action] for action in actions if action < len(vertices))
        return tuple(dict.fromkeys([*played, *vertices]))

    def cost(self, task: int, order: Order | Sequence[int]) -> float:
        return cost_of(self.graphs[task], order, self.counting, self.minimize)


def cost_of(graph: ComputationGraph, order: Any, counting: str, minimize: str) -> float:
    """What the game charges for an order, counted by graphax."""
    return float(Objective.of(minimize, counting).value(graph.cost(order, counting)))


@dataclass(frozen=True)
class Environments:
    """Games that are played at the same time; ``axis`` is None if they share their tables, being of one task."""

    tables: GameTables
    axis: int | None
    tasks: Array
    references: Array

    def start(self) -> GameState:
        return jax.vmap(game.init, in_axes=self.axis, axis_size=len(self.tasks))(self.tables)

    def step(self, states: GameState, actions: Array) -> tuple[GameState, Array]:
        return self.each(game.step)(states, actions)

    def view(self, states: GameState) -> tuple[Array, Array]:
        """What a network sees: observations, and the vertices that are still there."""
        return self.each(view)(states)

    def each(self, function: Callable) -> Callable:
        """A function of a game's tables and other things, applied to all games."""

        def applied(*args: Any) -> Any:
            axes = (self.axis, *([0] * len(args)))
            return jax.vmap(function, in_axes=axes)(self.tables, *args)

        return applied

    def play(self, choose: Callable[[GameState, Array], tuple[Array, Any]], keys: Array, moves: int) -> Any:
        """Play whole games, with ``choose`` from states and a key for each to actions and notes; episodes and notes."""

        def move(states: GameState, number: Array) -> tuple[GameState, tuple[Array, Any]]:
            actions, notes = choose(states, jax.vmap(jax.random.fold_in, (0, None))(keys, number))
            return self.step(states, actions)[0], (actions, notes)

        states, (actions, notes) = jax.lax.scan(move, self.start(), jnp.arange(moves))
        return Episodes(self.tasks, actions.T, states.cost), notes

    def replay(self, actions: Array) -> Replay:
        """The states that led to these actions, [episodes, moves]."""

        def move(states: GameState, chosen: Array) -> tuple[GameState, Replay]:
            after, costs = self.step(states, chosen)
            return after, Replay(states, costs, ~self.each(game.is_over)(states))

        return jax.lax.scan(move, self.start(), actions.T)[1]


def view(tables: GameTables, state: GameState) -> tuple[Array, Array]:
    return game.observe(tables, state), game.legal_actions(tables, state)


def costs_to_go(costs: Array) -> Array:
    """What is still to be paid at each move, [moves, episodes]."""
    return jnp.flip(jnp.cumsum(jnp.flip(costs, 0), 0), 0)


@dataclass(frozen=True)
class ValueScale:
    """What value networks predict: costs to go, scaled and divided by the scaled reference of the task.

    Predictions are about 1 in the first state of any game. `cost` inverts `target`, and keeps what an untrained network
    says within reason.
    """

    scaling: Scaling
    largest: float = 100.0

    def target(self, cost: Array, reference: Array) -> Array:
        return self.scaling.scale(cost) / self.scaling.scale(reference)

    def cost(self, prediction: Array, reference: Array) -> Array:
        """The predicted cost to go in units of the reference."""
        bounded = jnp.clip(prediction * self.scaling.scale(reference), 0.0, self.scaling.scale(self.largest * reference))
        return self.scaling.unscale(bounded) / reference
