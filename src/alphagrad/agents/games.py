"""Games side by side: the tasks that agents learn, environments that play them, and episodes that are over.

An episode is kept as its actions alone. Its states are had by playing it again, which costs next to nothing compared
to a network, and takes no memory for states that nobody looks at.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from graphax import ComputationGraph

from .. import game
from ..elimination.objective import Objective
from ..game import GameState, GameTables, Sizes
from .reward_scaling import IDENTITY, LOGARITHM, ROOT

SCALINGS = {"root": ROOT, "log": LOGARITHM, "linear": IDENTITY}


class Episodes(NamedTuple):
    """Whole games: the task, the actions and the cost of each."""

    tasks: Array
    actions: Array
    cost: Array


class Best(NamedTuple):
    """The best game of each task so far: what it cost, infinity if there is none, and its actions."""

    cost: Array
    actions: Array


class Trajectories(NamedTuple):
    """Episodes played again, [moves, episodes, ...]: what was seen of states, the costs of moves, and whether there was
    a move to make."""

    seen: Any
    costs: Array
    active: Array


class Boards(NamedTuple):
    """The games of all tasks as arrays: their tables, stacked."""

    tables: GameTables

    @property
    def references(self) -> Array:
        """What reverse mode costs in each. Costs are divided by that to be about 1."""
        return self.tables.reference

    @property
    def sizes(self) -> Sizes:
        return self.tables.sizes

    def assigned(self, key: Array, environments: Array, total: int) -> Array:
        """A task for each environment: each task equally often, as far as that is possible."""
        return jax.random.permutation(key, jnp.arange(total) % len(self.references))[environments]

    def environments(self, tasks: Array) -> "Environments":
        if len(self.references) == 1:
            return Environments(jax.tree.map(lambda leaf: leaf[0], self.tables), None, tasks, self.references[tasks])
        return Environments(jax.tree.map(lambda leaf: leaf[tasks], self.tables), 0, tasks, self.references[tasks])


@dataclass(frozen=True, eq=False)
class Games:
    """The graphs to find orders for, as games of one size.

    Attributes:
        graphs: one for each task.
        objective: what an order costs.
        boards: the games.
    """

    graphs: tuple[ComputationGraph, ...]
    objective: Objective
    boards: Boards

    @staticmethod
    def of(
        graphs: Sequence[ComputationGraph],
        counting: str = "raw",
        minimize: Any = "multiplications",
        sizes: Sizes | None = None,
    ) -> "Games":
        """Games padded to ``sizes``, or else to the smallest sizes that hold all graphs."""
        objective = Objective.of(minimize, counting)
        room = sizes or game.common_sizes([game.sizes_of(graph) for graph in graphs])
        tables = game.stack_tables([game.make_tables(graph, counting, minimize, room) for graph in graphs])
        return Games(tuple(graphs), objective, Boards(tables))

    def order(self, task: int, actions: Sequence[int]) -> tuple[int, ...]:
        """The vertices that a game eliminated."""
        vertices = self.graphs[task].intermediates
        return tuple(dict.fromkeys(vertices[action] for action in actions if action < len(vertices)))

    def cost(self, task: int, order: Sequence[int]) -> float:
        """What the game charges for an order, counted by graphax."""
        return self.objective.value(self.graphs[task].cost(order, self.objective.counting))

    def bound(self, task: int) -> float:
        """A lower bound on the cost of every order of a task."""
        bound = self.graphs[task].lower_bound
        if self.objective.minimize != "weighted":
            return bound(self.objective.minimize, self.objective.counting)
        return self.objective.weights[0] * bound("multiplications", self.objective.counting)


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

    def each(self, function: Callable) -> Callable:
        """A function of a game's tables and other things, applied to all games."""

        def applied(*args: Any) -> Any:
            axes = (self.axis, *([0] * len(args)))
            return jax.vmap(function, in_axes=axes)(self.tables, *args)

        return applied

    def play(self, choose: Callable[[GameState, Array], tuple[Array, Any]], keys: Array, moves: int) -> Any:
        """Play whole games, with ``choose`` from states and a key for each to actions and notes: episodes, and the
        notes about each move, [games, moves, ...]."""

        def move(states: GameState, number: Array) -> tuple[GameState, tuple[Array, Any]]:
            actions, notes = choose(states, jax.vmap(jax.random.fold_in, (0, None))(keys, number))
            return self.step(states, actions)[0], (actions, notes)

        states, (actions, notes) = jax.lax.scan(move, self.start(), jnp.arange(moves))
        return Episodes(self.tasks, actions.T, states.cost), jax.tree.map(lambda leaf: leaf.swapaxes(0, 1), notes)

    def replay(self, actions: Array, look: Callable[[GameState], Any] = lambda states: states) -> Trajectories:
        """What ``look`` sees of the states that led to these actions, [episodes, moves]; by default all of it."""

        def move(states: GameState, chosen: Array) -> tuple[GameState, Trajectories]:
            after, costs = self.step(states, chosen)
            return after, Trajectories(look(states), costs, ~self.each(game.is_over)(states))

        return jax.lax.scan(move, self.start(), actions.T)[1]


def costs_to_go(costs: Array) -> Array:
    """What is still to be paid at each move, [moves, episodes]."""
    return jnp.flip(jnp.cumsum(jnp.flip(costs, 0), 0), 0)


@dataclass(frozen=True)
class ValueScale:
    """What value networks predict: costs to go, scaled and divided by the scaled reference of the task.

    Predictions are about 1 in the first state of any game. `cost` inverts `target`, and keeps what an untrained network
    says within reason.
    """

    scaling: str
    largest: float = 100.0

    def target(self, cost: Array, reference: Array) -> Array:
        scale = SCALINGS[self.scaling].scale
        return scale(cost) / scale(reference)

    def cost(self, prediction: Array, reference: Array) -> Array:
        """The predicted cost to go in units of the reference."""
        scale, unscale = SCALINGS[self.scaling]
        return unscale(jnp.clip(prediction * scale(reference), 0.0, scale(self.largest * reference))) / reference
