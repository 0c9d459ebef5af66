"""What both agents share in learning: minibatches of whole games, and means over devices."""

from typing import Any

import jax

# The mesh axis along which environments are spread.
DEVICES = "devices"


def number_of_minibatches(environments: int, moves: int, batch_size: int) -> int:
    """The fewest parts of equal size that have at most ``batch_size`` states each, if one game has no more."""
    parts = [parts for parts in range(1, environments + 1) if environments % parts == 0]
    return next((number for number in parts if environments // number * moves <= batch_size), environments)


def minibatches(games: Any, number: int) -> Any:
    """[games, ...] to [number, games / number, ...]; on however many devices, game n goes to part n modulo number."""
    return jax.tree.map(lambda leaf: leaf.reshape(-1, number, *leaf.shape[1:]).swapaxes(0, 1), games)


def mean_over_devices(values: Any) -> Any:
    return jax.lax.pmean(values, DEVICES)
