"""Games side by side: the tasks that agents learn, environments that play them, and finished episodes.

An episode is stored as its actions only. Its states are recovered by replaying it. That costs next to nothing compared
to a network, and takes no memory for states that are not used.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
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


class Experience(NamedTuple):
    """What earlier games of each task have shown.

    Attributes:
        cost: the cost of the best game; infinite if there is none.
        actions: the actions of the best game.
        error: the mean error of values in the last iteration, in their own units; 1 before the first.
    """

    cost: Array
    actions: Array
    error: Array

    @staticmethod
    def none(tasks: int, moves: int) -> "Experience":
        """No game has been played yet."""
        actions = jnp.zeros((tasks, moves), jnp.int32)
        return Experience(jnp.full(tasks, jnp.inf, jnp.float32), actions, jnp.ones(tasks, jnp.float32))


class Trajectories(NamedTuple):
    """Replayed episodes, of shape [moves, episodes, ...].

    Holds what was seen of the states, the costs of the moves, and whether there was a move to make.
    """

    seen: Any
    costs: Array
    active: Array


class Boards(NamedTuple):
    """The games of all tasks as arrays: their tables, stacked."""

    tables: GameTables

    @property
    def references(self) -> Array:
        """The cost of reverse mode in each game. Costs are divided by it to be about 1."""
        return self.tables.reference

    @property
    def sizes(self) -> Sizes:
        return self.tables.sizes

    def assigned(self, key: Array, environments: Array, total: int) -> Array:
        """A task per environment. Each task occurs equally often, as far as possible."""
        return jax.random.permutation(key, jnp.arange(total) % len(self.references))[environments]

    def environments(self, tasks: Array) -> "Environments":
        if len(self.references) == 1:
            return Environments(jax.tree.map(lambda leaf: leaf[0], self.tables), None, tasks, self.references)
        return Environments(jax.tree.map(lambda leaf: leaf[tasks], self.tables), 0, tasks, self.references)


@dataclass(frozen=True, eq=False)
class Games:
    """The graphs to find orders for, as games of one size.

    Attributes:
        graphs: one graph per task.
        objective: the cost of an order.
        sizes: the sizes of all games.
    """

    graphs: tuple[ComputationGraph, ...]
    objective: Objective
    sizes: Sizes

    @staticmethod
    def of(
        graphs: Sequence[ComputationGraph],
        counting: str = "raw",
        minimize: Any = "multiplications",
        sizes: Sizes | None = None,
    ) -> "Games":
        """Games padded to ``sizes``, or else to the smallest sizes that hold all graphs."""
        room = sizes or game.common_sizes([game.sizes_of(graph) for graph in graphs])
        return Games(tuple(graphs), Objective.of(minimize, counting), room)

    @cached_property
    def boards(self) -> Boards:
        """The games as arrays."""
        counting, room = self.objective.counting, self.sizes
        return Boards(
            game.stack_tables([game.make_tables(graph, counting, self.objective, room) for graph in self.graphs])
        )

    def some(self, tasks: Sequence[int]) -> "Games":
        """The games of some tasks, padded to the smallest sizes that hold these."""
        return Games.of([self.graphs[task] for task in tasks], self.objective.counting, self.objective)

    def order(self, task: int, actions: Sequence[int]) -> tuple[int, ...]:
        """The vertices that a game eliminated, in order."""
        vertices = self.graphs[task].intermediates
        return tuple(dict.fromkeys(vertices[action] for action in actions if action < len(vertices)))

    def cost(self, task: int, order: Sequence[int]) -> float:
        """The cost of an order in the game, counted by graphax."""
        return self.objective.value(self.graphs[task].cost(order, self.objective.counting))

    def bound(self, task: int) -> float:
        """A lower bound on the cost of every order of a task."""
        bound = self.graphs[task].lower_bound
        if self.objective.minimize != "weighted":
            return bound(self.objective.minimize, self.objective.counting)
        return self.objective.weights[0] * bound("multiplications", self.objective.counting)


@dataclass(frozen=True)
class Environments:
    """Games that are played at the same time. ``axis`` is None if they are of one task and share their tables.

    ``all_references`` are those of all tasks, not only of the games.
    """

    tables: GameTables
    axis: int | None
    tasks: Array
    all_references: Array

    @property
    def references(self) -> Array:
        """The cost of reverse mode in each game."""
        return self.all_references[self.tasks]

    def per_task(self, values: Array) -> Array:
        """The sums of numbers of the games, of shape [..., games], by task."""
        zeros = jnp.zeros(len(self.all_references), values.dtype)
        return zeros.at[self.tasks].add(values.reshape(-1, values.shape[-1]).sum(0))

    def start(self) -> GameState:
        return jax.vmap(game.init, in_axes=self.axis, axis_size=len(self.tasks))(self.tables)

    def step(self, states: GameState, actions: Array) -> tuple[GameState, Array]:
        return self.each(game.step)(states, actions)

    def each(self, function: Callable) -> Callable:
        """Map a function of the tables of a game and other arguments over all games."""

        def applied(*args: Any) -> Any:
            axes = (self.axis, *([0] * len(args)))
            return jax.vmap(function, in_axes=axes)(self.tables, *args)

        return applied

    def play(
        self, choose: Callable[[GameState, Array], tuple[Array, Any]], keys: Array, moves: int
    ) -> tuple[Episodes, Any]:
        """Play whole games. Returns episodes, and notes about each move, of shape [games, moves, ...].

        ``choose`` maps states, and a key for each of them, to actions and notes.
        """

        def move(states: GameState, number: Array) -> tuple[GameState, tuple[Array, Any]]:
            actions, notes = choose(states, jax.vmap(jax.random.fold_in, (0, None))(keys, number))
            return self.step(states, actions)[0], (actions, notes)

        states, (actions, notes) = jax.lax.scan(move, self.start(), jnp.arange(moves))
        return Episodes(self.tasks, actions.T, states.cost), jax.tree.map(lambda leaf: leaf.swapaxes(0, 1), notes)

    def replay(self, actions: Array, look: Callable[[GameState], Any] = lambda states: states) -> Trajectories:
        """Replay actions of shape [episodes, moves]. ``look`` selects what to keep of each state, by default all."""

        def move(states: GameState, chosen: Array) -> tuple[GameState, Trajectories]:
            after, costs = self.step(states, chosen)
            return after, Trajectories(look(states), costs, ~self.each(game.is_over)(states))

        return jax.lax.scan(move, self.start(), actions.T)[1]


def costs_to_go(costs: Array) -> Array:
    """The cost still to be paid at each move, of shape [moves, episodes]."""
    return jnp.flip(jnp.cumsum(jnp.flip(costs, 0), 0), 0)


@dataclass(frozen=True)
class ValueScale:
    """The targets of value networks: costs to go, scaled and divided by the scaled reference of the task.

    Predictions are about 1 in the first state of any game. `cost` inverts `target`, and bounds the predictions of an
    untrained network.
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
