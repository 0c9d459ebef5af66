"""The networks that play VertexGame: one token for each intermediate vertex, a transformer, and heads over its tokens.

A token is what the adjacency tensor says of a vertex: the row of its incoming and the column of its outgoing edges,
five numbers an edge. A convolution that sees three edges and all five numbers compresses it, and a linear map makes it
an embedding, to which what eliminating the vertex would cost now is added. Vertices that are eliminated or padding take
no part: not in a slice, not in attention, not in a head.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..game.rules import Sizes

# What an edge is described by, and how many edges next to each other the convolution sees.
FEATURES, KERNEL = 5, 3
# What a vertex is described by besides its edges: its price and its degrees.
HINTS = 3
# Sparsity types go from -11 to 11.
LARGEST_TYPE = 11
# The logit of an action that is not legal: its probability is zero, and its product with zero still is.
ILLEGAL = -1e9


@dataclass(frozen=True)
class NetworkConfig:
    """The shape of a network; the defaults are the paper's.

    Attributes:
        layers: transformer layers.
        embedding: numbers in a token.
        heads: of attention, which share the embedding.
        hidden: width of the MLP in a transformer layer.
        channels: filters of the convolution.
        policy_hidden, value_hidden: hidden layers of the heads.
        dtype: what the transformer computes in; parameters are float32.
    """

    layers: int = 6
    embedding: int = 64
    heads: int = 4
    hidden: int = 256
    channels: int = 4
    policy_hidden: tuple[int, ...] = (256, 128)
    value_hidden: tuple[int, ...] = (256, 128, 64)
    dtype: str = "float32"


class Dense(eqx.Module):
    """A linear map of the last axis, and an offset."""

    weight: Array
    bias: Array

    def __init__(self, inputs: int, outputs: int, key: Array, gain: float = 1.0):
        self.weight = gain * jax.random.normal(key, (inputs, outputs), jnp.float32) / np.float32(np.sqrt(inputs))
        self.bias = jnp.zeros(outputs, jnp.float32)

    def __call__(self, x: Array) -> Array:
        return x @ self.weight + self.bias


class LayerNorm(eqx.Module):
    """Tokens with mean 0 and variance 1, then a scale and an offset."""

    scale: Array
    offset: Array

    def __init__(self, size: int):
        self.scale, self.offset = jnp.ones(size, jnp.float32), jnp.zeros(size, jnp.float32)

    def __call__(self, x: Array) -> Array:
        return jax.nn.standardize(x, epsilon=1e-5) * self.scale + self.offset


class TransformerLayer(eqx.Module):
    """Attention among the tokens that are alive, and an MLP for each."""

    heads: int = eqx.field(static=True)
    attention_norm: LayerNorm
    query_key_value: Dense
    mixed: Dense
    mlp_norm: LayerNorm
    widen: Dense
    narrow: Dense

    def __init__(self, config: NetworkConfig, key: Array):
        size, keys = config.embedding, jax.random.split(key, 4)
        self.heads = config.heads
        self.attention_norm, self.mlp_norm = LayerNorm(size), LayerNorm(size)
        self.query_key_value = Dense(size, 3 * size, keys[0])
        self.mixed = Dense(size, size, keys[1])
        self.widen = Dense(size, config.hidden, keys[2])
        self.narrow = Dense(config.hidden, size, keys[3])

    def __call__(self, tokens: Array, alive: Array) -> Array:
        tokens = tokens + self._attention(self.attention_norm(tokens), alive)
        return tokens + self.narrow(jax.nn.gelu(self.widen(self.mlp_norm(tokens))))

    def _attention(self, tokens: Array, alive: Array) -> Array:
        *batch, length, size = tokens.shape
        split = self.query_key_value(tokens).reshape(*batch, length, 3, self.heads, size // self.heads)
        query, key, value = (split[..., part, :, :] for part in range(3))
        scores = jnp.einsum("...qhd,...khd->...hqk", query, key) / np.sqrt(size // self.heads).astype(tokens.dtype)
        scores = jnp.where(alive[..., None, None, :], scores.astype(jnp.float32), ILLEGAL)
        weights = jax.nn.softmax(scores).astype(tokens.dtype)
        return self.mixed(jnp.einsum("...hqk,...khd->...qhd", weights, value).reshape(tokens.shape))


class Backbone(eqx.Module):
    """From observations [..., 5, targets, sources] and hints [..., vertices, 3] to a token for each vertex."""

    inputs: int = eqx.field(static=True)
    dtype: str = eqx.field(static=True)
    convolution: Array
    convolution_bias: Array
    projection: Dense
    hints: Dense
    layers: list[TransformerLayer]
    norm: LayerNorm

    def __init__(self, config: NetworkConfig, sizes: Sizes, key: Array):
        conv_key, projection_key, hints_key, *layer_keys = jax.random.split(key, 3 + config.layers)
        edges = sizes.inputs + 2 * sizes.intermediates + sizes.outputs
        self.inputs, self.dtype = sizes.inputs, config.dtype
        shape = (KERNEL, FEATURES, config.channels)
        self.convolution = jax.random.normal(conv_key, shape, jnp.float32) / np.float32(np.sqrt(KERNEL * FEATURES))
        self.convolution_bias = jnp.zeros(config.channels, jnp.float32)
        self.projection = Dense((edges - KERNEL + 1) * config.channels, config.embedding, projection_key)
        self.hints = Dense(HINTS, config.embedding, hints_key)
        self.layers = [TransformerLayer(config, layer_key) for layer_key in layer_keys]
        self.norm = LayerNorm(config.embedding)

    def __call__(self, observation: Array, hints: Array, alive: Array) -> Array:
        computed = jax.tree.map(lambda weight: weight.astype(self.dtype), self)
        tokens = computed.projection(computed._compressed(_slices(observation, alive, self.inputs).astype(self.dtype)))
        tokens = tokens + computed.hints(hints.astype(self.dtype)) + _positions(*tokens.shape[-2:]).astype(self.dtype)
        for layer in computed.layers:
            tokens = layer(tokens, alive)
        return computed.norm(tokens).astype(jnp.float32)

    def _compressed(self, slices: Array) -> Array:
        """[..., vertices, 5, edges] to [..., vertices, features] by the convolution.

        Written as multiplications and additions, which become one kernel; libraries are slow on so few channels.
        """
        length = slices.shape[-1] - KERNEL + 1
        filtered = self.convolution_bias[:, None]
        for shift, feature in product(range(KERNEL), range(FEATURES)):
            window = slices[..., feature, None, shift : shift + length]
            filtered = filtered + window * self.convolution[shift, feature, :, None]
        active = jax.nn.relu(filtered)
        return active.reshape(*active.shape[:-2], -1)


class Head(eqx.Module):
    """An MLP from a token to one number."""

    layers: list[Dense]

    def __init__(self, inputs: int, hidden: Sequence[int], key: Array):
        widths, keys = (inputs, *hidden), jax.random.split(key, len(hidden) + 1)
        self.layers = [Dense(*pair, layer_key) for pair, layer_key in zip(pairwise(widths), keys[:-1], strict=True)]
        # Close to zero at first: all actions alike, and no opinion of the value.
        self.layers.append(Dense(widths[-1], 1, keys[-1], gain=0.01))

    def __call__(self, tokens: Array) -> Array:
        for layer in self.layers[:-1]:
            tokens = jax.nn.relu(layer(tokens))
        return self.layers[-1](tokens)[..., 0]


class PolicyNetwork(eqx.Module):
    """Logits of all actions."""

    backbone: Backbone
    head: Head

    def __init__(self, config: NetworkConfig, sizes: Sizes, key: Array):
        backbone_key, head_key = jax.random.split(key)
        self.backbone = Backbone(config, sizes, backbone_key)
        self.head = Head(config.embedding, config.policy_hidden, head_key)

    def __call__(self, observation: Array, hints: Array, alive: Array) -> Array:
        return _logits(self.head(self.backbone(observation, hints, alive)), alive)


class ValueNetwork(eqx.Module):
    """The value of a state: a sum over its vertices."""

    backbone: Backbone
    head: Head

    def __init__(self, config: NetworkConfig, sizes: Sizes, key: Array):
        backbone_key, head_key = jax.random.split(key)
        self.backbone = Backbone(config, sizes, backbone_key)
        self.head = Head(config.embedding, config.value_hidden, head_key)

    def __call__(self, observation: Array, hints: Array, alive: Array) -> Array:
        return _total(self.head(self.backbone(observation, hints, alive)), alive)


class PolicyValueNetwork(eqx.Module):
    """Logits of all actions and the value of the state, from one backbone."""

    backbone: Backbone
    policy: Head
    value: Head

    def __init__(self, config: NetworkConfig, sizes: Sizes, key: Array):
        backbone_key, policy_key, value_key = jax.random.split(key, 3)
        self.backbone = Backbone(config, sizes, backbone_key)
        self.policy = Head(config.embedding, config.policy_hidden, policy_key)
        self.value = Head(config.embedding, config.value_hidden, value_key)

    def __call__(self, observation: Array, hints: Array, alive: Array) -> tuple[Array, Array]:
        tokens = self.backbone(observation, hints, alive)
        return _logits(self.policy(tokens), alive), _total(self.value(tokens), alive)


def _slices(observation: Array, alive: Array, inputs: int) -> Array:
    """For each intermediate vertex its incoming and outgoing edges: [..., vertices, 5, sources + targets]."""
    vertices = alive.shape[-1]
    outputs = observation.shape[-2] - vertices
    batch = alive.shape[:-1]
    targets = jnp.concatenate([alive, jnp.ones((*batch, outputs), bool)], -1)
    sources = jnp.concatenate([jnp.ones((*batch, inputs), bool), alive], -1)
    present = targets[..., None, :, None] & sources[..., None, None, :]
    # Made once: the compiler would rather repeat all this for every product of the convolution.
    edges = jax.lax.optimization_barrier(jnp.where(present, _tamed(observation), 0.0))
    incoming = jnp.moveaxis(edges[..., :vertices, :], -3, -2)
    outgoing = jnp.moveaxis(edges[..., inputs:], -1, -3)
    return jnp.concatenate([incoming, outgoing], -1)


def _tamed(observation: Array) -> Array:
    """Sparsity types and logarithms of sizes, all of about the size of 1."""
    observation = observation.astype(jnp.float32)
    types, sizes = observation[..., :1, :, :], observation[..., 1:, :, :]
    return jnp.concatenate([types / LARGEST_TYPE, jnp.log1p(sizes)], -3)


def _positions(length: int, size: int) -> Array:
    """The sinusoidal encoding of the places 0, 1, ..."""
    rates = 10000.0 ** (-np.arange(0, size, 2) / size)
    angles = np.arange(length)[:, None] * rates
    return jnp.asarray(np.stack([np.sin(angles), np.cos(angles)], -1).reshape(length, -1)[:, :size], jnp.float32)


def _logits(scores: Array, alive: Array) -> Array:
    return jnp.where(alive, scores, ILLEGAL)


def _total(scores: Array, alive: Array) -> Array:
    return jnp.sum(jnp.where(alive, scores, 0.0), -1)
