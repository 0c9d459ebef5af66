"""Configurations of the agents by name."""

from .alphazero import AlphaZeroConfig
from .networks import GraphNetworkConfig, NetworkConfig
from .ppo import PPOConfig

# Smaller than the paper's network, in half precision: more games in ten minutes on one device.
SMALL = NetworkConfig(layers=3, channels=2, dtype="bfloat16")
# Sees the cost of each vertex and the effects of its elimination on others, so it plays well from the start.
GRAPH = GraphNetworkConfig(dtype="bfloat16")
PRESETS: dict[str, dict[str, AlphaZeroConfig | PPOConfig]] = {
    "alphazero": {
        "paper": AlphaZeroConfig(),
        # Minibatches of eight games of a hundred moves. One H200 plays 65 such iterations in four minutes. The learning
        # rate is zero by then, so longer runs need a longer schedule.
        "small": AlphaZeroConfig(
            environments=128,
            simulations=32,
            considered_actions=16,
            c_scale=0.1,
            batch_size=1100,
            epochs=4,
            schedule=65,
            network=SMALL,
        ),
        # On a GPU, a move of many games takes about as long as a move of few: launching programs dominates.
        "graph": AlphaZeroConfig(
            environments=512,
            simulations=32,
            considered_actions=16,
            least_gumbel_scale=0.0,
            c_scale=3.0,
            least_trust=0.0,
            most_noise=2.0,
            value_units="reference",
            batch_size=1700,
            epochs=2,
            value_weight=100.0,
            l2_weight=1e-4,
            schedule=150,
            last_rate=0.1,
            imitation=0.125,
            following=0.5,
            following_gumbel_scale=3.0,
            scaling="linear",
            states_at_once=4096,
            network=GRAPH,
        ),
    },
    "ppo": {
        "paper": PPOConfig(),
        "small": PPOConfig(environments=256, entropy_weight=0.003, policy_network=SMALL, value_network=SMALL),
        "graph": PPOConfig(
            environments=512,
            minibatches=16,
            entropy_weight=0.003,
            value_weight=100.0,
            learning_rate=5e-4,
            scaling="linear",
            states_at_once=4096,
            policy_network=GRAPH,
            value_network=GRAPH,
        ),
    },
}
