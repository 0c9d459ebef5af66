"""A graph that is small enough to learn in a test, and agents that are small enough to learn it."""

from functools import cache

from alphagrad.agents.alphazero import AlphaZeroConfig
from alphagrad.agents.networks import GraphNetworkConfig, NetworkConfig
from alphagrad.agents.ppo import PPOConfig
from alphagrad.tasks.random_functions import random_function
from graphax import ComputationGraph, build_graph

NETWORK = NetworkConfig(
    layers=1, embedding=16, heads=2, hidden=32, channels=2, policy_hidden=(32,), value_hidden=(32, 16)
)
GRAPH = GraphNetworkConfig(layers=1, embedding=16, hidden=16, policy_hidden=(8,), value_hidden=(8,))
ALPHAZERO = AlphaZeroConfig(
    environments=16, simulations=8, considered_actions=4, c_scale=0.1, epochs=4, learning_rate=3e-3, network=NETWORK
)
PPO = PPOConfig(
    environments=32, minibatches=2, epochs=4, learning_rate=3e-3, policy_network=NETWORK, value_network=NETWORK
)
AGENTS = {"alphazero": ALPHAZERO, "ppo": PPO}


@cache
def tiny_graph(seed: int = 211, intermediates: int = 7) -> ComputationGraph:
    """A small graph. By default, forward, reverse and Markowitz miss the best order, which few random orders hit."""
    function = random_function(seed, inputs=3, outputs=2, intermediates=intermediates, ranks=(0, 1), sizes=(2, 3))
    return build_graph(function, *function.args, argnums=(0, 1, 2))
