"""Configurations of the agents by name."""

from .alphazero import AlphaZeroConfig
from .networks import NetworkConfig
from .ppo import PPOConfig

# Smaller than the paper's, in half precision: more games in ten minutes on one device.
SMALL = NetworkConfig(layers=3, channels=2, dtype="bfloat16")
PRESETS: dict[str, dict[str, AlphaZeroConfig | PPOConfig]] = {
    "alphazero": {
        "paper": AlphaZeroConfig(),
        # Minibatches of eight games of a hundred moves. One H200 plays 65 such iterations in four minutes, and the
        # learning rate is zero then: longer runs want a longer schedule.
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
    },
    "ppo": {
        "paper": PPOConfig(),
        "small": PPOConfig(environments=256, entropy_weight=0.003, policy_network=SMALL, value_network=SMALL),
    },
}
