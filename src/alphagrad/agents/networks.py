"""The networks that play VertexGame: they return logits of all actions and the value of a state."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from .. import game
from ..game import GameState, GameTables, Sizes
from .graph_network import GraphNetwork, GraphNetworkConfig
from .token_network import NetworkConfig, TokenNetwork

AnyNetworkConfig = NetworkConfig | GraphNetworkConfig
Role = Literal["policy", "value"]
# The logit of an illegal action. Its probability is zero, and its product with zero is zero as well.
ILLEGAL = -1e9


class PolicyValueNetwork(eqx.Module):
    """Returns logits of all actions and the value of the state, which is a sum over its vertices."""

    parts: list[TokenNetwork | GraphNetwork]

    @staticmethod
    def joint(config: AnyNetworkConfig, sizes: Sizes, key: Array) -> "PolicyValueNetwork":
        """One network with two heads."""
        return PolicyValueNetwork([_part(config, sizes, ("policy", "value"), key)])

    @staticmethod
    def separate(policy: AnyNetworkConfig, value: AnyNetworkConfig, sizes: Sizes, key: Array) -> "PolicyValueNetwork":
        """One network for the policy and one for the value."""
        policy_key, value_key = jax.random.split(key)
        return PolicyValueNetwork(
            [_part(policy, sizes, ("policy",), policy_key), _part(value, sizes, ("value",), value_key)]
        )

    def __call__(self, tables: GameTables, state: GameState) -> tuple[Array, Array]:
        scores = jnp.concatenate([part(tables, state) for part in self.parts])
        return masked(scores, game.legal_actions(tables, state))


def masked(scores: Array, alive: Array) -> tuple[Array, Array]:
    """The logits and the value from scores of shape [2, vertices]."""
    policy, value = scores
    return jnp.where(alive, policy, ILLEGAL), jnp.sum(jnp.where(alive, value, 0.0))


def _part(config: AnyNetworkConfig, sizes: Sizes, roles: tuple[Role, ...], key: Array) -> TokenNetwork | GraphNetwork:
    if isinstance(config, GraphNetworkConfig):
        return GraphNetwork(config, roles, key)
    hidden = {"policy": config.policy_hidden, "value": config.value_hidden}
    return TokenNetwork(config, sizes, [hidden[role] for role in roles], key)
