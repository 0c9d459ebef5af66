"""Gumbel AlphaZero: self-play with a tree search whose model is the game itself, and a network that learns from it.

An iteration plays one game in every environment. The search of Gumbel MuZero chooses each move from the policy and the
values of the network. The network is then trained toward the policy that the search improved and toward the costs that
were actually paid.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx
import optax
from jax import Array

from .. import game
from ..game import GameState, GameTables, Sizes
from .agent import Agent, Batch, Metrics
from .games import Boards, Environments, Episodes, Experience
from .networks import AnyNetworkConfig, NetworkConfig, PolicyValueNetwork
from .updates import number_of_minibatches


@dataclass(frozen=True)
class AlphaZeroConfig:
    """How AlphaZero plays and learns. The defaults are those of the paper.

    Attributes:
        environments: games played at the same time.
        simulations: simulations of the tree search per move.
        considered_actions: the number of actions that the search considers at the root.
        gumbel_scale: scale of the Gumbel noise added to root logits.
        least_gumbel_scale: each game has its own scale between this and ``gumbel_scale``. Games with little noise show
            what the agent can do; games with more noise explore alternatives.
        c_visit, c_scale: how much the search trusts its values over the policy.
        least_trust: each game has its own share of this trust, between ``least_trust`` and 1. Games with little trust
            play by the policy alone, while values are still wrong.
        most_noise: the most that an average error of values may change a logit. While values have larger errors, they
            are trusted less.
        value_units: the unit for differences between values: "range" (of all values in the tree, however similar they
            are) or "reference" (the cost of reverse mode).
        batch_size: maximum number of states per step of the optimizer. Whole games are kept together.
        epochs: number of times that each game is used for learning.
        value_weight: weight of the value loss; the policy loss has weight 1.
        value_reach: from this error on, the value loss grows linearly, so that a few games of extreme cost do not
            outweigh all others, and the policy as well.
        l2_weight: weight decay, separate from the gradient.
        learning_rate, schedule, last_rate: the learning rate, annealed along a cosine over ``schedule`` iterations to
            the share ``last_rate`` of it.
        imitation: the share of games whose own moves are replaced for learning by the best order found so far, or by
            reverse mode as long as that is better.
        following: the share of games that follow this order, except for some of their moves, and learn the moves that
            they follow.
        following_gumbel_scale: the largest scale of the noise in games that follow.
        largest_gradient: norm to which gradients are clipped.
        scaling: the scaling of costs to go, see `reward_scaling`.
        states_at_once: maximum number of states in memory while a gradient is computed, but at least one move of each
            game in a minibatch. Fewer states need less memory; the updates are the same.
        network: the shape of the network.
    """

    environments: int = 32
    simulations: int = 50
    considered_actions: int = 5
    gumbel_scale: float = 1.0
    least_gumbel_scale: float = 1.0
    c_visit: float = 25.0
    c_scale: float = 0.01
    least_trust: float = 1.0
    most_noise: float = 1e6
    value_units: str = "range"
    batch_size: int = 4096
    epochs: int = 1
    value_weight: float = 10.0
    value_reach: float = 100.0
    l2_weight: float = 0.01
    learning_rate: float = 1e-3
    schedule: int = 5000
    last_rate: float = 0.0
    imitation: float = 0.0
    following: float = 0.0
    following_gumbel_scale: float = 1.0
    largest_gradient: float = 1.0
    scaling: str = "root"
    states_at_once: int = 1024
    network: AnyNetworkConfig = field(default_factory=NetworkConfig)


class Style(NamedTuple):
    """How a game is played.

    Attributes:
        noise: the scale of the noise added to the logits.
        trust: the share of the usual trust in values.
        follows: the probability that a move is the next one of the best order so far, or of reverse mode if that is
            better.
    """

    noise: Array
    trust: Array
    follows: Array


class AlphaZero(Agent):
    """The AlphaZero agent. Its notes are the improved policies of all moves, of shape [games, moves, actions]."""

    name = "alphazero"

    def __init__(self, config: AlphaZeroConfig, sizes: Sizes, parts: int | None = None):
        """``parts`` is the number of minibatches per iteration; by default that of games of these sizes."""
        if parts is None:
            parts = self.minibatches(config, config.environments, sizes.intermediates)
        steps = config.schedule * config.epochs * parts
        rate = optax.cosine_decay_schedule(config.learning_rate, steps, config.last_rate)
        super().__init__(config, sizes, optax.adamw(rate, weight_decay=config.l2_weight))

    @staticmethod
    def minibatches(config: AlphaZeroConfig, games: int, moves: int) -> int:
        return number_of_minibatches(games, moves, config.batch_size)

    def network(self, key: Array) -> PolicyValueNetwork:
        return PolicyValueNetwork.joint(self.config.network, self.sizes, key)

    def play(
        self,
        network: PolicyValueNetwork,
        boards: Boards,
        tasks: Array,
        keys: Array,
        experience: Experience,
        moves: int | None = None,
    ) -> tuple[Episodes, Array]:
        """Play a game of each task, or its first ``moves`` moves. Also returns the improved policies."""
        environments = boards.environments(tasks)
        styles = jax.vmap(self._style)(keys)
        styles = styles._replace(trust=styles.trust * self._certainty(experience.error[tasks]))
        examples = _examples(boards, experience)[tasks]

        def choose(states: GameState, keys: Array) -> tuple[Array, Array]:
            choice_keys, search_keys = jnp.moveaxis(jax.vmap(jax.random.split)(keys), 1, 0)
            search = environments.each(partial(self._search, network))
            actions, policies = search(states, environments.references, styles, search_keys)
            given = environments.each(_next_of)(states, examples)
            follows = jax.vmap(jax.random.uniform)(choice_keys) < styles.follows
            certain = jax.nn.one_hot(given, policies.shape[-1], dtype=policies.dtype)
            return jnp.where(follows, given, actions), jnp.where(follows[:, None], certain, policies)

        return environments.play(choose, keys, boards.sizes.intermediates if moves is None else moves)

    def lessons(self, boards: Boards, episodes: Episodes, notes: Array, experience: Experience) -> tuple[Array, Array]:
        """The played games. Some are replaced by the best known order of the task, with certain moves."""
        games, vertices = len(notes), notes.shape[-1]
        imitated = jnp.arange(games) < round(self.config.imitation * games)
        actions = jnp.where(imitated[:, None], _examples(boards, experience)[episodes.tasks], episodes.actions)
        certain = jax.nn.one_hot(actions, vertices, dtype=notes.dtype)
        return actions, jnp.where(imitated[:, None, None], certain, notes)

    def _certainty(self, error: Array) -> Array:
        """The share of the usual trust that values deserve if they have this mean error."""
        usual = self.config.c_visit * self.config.c_scale * error
        return jnp.minimum(1.0, self.config.most_noise / jnp.maximum(usual, 1e-9))

    def _style(self, key: Array) -> Style:
        """How to play a game, which depends only on its key."""
        config, (noise, trust, follows) = self.config, jax.random.uniform(key, (3,))
        is_following = follows < config.following
        most_noise = jnp.where(is_following, config.following_gumbel_scale, config.gumbel_scale)
        # Most games follow most of the moves, because changes of a few moves are most likely to be better.
        left = follows / (config.following or 1.0)
        return Style(
            noise=_between(config.least_gumbel_scale, most_noise, noise),
            trust=_between(config.least_trust, 1.0, trust),
            follows=jnp.where(is_following, 1.0 - left**2, 0.0),
        )

    def _search(
        self,
        network: PolicyValueNetwork,
        tables: GameTables,
        state: GameState,
        reference: Array,
        style: Style,
        key: Array,
    ) -> tuple[Array, Array]:
        """The action to take and the improved policy.

        mctx expects a batch with one key. Each game is a batch of its own, so that it does not depend on the others.
        """
        legal = game.legal_actions(tables, state)
        logits, value = self._evaluated(network, tables, state, reference)
        found = mctx.gumbel_muzero_policy(
            params=(network, tables, reference),
            rng_key=key,
            root=mctx.RootFnOutput(
                prior_logits=logits[None], value=value[None], embedding=jax.tree.map(lambda leaf: leaf[None], state)
            ),
            recurrent_fn=self._simulate,
            num_simulations=self.config.simulations,
            invalid_actions=~legal[None],
            qtransform=partial(
                mctx.qtransform_completed_by_mix_value,
                value_scale=self.config.c_scale * style.trust,
                maxvisit_init=self.config.c_visit,
                rescale_values=self.config.value_units == "range",
            ),
            max_num_considered_actions=self.config.considered_actions,
            gumbel_scale=style.noise,
        )
        return found.action[0].astype(jnp.int32), found.action_weights[0].astype(jnp.float32)

    def _simulate(self, params: Any, key: Array, actions: Array, states: GameState) -> tuple[Any, GameState]:
        """The model of the search: one move of the actual game."""
        network, tables, reference = params
        states, costs = jax.vmap(game.step, (None, 0, 0))(tables, states, actions)
        logits, values = jax.vmap(partial(self._evaluated, network), (None, 0, None))(tables, states, reference)
        going_on = ~jax.vmap(game.is_over, (None, 0))(tables, states)
        step = mctx.RecurrentFnOutput(
            reward=-costs / reference, discount=going_on.astype(jnp.float32), prior_logits=logits, value=values
        )
        return step, states

    def _evaluated(
        self, network: PolicyValueNetwork, tables: GameTables, state: GameState, reference: Array
    ) -> tuple[Array, Array]:
        """The logits of the policy and the value, which is minus the cost to go in units of the reference."""
        logits, prediction = network(tables, state)
        return logits, -self._values.cost(prediction, reference)

    def loss(self, environments: Environments, network: PolicyValueNetwork, batch: Batch) -> tuple[Array, Metrics]:
        logits, predictions = jax.vmap(environments.each(network))(batch.states)
        policy_loss = jnp.sum(batch.weights * optax.softmax_cross_entropy(logits, batch.notes))
        errors, reach = jnp.abs(predictions - batch.targets), self.config.value_reach
        squares = jnp.where(errors < reach, jnp.square(errors), reach * (2 * errors - reach))
        value_loss = jnp.sum(batch.weights * squares)
        entropy = jnp.sum(batch.weights * jnp.sum(jax.scipy.special.entr(batch.notes), -1))
        metrics = {"policy_loss": policy_loss, "value_loss": value_loss, "target_entropy": entropy}
        metrics |= self.errors(environments, batch, predictions)
        return policy_loss + self.config.value_weight * value_loss, metrics


def _between(least: float, most: float | Array, share: Array) -> Array:
    return least + share * (most - least)


def _next_of(tables: GameTables, state: GameState, example: Array) -> Array:
    """The first action of an example that is still legal."""
    return example[jnp.argmax(game.legal_actions(tables, state)[example])]


def _examples(boards: Boards, experience: Experience) -> Array:
    """The actions of the best game of each task so far, or those of reverse mode as long as that is better."""
    vertices = jnp.sum(boards.tables.intermediate, 1, keepdims=True, dtype=jnp.int32)
    reverse = vertices - 1 - jnp.arange(experience.actions.shape[1], dtype=jnp.int32)
    return jnp.where((experience.cost < boards.references)[:, None], experience.actions, reverse)
