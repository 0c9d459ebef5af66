"""The paper's network: one token per intermediate vertex, a transformer, and heads over its tokens.

A token is the part of the adjacency tensor that belongs to a vertex: the row of its incoming edges and the column of
its outgoing edges, with five numbers per edge. A convolution over three edges and all five numbers compresses it, and a
linear map turns it into an embedding. The current cost of eliminating the vertex is added to the embedding. Vertices
that are eliminated or padding are excluded from slices, attention and heads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .. import game
from ..game import GameState, GameTables, Sizes
from .layers import Head, linear

# The number of features per edge, and the number of adjacent edges that the convolution sees.
FEATURES, KERNEL = 5, 3
# The number of features per vertex besides its edges: its price and its degrees.
HINTS = 3
# Sparsity types range from -11 to 11.
LARGEST_TYPE = 11


@dataclass(frozen=True)
class NetworkConfig:
    """The shape of a network. The defaults are those of the paper.

    Attributes:
        layers: transformer layers.
        embedding: size of a token.
        heads: number of attention heads, which share the embedding.
        hidden: width of the MLP in a transformer layer.
        channels: filters of the convolution.
        policy_hidden, value_hidden: hidden layers of the heads.
        dtype: the dtype in which the transformer computes; parameters are float32.
    """

    layers: int = 6
    embedding: int = 64
    heads: int = 4
    hidden: int = 256
    channels: int = 4
    policy_hidden: tuple[int, ...] = (256, 128)
    value_hidden: tuple[int, ...] = (256, 128, 64)
    dtype: str = "float32"


class TransformerLayer(eqx.Module):
    """Attention among the live tokens, and an MLP per token."""

    heads: int = eqx.field(static=True)
    attention_norm: eqx.nn.LayerNorm
    query_key_value: eqx.nn.Linear
    mixed: eqx.nn.Linear
    mlp_norm: eqx.nn.LayerNorm
    widen: eqx.nn.Linear
    narrow: eqx.nn.Linear

    def __init__(self, config: NetworkConfig, key: Array):
        size, keys = config.embedding, jax.random.split(key, 4)
        self.heads = config.heads
        self.attention_norm = eqx.nn.LayerNorm(size, dtype=jnp.float32)
        self.mlp_norm = eqx.nn.LayerNorm(size, dtype=jnp.float32)
        self.query_key_value = linear(size, 3 * size, keys[0])
        self.mixed = linear(size, size, keys[1])
        self.widen = linear(size, config.hidden, keys[2])
        self.narrow = linear(config.hidden, size, keys[3])

    def __call__(self, tokens: Array, alive: Array) -> Array:
        tokens = tokens + self._attention(jax.vmap(self.attention_norm)(tokens), alive)
        hidden = jax.nn.gelu(jax.vmap(self.widen)(jax.vmap(self.mlp_norm)(tokens)))
        return tokens + jax.vmap(self.narrow)(hidden)

    def _attention(self, tokens: Array, alive: Array) -> Array:
        split = jax.vmap(self.query_key_value)(tokens).reshape(len(tokens), 3, self.heads, -1)
        query, key, value = jnp.moveaxis(split, 1, 0)
        seen = jax.nn.dot_product_attention(query, key, value, mask=alive[None, None, :])
        return jax.vmap(self.mixed)(seen.reshape(tokens.shape))


class TokenNetwork(eqx.Module):
    """Maps an observation [5, targets, sources] and hints [vertices, 3] to numbers of shape [heads, vertices]."""

    inputs: int = eqx.field(static=True)
    dtype: str = eqx.field(static=True)
    convolution: Array
    convolution_bias: Array
    projection: eqx.nn.Linear
    hints: eqx.nn.Linear
    layers: list[TransformerLayer]
    norm: eqx.nn.LayerNorm
    heads: list[Head]

    def __init__(self, config: NetworkConfig, sizes: Sizes, heads: Sequence[Sequence[int]], key: Array):
        conv_key, projection_key, hints_key, layers_key, heads_key = jax.random.split(key, 5)
        size, edges = config.embedding, sizes.inputs + 2 * sizes.intermediates + sizes.outputs
        self.inputs, self.dtype = sizes.inputs, config.dtype
        shape = (KERNEL, FEATURES, config.channels)
        self.convolution = jax.random.normal(conv_key, shape, jnp.float32) / np.float32(np.sqrt(KERNEL * FEATURES))
        self.convolution_bias = jnp.zeros(config.channels, jnp.float32)
        self.projection = linear((edges - KERNEL + 1) * config.channels, size, projection_key)
        self.hints = linear(HINTS, size, hints_key)
        self.layers = [TransformerLayer(config, each) for each in jax.random.split(layers_key, config.layers)]
        self.norm = eqx.nn.LayerNorm(size, dtype=jnp.float32)
        keys = jax.random.split(heads_key, len(heads))
        self.heads = [Head(size, hidden, each) for hidden, each in zip(heads, keys, strict=True)]

    def __call__(self, tables: GameTables, state: GameState) -> Array:
        return self.judged(game.observe(tables, state), hints(tables, state), game.legal_actions(tables, state))

    def judged(self, observation: Array, hints: Array, alive: Array) -> Array:
        computed = jax.tree.map(lambda weight: weight.astype(self.dtype), self)
        slices = _slices(observation, alive, self.inputs).astype(self.dtype)
        tokens = jax.vmap(computed.projection)(computed._compressed(slices))
        tokens = tokens + jax.vmap(computed.hints)(hints.astype(self.dtype))
        tokens = tokens + _positions(*tokens.shape).astype(self.dtype)
        for layer in computed.layers:
            tokens = layer(tokens, alive)
        tokens = jax.vmap(computed.norm)(tokens).astype(jnp.float32)
        return jnp.stack([jax.vmap(head)(tokens) for head in self.heads])

    def _compressed(self, slices: Array) -> Array:
        """Apply the convolution: [vertices, 5, edges] to [vertices, features].

        It is written as multiplications and additions, which become one kernel; libraries are slow with so few
        channels.
        """
        length = slices.shape[-1] - KERNEL + 1
        filtered = self.convolution_bias[:, None]
        for shift, feature in product(range(KERNEL), range(FEATURES)):
            window = slices[:, feature, None, shift : shift + length]
            filtered = filtered + window * self.convolution[shift, feature, :, None]
        return jax.nn.relu(filtered).reshape(len(slices), -1)


def hints(tables: GameTables, state: GameState) -> Array:
    """Per vertex, the logarithms of its price and degrees.

    A network could derive the prices from the tensor, but only by counting, which it is slow to learn.
    """
    known = jnp.stack([game.prices(tables, state), *game.degrees(tables, state)], -1)
    return jnp.log1p(known.astype(jnp.float32))


def _slices(observation: Array, alive: Array, inputs: int) -> Array:
    """Per intermediate vertex, its incoming and outgoing edges, of shape [vertices, 5, sources + targets]."""
    vertices, outputs = len(alive), observation.shape[-2] - len(alive)
    targets = jnp.pad(alive, (0, outputs), constant_values=True)
    sources = jnp.pad(alive, (inputs, 0), constant_values=True)
    # Computed once: otherwise the compiler would repeat all this for every product of the convolution.
    edges = jax.lax.optimization_barrier(jnp.where(targets[:, None] & sources, _tamed(observation), 0.0))
    incoming, outgoing = edges[:, :vertices].swapaxes(0, 1), jnp.moveaxis(edges[..., inputs:], -1, 0)
    return jnp.concatenate([incoming, outgoing], -1)


def _tamed(observation: Array) -> Array:
    """Sparsity types and logarithms of sizes, all scaled to a magnitude of about 1."""
    observation = observation.astype(jnp.float32)
    return jnp.concatenate([observation[:1] / LARGEST_TYPE, jnp.log1p(observation[1:])])


def _positions(length: int, size: int) -> Array:
    """The sinusoidal encoding of the positions 0, 1, ..."""
    rates = 10000.0 ** (-np.arange(0, size, 2) / size)
    angles = np.arange(length)[:, None] * rates
    return jnp.asarray(np.stack([np.sin(angles), np.cos(angles)], -1).reshape(length, -1)[:, :size], jnp.float32)
