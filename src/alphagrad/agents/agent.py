"""The common part of both agents: play a game in every environment, then learn from the games in minibatches.

The gradient of a minibatch is a sum over its moves. To compute it, a network keeps megabytes of intermediate results
per state. So the sum is computed in chunks of a few moves, and only the results of one chunk are in memory.
"""

from abc import ABC, abstractmethod
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from ..game import GameState, Sizes
from .games import Boards, Environments, Episodes, Experience, ValueScale, costs_to_go
from .networks import PolicyValueNetwork
from .updates import (
    NO_ACTION,
    Learner,
    filled_up,
    in_chunks,
    mean_over_devices,
    minibatches,
    moves_at_once,
    summed_gradient,
)

Metrics = dict[str, Array]


class Batch(NamedTuple):
    """Moves to take a gradient of, of shape [moves, games, ...] each. ``weights`` add up to 1 over a minibatch.

    ``notes`` holds what the agent recorded about each move when it played.
    """

    states: GameState
    actions: Array
    notes: Any
    targets: Array
    weights: Array


class Agent(ABC):
    """A method to learn to play. Each device has a share of the environments.

    Attributes:
        name: the name of the agent.
        config: how the agent plays and learns.
        sizes: the largest sizes of the games it plays.
    """

    name: str

    def __init__(self, config: Any, sizes: Sizes, optimizer: optax.GradientTransformation):
        self.config, self.sizes = config, sizes
        self._values = ValueScale(config.scaling)
        self._optimizer = optax.chain(optax.clip_by_global_norm(config.largest_gradient), optimizer)

    def init(self, key: Array) -> Learner:
        """The initial state of the agent, with nothing learned yet."""
        return Learner.begin(self.network(key), self._optimizer)

    def iterate(
        self, learner: Learner, boards: Boards, tasks: Array, keys: Array, experience: Experience, parts: int
    ) -> tuple[Learner, Episodes, Metrics]:
        """Play a game of each of these tasks and learn from them in minibatches, together with all other devices.

        ``parts`` is the number of minibatches. Returns the new state of the agent, the games, and metrics, among them
        the mean error of values per task.
        """
        episodes, notes = self.play(learner.network, boards, tasks, keys, experience)
        games, moves = episodes.actions.shape
        size = moves_at_once(moves, games // parts, self.config.states_at_once)
        lessons = minibatches((tasks, *self.lessons(boards, episodes, notes, experience)), parts)

        def update(learner: Learner, part: Any) -> tuple[Learner, Metrics]:
            tasks, actions, notes = part
            environments = boards.environments(tasks)
            chunks = in_chunks(self._batch(environments, actions, notes, size), size)
            summed = summed_gradient(partial(self.loss, environments), learner.network, chunks)
            gradient, metrics = mean_over_devices(summed)
            return learner.stepped(gradient, self._optimizer), metrics

        def epoch(learner: Learner, _: Array) -> tuple[Learner, Metrics]:
            return jax.lax.scan(update, learner, lessons)

        learner, metrics = jax.lax.scan(epoch, learner, jnp.arange(self.config.epochs))
        means = jax.tree.map(lambda metric: jnp.mean(metric, (0, 1)), metrics)
        weight = means.pop("weight")
        return learner, episodes, {**means, "value_error": means["value_error"] / weight}

    def errors(self, environments: Environments, batch: Batch, predictions: Array) -> Metrics:
        """The errors of values by task, weighted, and the weights."""
        errors = jnp.abs(predictions - batch.targets)
        return {
            "value_error": environments.per_task(batch.weights * errors),
            "weight": environments.per_task(batch.weights),
        }

    def _batch(self, environments: Environments, actions: Array, notes: Any, size: int) -> Batch:
        """The moves of a minibatch, padded with moves of weight zero to a multiple of ``size``."""
        actions = filled_up(actions, size, NO_ACTION)
        played = environments.replay(actions)
        weights = played.active / mean_over_devices(jnp.sum(played.active))
        notes = jax.tree.map(lambda leaf: jnp.swapaxes(filled_up(leaf, size), 0, 1), notes)
        targets = self._values.target(costs_to_go(played.costs), environments.references)
        return Batch(played.seen, actions.T, self.prepared(notes, weights), targets, weights)

    def lessons(self, boards: Boards, episodes: Episodes, notes: Any, experience: Experience) -> tuple[Array, Any]:
        """The actions and notes to learn from."""
        return episodes.actions, notes

    def prepared(self, notes: Any, weights: Array) -> Any:
        """The notes of a minibatch, of shape [moves, games, ...], in the form that the loss expects."""
        return notes

    @staticmethod
    @abstractmethod
    def minibatches(config: Any, games: int, moves: int) -> int:
        """The number of minibatches for this many games of this many moves."""

    @abstractmethod
    def network(self, key: Array) -> PolicyValueNetwork:
        """A new network for the agent to train."""

    @abstractmethod
    def play(
        self, network: PolicyValueNetwork, boards: Boards, tasks: Array, keys: Array, experience: Experience
    ) -> tuple[Episodes, Any]:
        """Play a game of each task. Returns the games, and notes about each move, of shape [games, moves, ...]."""

    @abstractmethod
    def loss(self, environments: Environments, network: PolicyValueNetwork, batch: Batch) -> tuple[Array, Metrics]:
        """The loss, a sum over the moves of a chunk, and the metrics to report, including `errors`."""
