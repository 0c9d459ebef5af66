"""Seeded random neural networks: common layers on a vector or on a sequence of vectors, often with a loss."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

Layer = Callable[..., Any]


def random_network(seed: int) -> tuple[Callable, tuple[np.ndarray, ...]]:
    """A function of an input and parameters, with example arguments."""
    builder = _NetworkBuilder(np.random.default_rng([seed, 3]))
    layers = [builder.layer() for _ in range(builder.rng.integers(2, 7))]
    with_loss, residual = builder.rng.random() < 0.7, builder.rng.random(len(layers)) < 0.4
    target = builder.rng.normal(size=builder.shape)

    def network(x, *parameters):
        for (layer, places), skips in zip(layers, residual, strict=True):
            new = layer(x, *(parameters[place] for place in places))
            x = x + new if skips and new.shape == x.shape else new
        return jnp.sum((x - target) ** 2) if with_loss else x

    return network, (builder.rng.normal(size=builder.first_shape), *builder.parameters)


class _NetworkBuilder:
    """Draws layers one after the other and creates their parameters."""

    def __init__(self, rng: np.random.Generator):
        self.rng = rng
        width = int(rng.integers(2, 9))
        self.first_shape = (width,) if rng.random() < 0.5 else (int(rng.integers(2, 7)), width)
        self.shape = self.first_shape
        self.parameters: list[np.ndarray] = []

    def layer(self) -> tuple[Layer, list[int]]:
        """A random layer, and the indices of its parameters."""
        kinds = [self.dense, self.activation, self.norm, self.softmax, self.gate]
        if len(self.shape) == 2:
            kinds.append(self.attention)
        first = len(self.parameters)
        layer = kinds[self.rng.integers(len(kinds))]()
        return layer, list(range(first, len(self.parameters)))

    def dense(self) -> Layer:
        before, after = self.shape[-1], int(self.rng.integers(2, 9))
        self.shape = (*self.shape[:-1], after)
        self._parameter(before, after)
        self._parameter(after)
        return lambda x, w, b: x @ w + b

    def activation(self) -> Layer:
        return [jnp.tanh, jnp.sin, lambda x: 1 / (1 + jnp.exp(-x)), lambda x: x * x][self.rng.integers(4)]

    def norm(self) -> Layer:
        self._parameter(*(() if self.rng.random() < 0.5 else self.shape[-1:]))
        return _norm

    def softmax(self) -> Layer:
        return _softmax

    def gate(self) -> Layer:
        self._parameter(self.shape[-1], self.shape[-1])
        return lambda x, w: x * jnp.tanh(x @ w)

    def attention(self) -> Layer:
        for _ in range(3):
            self._parameter(self.shape[-1], self.shape[-1])
        return lambda x, q, k, v: _softmax((x @ q) @ (x @ k).T) @ (x @ v)

    def _parameter(self, *shape: int) -> None:
        self.parameters.append(np.asarray(self.rng.normal(size=shape)))


def _norm(x, gain):
    centred = x - jnp.mean(x, -1, keepdims=True)
    return gain * centred / jnp.sqrt(jnp.mean(centred * centred, -1, keepdims=True) + 1e-5)


def _softmax(x):
    powers = jnp.exp(x - jnp.max(x, -1, keepdims=True))
    return powers / jnp.sum(powers, -1, keepdims=True)
