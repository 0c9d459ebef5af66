"""Proximal policy optimisation: games sampled from the policy, and steps toward moves that went better than expected.

An iteration plays one whole game in every environment, so the length of a rollout is the number of intermediate
vertices.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from ..game import GameState, Sizes
from .agent import Agent, Batch, Metrics
from .games import Boards, Environments, Episodes, Experience
from .networks import AnyNetworkConfig, NetworkConfig, PolicyValueNetwork
from .updates import mean_over_devices


@dataclass(frozen=True)
class PPOConfig:
    """How PPO plays and learns. The defaults are those of the paper and of "the 37 implementation details".

    Attributes:
        environments: games played at the same time.
        minibatches: the number of minibatches per iteration.
        epochs: number of times that each game is used for learning.
        clip: how far probabilities may move from those with which the games were played.
        value_weight, entropy_weight: weights of the value loss and of the entropy; the policy loss has weight 1.
        learning_rate: the learning rate of Adam.
        largest_gradient: norm to which gradients are clipped.
        discount, trace: parameters of generalised advantage estimation. Costs add up, so nothing is discounted.
        scaling: the scaling of costs to go, see `reward_scaling`.
        states_at_once: maximum number of states in memory while a gradient is computed, but at least one move of each
            game in a minibatch. Fewer states need less memory; the updates are the same.
        policy_network, value_network: the shapes of the networks.
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
    policy_network: AnyNetworkConfig = field(default_factory=lambda: NetworkConfig(layers=5))
    value_network: AnyNetworkConfig = field(default_factory=lambda: NetworkConfig(layers=4))


class Notes(NamedTuple):
    """The log-probability of each move, and its advantage: how much better than expected it turned out."""

    log_probabilities: Array
    advantages: Array


class PPO(Agent):
    """The PPO agent. Its notes are `Notes`."""

    name = "ppo"

    def __init__(self, config: PPOConfig, sizes: Sizes):
        super().__init__(config, sizes, optax.adam(config.learning_rate, eps=1e-5))

    @staticmethod
    def minibatches(config: PPOConfig, games: int, moves: int) -> int:
        return config.minibatches

    def network(self, key: Array) -> PolicyValueNetwork:
        return PolicyValueNetwork.separate(self.config.policy_network, self.config.value_network, self.sizes, key)

    def play(
        self, network: PolicyValueNetwork, boards: Boards, tasks: Array, keys: Array, experience: Experience
    ) -> tuple[Episodes, Notes]:
        environments = boards.environments(tasks)

        def choose(states: GameState, keys: Array) -> tuple[Array, Array]:
            logits, _ = environments.each(network)(states)
            actions = jax.vmap(jax.random.categorical)(keys, logits).astype(jnp.int32)
            return actions, _log_probabilities(logits, actions)

        episodes, log_probabilities = environments.play(choose, keys, boards.sizes.intermediates)
        return episodes, Notes(log_probabilities, self._advantages(network, environments, episodes.actions).T)

    def _advantages(self, network: PolicyValueNetwork, environments: Environments, actions: Array) -> Array:
        """Generalised advantage estimates, of shape [moves, games]."""
        played = environments.replay(actions, lambda states: environments.each(network)(states)[1])
        expected = -self._values.cost(played.seen, environments.references)
        expected = jnp.where(played.active, expected, 0.0)
        expected_next = jnp.concatenate([expected[1:], jnp.zeros_like(expected[:1])])
        surprises = -played.costs / environments.references + self.config.discount * expected_next - expected

        def accumulate(later: Array, surprise: Array) -> tuple[Array, Array]:
            advantage = surprise + self.config.discount * self.config.trace * later
            return advantage, advantage

        return jax.lax.scan(accumulate, jnp.zeros_like(surprises[0]), surprises, reverse=True)[1]

    def prepared(self, notes: Notes, weights: Array) -> Notes:
        """The notes with advantages normalised to mean 0 and variance 1 over all devices."""
        mean = mean_over_devices(jnp.sum(weights * notes.advantages))
        variance = mean_over_devices(jnp.sum(weights * jnp.square(notes.advantages - mean)))
        return notes._replace(advantages=(notes.advantages - mean) / (jnp.sqrt(variance) + 1e-8))

    def loss(self, environments: Environments, network: PolicyValueNetwork, batch: Batch) -> tuple[Array, Metrics]:
        weights, notes = batch.weights, batch.notes
        logits, predictions = jax.vmap(environments.each(network))(batch.states)
        ratio = jnp.exp(_log_probabilities(logits, batch.actions) - notes.log_probabilities)
        clipped = jnp.clip(ratio, 1 - self.config.clip, 1 + self.config.clip)
        policy_loss = -jnp.sum(weights * jnp.minimum(ratio * notes.advantages, clipped * notes.advantages))
        value_loss = jnp.sum(weights * jnp.square(predictions - batch.targets))
        entropy = -jnp.sum(weights * jnp.sum(jax.nn.softmax(logits) * jax.nn.log_softmax(logits), -1))
        loss = policy_loss + self.config.value_weight * value_loss - self.config.entropy_weight * entropy
        metrics = {"policy_loss": policy_loss, "value_loss": value_loss, "entropy": entropy}
        return loss, metrics | self.errors(environments, batch, predictions)


def _log_probabilities(logits: Array, actions: Array) -> Array:
    return jnp.take_along_axis(jax.nn.log_softmax(logits), actions[..., None], -1)[..., 0]
