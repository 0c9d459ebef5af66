"""Gumbel AlphaZero: self-play with a tree search whose model is the game itself, and a network that learns from it.

An iteration plays one game in every environment. Each move is chosen by Gumbel MuZero's search from the network's
policy and values; the network is then trained towards the policy that the search improved and the costs that were
really paid.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

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
from .updates import number_of_minibatches


@dataclass(frozen=True)
class AlphaZeroConfig:
    """How AlphaZero plays and learns; the defaults are the paper's.

    Attributes:
        environments: games played at the same time.
        simulations: simulations of the tree search per move.
        considered_actions: the number of actions that the search considers at the root.
        gumbel_scale: scale of the Gumbel noise added to root logits.
        least_gumbel_scale: each game has a scale of its own between this and ``gumbel_scale``: games with little noise
            show what the agent can do, games with more of it what else there is.
        c_visit, c_scale: how much the search trusts its values over the policy.
        value_units: what differences between values are measured in: "range" (of all values in the tree, be they as
            alike as they may) or "reference" (what reverse mode costs).
        batch_size: states in one step of the optimizer, at most; whole games are kept together.
        epochs: number of times that each game is used for learning.
        value_weight: weight of the value loss; the policy loss has weight 1.
        l2_weight: decay of the weights, apart from the gradient.
        learning_rate, schedule, last_rate: annealed along a cosine over so many iterations to this share of it.
        imitation: the share of games that are learnt from the best order found so far instead of their own moves, or
            from reverse mode as long as that is better.
        largest_gradient: norm to which gradients are clipped.
        scaling: the scaling of costs to go, see `reward_scaling`.
        states_at_once: how many states are in memory while a gradient is computed, but at least one move of each game
            in a minibatch. Fewer states need less memory; the updates are the same.
        network: its shape.
    """

    environments: int = 32
    simulations: int = 50
    considered_actions: int = 5
    gumbel_scale: float = 1.0
    least_gumbel_scale: float = 1.0
    c_visit: float = 25.0
    c_scale: float = 0.01
    value_units: str = "range"
    batch_size: int = 4096
    epochs: int = 1
    value_weight: float = 10.0
    l2_weight: float = 0.01
    learning_rate: float = 1e-3
    schedule: int = 5000
    last_rate: float = 0.0
    imitation: float = 0.0
    largest_gradient: float = 1.0
    scaling: str = "root"
    states_at_once: int = 1024
    network: AnyNetworkConfig = field(default_factory=NetworkConfig)


class AlphaZero(Agent):
    """The agent; it notes the improved policy of each move, [games, moves, actions]."""

    name = "alphazero"

    def __init__(self, config: AlphaZeroConfig, sizes: Sizes):
        parts = number_of_minibatches(config.environments, sizes.intermediates, config.batch_size)
        steps = config.schedule * config.epochs * parts
        rate = optax.cosine_decay_schedule(config.learning_rate, steps, config.last_rate)
        super().__init__(config, sizes, parts, optax.adamw(rate, weight_decay=config.l2_weight))

    def network(self, key: Array) -> PolicyValueNetwork:
        return PolicyValueNetwork.joint(self.config.network, self.sizes, key)

    def play(
        self, network: PolicyValueNetwork, boards: Boards, tasks: Array, keys: Array, moves: int | None = None
    ) -> tuple[Episodes, Array]:
        """A game of each task, or its first moves; also the improved policies."""
        environments = boards.environments(tasks)
        noise = self._noise(keys)

        def choose(states: GameState, keys: Array) -> tuple[Array, Array]:
            return environments.each(partial(self._search, network))(states, environments.references, noise, keys)

        return environments.play(choose, keys, self.sizes.intermediates if moves is None else moves)

    def lessons(self, boards: Boards, episodes: Episodes, notes: Array, best: Best) -> tuple[Array, Array]:
        """What was played, but in some games the best order known for the task, each move of it beyond doubt."""
        games, vertices = len(notes), notes.shape[-1]
        reverse = jnp.sum(boards.tables.intermediate, 1, keepdims=True, dtype=jnp.int32) - 1 - jnp.arange(vertices)
        examples = jnp.where((best.cost < boards.references)[:, None], best.actions, reverse)
        imitated = jnp.arange(games) < round(self.config.imitation * games)
        actions = jnp.where(imitated[:, None], examples[episodes.tasks], episodes.actions)
        certain = jax.nn.one_hot(actions, vertices, dtype=notes.dtype)
        return actions, jnp.where(imitated[:, None, None], certain, notes)

    def _noise(self, keys: Array) -> Array:
        """The scale of the noise in each game, which goes with its key alone."""
        least, most = self.config.least_gumbel_scale, self.config.gumbel_scale
        return jax.vmap(lambda key: jax.random.uniform(key, minval=least, maxval=most))(keys)

    def _search(
        self,
        network: PolicyValueNetwork,
        tables: GameTables,
        state: GameState,
        reference: Array,
        noise: Array,
        key: Array,
    ) -> tuple[Array, Array]:
        """The action to take and the improved policy.

        mctx wants a batch, with one key. Each game is a batch of its own, so that it does not depend on the others.
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
                value_scale=self.config.c_scale,
                maxvisit_init=self.config.c_visit,
                rescale_values=self.config.value_units == "range",
            ),
            max_num_considered_actions=self.config.considered_actions,
            gumbel_scale=noise,
        )
        return found.action[0].astype(jnp.int32), found.action_weights[0].astype(jnp.float32)

    def _simulate(self, params: Any, key: Array, actions: Array, states: GameState) -> tuple[Any, GameState]:
        """The model of the search: one move of the true game."""
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
        """The policy's logits and the value, which is minus the cost to go in units of the reference."""
        logits, prediction = network(tables, state)
        return logits, -self._values.cost(prediction, reference)

    def loss(self, environments: Environments, network: PolicyValueNetwork, batch: Batch) -> tuple[Array, Metrics]:
        logits, predictions = jax.vmap(environments.each(network))(batch.states)
        policy_loss = jnp.sum(batch.weights * optax.softmax_cross_entropy(logits, batch.notes))
        value_loss = jnp.sum(batch.weights * jnp.square(predictions - batch.targets))
        entropy = jnp.sum(batch.weights * jnp.sum(jax.scipy.special.entr(batch.notes), -1))
        metrics = {"policy_loss": policy_loss, "value_loss": value_loss, "target_entropy": entropy}
        return policy_loss + self.config.value_weight * value_loss, metrics
