"""Proximal policy optimisation: games sampled from the policy, and steps towards what went better than expected.

An iteration plays one whole game in every environment, so a rollout is as long as a graph has intermediate vertices.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from ..game.rules import GameState, Sizes
from .games import Boards, Environments, Episodes, ValueScale, costs_to_go
from .networks import NetworkConfig, PolicyNetwork, ValueNetwork
from .updates import NO_ACTION, filled_up, in_chunks, mean_over_devices, minibatches, moves_at_once, summed_gradient


@dataclass(frozen=True)
class PPOConfig:
    """How PPO plays and learns; the defaults are the paper's, and those of "the 37 implementation details".

    Attributes:
        environments: games played at the same time.
        minibatches: into which the games of an iteration are divided.
        epochs: how often each game is learnt from.
        clip: how far probabilities may move away from those that the games were played with.
        value_weight, entropy_weight: of the losses; the policy's has weight 1.
        learning_rate: of Adam.
        largest_gradient: norm to which gradients are clipped.
        discount, trace: of generalised advantage estimation. Costs add up, so nothing is discounted.
        scaling: of costs to go, see `reward_scaling`.
        states_at_once: how many states are in memory while a gradient is computed, but at least one move of each game
            in a minibatch. Fewer states need less memory; the updates are the same.
        policy_network, value_network: their shapes.
    """

    environments: int = 32
    minibatches: int = 4
    epochs: int = 4
    clip: float = 0.2
    value_weight: float = 1.0
    entropy_weight: float = 0.01
    learning_rate: float = 2.5e-4
    largest_gradient: float = 0.5
    discount: float = 1.0
    trace: float = 0.95
    scaling: str = "root"
    states_at_once: int = 1024
    policy_network: NetworkConfig = field(default_factory=lambda: NetworkConfig(layers=5))
    value_network: NetworkConfig = field(default_factory=lambda: NetworkConfig(layers=4))


class Networks(NamedTuple):
    policy: PolicyNetwork
    value: ValueNetwork


class Learner(NamedTuple):
    """What changes from iteration to iteration."""

    networks: Networks
    optimizer: Any


class Lesson(NamedTuple):
    """Games to learn from, [games, moves] each: with what probability a move was made, and how it turned out."""

    tasks: Array
    actions: Array
    log_probabilities: Array
    advantages: Array


class Batch(NamedTuple):
    """Moves to take a gradient of, [moves, games] each; ``weights`` add up to 1 over a minibatch."""

    states: GameState
    actions: Array
    log_probabilities: Array
    advantages: Array
    targets: Array
    weights: Array


class PPO:
    """The agent: see `training.Agent`."""

    name = "ppo"

    def __init__(self, config: PPOConfig, sizes: Sizes):
        self.config, self.sizes = config, sizes
        self.environments, self.minibatches = config.environments, config.minibatches
        self._values = ValueScale(config.scaling)
        self._optimizer = optax.chain(
            optax.clip_by_global_norm(config.largest_gradient), optax.adam(config.learning_rate, eps=1e-5)
        )

    def init(self, key: Array) -> Learner:
        policy_key, value_key = jax.random.split(key)
        policy = PolicyNetwork(self.config.policy_network, self.sizes, policy_key)
        networks = Networks(policy, ValueNetwork(self.config.value_network, self.sizes, value_key))
        return Learner(networks, self._optimizer.init(networks))

    def iterate(
        self, learner: Learner, boards: Boards, tasks: Array, keys: Array
    ) -> tuple[Learner, Episodes, dict[str, Array]]:
        episodes, log_probabilities = self._play(learner.networks.policy, boards, tasks, keys)
        advantages = self._advantages(learner.networks.value, boards, episodes)
        lesson = Lesson(tasks, episodes.actions, log_probabilities.T, advantages.T)
        learner, metrics = self._learn(learner, boards, lesson)
        return learner, episodes, metrics

    def _play(self, policy: PolicyNetwork, boards: Boards, tasks: Array, keys: Array) -> tuple[Episodes, Array]:
        environments = boards.environments(tasks)

        def choose(states: GameState, keys: Array) -> tuple[Array, Array]:
            logits = policy(*environments.view(states))
            actions = jax.vmap(jax.random.categorical)(keys, logits).astype(jnp.int32)
            return actions, _log_probabilities(logits, actions)

        return environments.play(choose, keys, self.sizes.intermediates)

    def _advantages(self, value: ValueNetwork, boards: Boards, episodes: Episodes) -> Array:
        """Generalised advantage estimates, [moves, games]."""
        environments = boards.environments(episodes.tasks)
        replay = environments.replay(episodes.actions, lambda states: value(*environments.view(states)))
        expected = -self._values.cost(replay.seen, environments.references)
        expected = jnp.where(replay.active, expected, 0.0)
        expected_next = jnp.concatenate([expected[1:], jnp.zeros_like(expected[:1])])
        surprises = -replay.costs / environments.references + self.config.discount * expected_next - expected

        def accumulate(later: Array, surprise: Array) -> tuple[Array, Array]:
            advantage = surprise + self.config.discount * self.config.trace * later
            return advantage, advantage

        return jax.lax.scan(accumulate, jnp.zeros_like(surprises[0]), surprises, reverse=True)[1]

    def _learn(self, learner: Learner, boards: Boards, lesson: Lesson) -> tuple[Learner, dict[str, Array]]:
        games, moves = lesson.actions.shape
        size = moves_at_once(moves, games // self.config.minibatches, self.config.states_at_once)

        def update(learner: Learner, part: Lesson) -> tuple[Learner, dict[str, Array]]:
            environments = boards.environments(part.tasks)
            chunks = in_chunks(self._batch(environments, part, size), size)
            summed = summed_gradient(partial(self._loss, environments), learner.networks, chunks)
            gradient, metrics = mean_over_devices(summed)
            change, optimizer = self._optimizer.update(gradient, learner.optimizer, learner.networks)
            return Learner(eqx.apply_updates(learner.networks, change), optimizer), metrics

        def epoch(learner: Learner, _: Array) -> tuple[Learner, dict[str, Array]]:
            return jax.lax.scan(update, learner, minibatches(lesson, self.config.minibatches))

        learner, metrics = jax.lax.scan(epoch, learner, jnp.arange(self.config.epochs))
        return learner, jax.tree.map(jnp.mean, metrics)

    def _batch(self, environments: Environments, lesson: Lesson, size: int) -> Batch:
        """The moves of a minibatch, and more that weigh nothing up to a multiple of ``size``."""
        actions = filled_up(lesson.actions, size, NO_ACTION)
        replay = environments.replay(actions)
        weights = replay.active / mean_over_devices(jnp.sum(replay.active))
        log_probabilities, advantages = (
            filled_up(moves, size).T for moves in (lesson.log_probabilities, lesson.advantages)
        )
        targets = self._values.target(costs_to_go(replay.costs), environments.references)
        return Batch(replay.seen, actions.T, log_probabilities, _normalised(advantages, weights), targets, weights)

    def _loss(self, environments: Environments, networks: Networks, batch: Batch) -> tuple[Array, dict[str, Array]]:
        weights, advantages = batch.weights, batch.advantages
        observed = jax.vmap(environments.view)(batch.states)
        logits, predictions = networks.policy(*observed), networks.value(*observed)
        ratio = jnp.exp(_log_probabilities(logits, batch.actions) - batch.log_probabilities)
        clipped = jnp.clip(ratio, 1 - self.config.clip, 1 + self.config.clip)
        policy_loss = -jnp.sum(weights * jnp.minimum(ratio * advantages, clipped * advantages))
        value_loss = jnp.sum(weights * jnp.square(predictions - batch.targets))
        entropy = -jnp.sum(weights * jnp.sum(jax.nn.softmax(logits) * jax.nn.log_softmax(logits), -1))
        loss = policy_loss + self.config.value_weight * value_loss - self.config.entropy_weight * entropy
        return loss, {"policy_loss": policy_loss, "value_loss": value_loss, "entropy": entropy}


def _log_probabilities(logits: Array, actions: Array) -> Array:
    return jnp.take_along_axis(jax.nn.log_softmax(logits), actions[..., None], -1)[..., 0]


def _normalised(advantages: Array, weights: Array) -> Array:
    """With mean 0 and variance 1 over all devices."""
    mean = mean_over_devices(jnp.sum(weights * advantages))
    variance = mean_over_devices(jnp.sum(weights * jnp.square(advantages - mean)))
    return (advantages - mean) / (jnp.sqrt(variance) + 1e-8)
