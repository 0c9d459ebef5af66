"""Configurations of the agents by name."""

from .alphazero import AlphaZeroConfig
from .networks import NetworkConfig
from .ppo import PPOConfig

# Smaller than the paper's, in half precision: more games in ten minutes on one device.
SMALL = NetworkConfig(layers=3, channels=2, dtype="bfloat16")
PRESETS: dict[str, dict[str, AlphaZeroConfig | PPOConfig]] = {
    "alphazero": {
        "paper": AlphaZeroConfig(),
        "small": AlphaZeroConfig(
            environments=256, simulations=32, considered_actions=8, c_scale=0.5, epochs=4, schedule=200, network=SMALL
        ),
    },
    "ppo": {
        "paper": PPOConfig(),
        "small": PPOConfig(environments=256, entropy_weight=0.003, policy_network=SMALL, value_network=SMALL),
    },
}
