"""Layers that several networks share."""

from collections.abc import Sequence
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array


class Head(eqx.Module):
    """An MLP from a token to one number."""

    layers: list[eqx.nn.Linear]

    def __init__(self, inputs: int, hidden: Sequence[int], key: Array):
        widths, keys = (inputs, *hidden, 1), jax.random.split(key, len(hidden) + 1)
        *layers, last = (linear(*pair, each) for pair, each in zip(pairwise(widths), keys, strict=True))
        # Start close to zero: all actions alike, and a neutral value.
        self.layers = [*layers, jax.tree.map(lambda leaf: 0.01 * leaf, last)]

    def __call__(self, token: Array) -> Array:
        for layer in self.layers[:-1]:
            token = jax.nn.relu(layer(token))
        return self.layers[-1](token)[0]


def linear(inputs: int, outputs: int, key: Array) -> eqx.nn.Linear:
    return eqx.nn.Linear(inputs, outputs, dtype=jnp.float32, key=key)
