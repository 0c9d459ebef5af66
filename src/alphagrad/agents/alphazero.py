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
from .games import Best, Boards, Environments, Episodes
from .networks import AnyNetworkConfig, NetworkConfig, PolicyValueNetwork
from .updates import NO_ACTION, number_of_minibatches


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
        restarts: the share of games that begin with moves of this order, up to a random one, and learn them as well.
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
    restarts: float = 0.0
    largest_gradient: float = 1.0
    scaling: str = "root"
    states_at_once: int = 1024
    network: AnyNetworkConfig = field(default_factory=NetworkConfig)


class Style(NamedTuple):
    """How a game is played.

    Attributes:
        noise: the scale of the noise added to the logits.
        trust: the share of the usual trust in values.
        opening: the share of its moves that are those of the best order so far.
    """

    noise: Array
    trust: Array
    opening: Array


class AlphaZero(Agent):
    """The AlphaZero agent. Its notes are the improved policies of all moves, of shape [games, moves, actions]."""

    name = "alphazero"

    def __init__(self, config: AlphaZeroConfig, sizes: Sizes):
        parts = number_of_minibatches(config.environments, sizes.intermediates, config.batch_size)
        steps = config.schedule * config.epochs * parts
        rate = optax.cosine_decay_schedule(config.learning_rate, steps, config.last_rate)
        super().__init__(config, sizes, parts, optax.adamw(rate, weight_decay=config.l2_weight))

    def network(self, key: Array) -> PolicyValueNetwork:
        return PolicyValueNetwork.joint(self.config.network, self.sizes, key)

    def play(
        self,
        network: PolicyValueNetwork,
        boards: Boards,
        tasks: Array,
        keys: Array,
        best: Best,
        moves: int | None = None,
    ) -> tuple[Episodes, Array]:
        """Play a game of each task, or its first ``moves`` moves. Also returns the improved policies."""
        environments = boards.environments(tasks)
        styles = jax.vmap(self._style)(keys)
        openings = _openings(boards, tasks, best, styles.opening)

        def choose(number: Array, states: GameState, keys: Array) -> tuple[Array, Array]:
            search = environments.each(partial(self._search, network))
            actions, policies = search(states, environments.references, styles, keys)
            opening = openings[:, number]
            given, is_given = jax.nn.one_hot(opening, policies.shape[-1], dtype=policies.dtype), opening != NO_ACTION
            return jnp.where(is_given, opening, actions), jnp.where(is_given[:, None], given, policies)

        return environments.play(choose, keys, self.sizes.intermediates if moves is None else moves)

    def lessons(self, boards: Boards, episodes: Episodes, notes: Array, best: Best) -> tuple[Array, Array]:
        """The played games. Some are replaced by the best known order of the task, with certain moves."""
        games, vertices = len(notes), notes.shape[-1]
        reverse = jnp.sum(boards.tables.intermediate, 1, keepdims=True, dtype=jnp.int32) - 1 - jnp.arange(vertices)
        examples = jnp.where((best.cost < boards.references)[:, None], best.actions, reverse)
        imitated = jnp.arange(games) < round(self.config.imitation * games)
        actions = jnp.where(imitated[:, None], examples[episodes.tasks], episodes.actions)
        certain = jax.nn.one_hot(actions, vertices, dtype=notes.dtype)
        return actions, jnp.where(imitated[:, None, None], certain, notes)

    def _style(self, key: Array) -> Style:
        """How to play a game, which depends only on its key."""
        config, (noise, trust, opening) = self.config, jax.random.uniform(key, (3,))
        return Style(
            noise=_between(config.least_gumbel_scale, config.gumbel_scale, noise),
            trust=_between(config.least_trust, 1.0, trust),
            opening=jnp.where(opening < config.restarts, opening / (config.restarts or 1.0), 0.0),
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
        return policy_loss + self.config.value_weight * value_loss, metrics


def _between(least: float, most: float, share: Array) -> Array:
    return least + share * (most - least)


def _openings(boards: Boards, tasks: Array, best: Best, shares: Array) -> Array:
    """The moves that are given in each game: those of the best order so far, then `NO_ACTION`."""
    moves = shares * jnp.sum(boards.tables.intermediate, 1)[tasks]
    is_given = (jnp.arange(best.actions.shape[1]) < moves[:, None]) & jnp.isfinite(best.cost)[tasks, None]
    return jnp.where(is_given, best.actions[tasks], NO_ACTION)
