"""How the policy learns: from lessons, and from games of its own."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.typing import ArrayLike

from ...agents.updates import Learner
from ..network import Network
from .lessons import Lesson

# A move that loses so much, in mean prices of a move, is as good as a third of the best.
TOLERANCE = 0.1


class Moves(NamedTuple):
    """Moves of the policy's own games: the state before, the move, and how much better its game was than others on the
    same graph."""

    features: np.ndarray
    legal: np.ndarray
    chosen: np.ndarray
    advantages: np.ndarray


def optimizer(rate: float, steps: int) -> optax.GradientTransformation:
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adam(optax.cosine_decay_schedule(rate, max(steps, 1))))


def begin(network: Network, rule: optax.GradientTransformation) -> Learner:
    return Learner.begin(jax.tree.map(jnp.asarray, network), rule)


def scores(network: Network, features: ArrayLike) -> Array:
    """What `network.score` computes, for [..., vertices, features]."""
    hidden = jax.nn.relu(features @ network.first + network.first_bias)
    return jax.nn.relu(hidden @ network.second + network.second_bias) @ network.last


def log_policy(network: Network, features: ArrayLike, legal: ArrayLike) -> Array:
    return jax.nn.log_softmax(jnp.where(legal, scores(network, features), -1e9))


def imitation_loss(network: Network, lesson: Lesson) -> Array:
    """The cross entropy to a policy that prefers moves which lose little."""
    wanted = jax.nn.softmax(jnp.where(lesson.legal, -lesson.losses / TOLERANCE, -jnp.inf))
    return -jnp.mean(jnp.sum(wanted * log_policy(network, lesson.features, lesson.legal), -1))


def self_play_loss(network: Network, moves: Moves) -> Array:
    """The policy gradient."""
    logs = log_policy(network, moves.features, moves.legal)
    chosen = jnp.take_along_axis(logs, moves.chosen[:, None], -1)[:, 0]
    return -jnp.mean(moves.advantages * chosen)


@partial(jax.jit, static_argnames=("rule",))
def learn_from_lesson(learner: Learner, lesson: Lesson, rule: optax.GradientTransformation) -> tuple[Learner, Array]:
    loss, gradient = jax.value_and_grad(imitation_loss)(learner.network, lesson)
    return learner.stepped(gradient, rule), loss


@partial(jax.jit, static_argnames=("rule",))
def learn_from_games(learner: Learner, moves: Moves, rule: optax.GradientTransformation) -> tuple[Learner, Array]:
    loss, gradient = jax.value_and_grad(self_play_loss)(learner.network, moves)
    return learner.stepped(gradient, rule), loss
