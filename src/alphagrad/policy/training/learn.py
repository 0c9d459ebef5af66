"""Learning steps of the policy: from lessons, and from its own games."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array
from jax.typing import ArrayLike

from ...agents.updates import Learner
from ..network import Network
from .lessons import Lesson, Moves

# A move that loses this much, in mean prices of a move, gets about a third of the weight of the best move.
TOLERANCE = 0.1


def optimizer(rate: float, steps: int) -> optax.GradientTransformation:
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adam(optax.cosine_decay_schedule(rate, max(steps, 1))))


def begin(network: Network, rule: optax.GradientTransformation) -> Learner:
    return Learner.begin(jax.tree.map(jnp.asarray, network), rule)


def scores(network: Network, features: ArrayLike) -> Array:
    """The scores that `network.score` computes, for features of shape [..., vertices, features]."""
    hidden = jax.nn.relu(features @ network.first + network.first_bias)
    return jax.nn.relu(hidden @ network.second + network.second_bias) @ network.last


def log_policy(network: Network, features: ArrayLike, legal: ArrayLike) -> Array:
    return jax.nn.log_softmax(jnp.where(legal, scores(network, features), -1e9))


def imitation_loss(network: Network, lesson: Lesson) -> Array:
    """The cross entropy to a policy that prefers moves with small losses."""
    wanted = jax.nn.softmax(jnp.where(lesson.legal, -lesson.losses / TOLERANCE, -jnp.inf))
    return -jnp.mean(jnp.sum(wanted * log_policy(network, lesson.features, lesson.legal), -1))


def self_play_loss(network: Network, moves: Moves) -> Array:
    """The policy-gradient loss."""
    logs = log_policy(network, moves.features, moves.legal)
    chosen = jnp.take_along_axis(logs, moves.chosen[:, None], -1)[:, 0]
    return -jnp.mean(moves.advantages * chosen)


def _learning_from(loss: Callable[[Network, Any], Array]) -> Callable[..., tuple[Learner, Array]]:
    """A compiled step that maps a learner, its data and the optimizer to the next learner and the loss."""

    def learn(learner: Learner, seen: Any, rule: optax.GradientTransformation) -> tuple[Learner, Array]:
        value, gradient = jax.value_and_grad(loss)(learner.network, seen)
        return learner.stepped(gradient, rule), value

    return jax.jit(learn, static_argnames="rule")


learn_from_lesson = _learning_from(imitation_loss)
learn_from_games = _learning_from(self_play_loss)
