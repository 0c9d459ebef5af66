"""A network on the graph itself: vertices tell their neighbours what they know, along the edges that are there now.

It begins with what is worth knowing of each vertex (`alphagrad.game.features`), so it plays well before it has learnt
anything: its first policy prefers vertices that are cheap and make others cheaper. It follows the cheaper of forward
and reverse mode, more closely the more the two differ. Numbers of vertices play no role, and nothing of it depends on
the size of a graph.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from .. import game
from ..game import FEATURES, GameState, GameTables
from .layers import Head, linear

# The first policy: logits of a vertex by its features. All of it can be unlearnt.
FIRST_LOGITS = {"price": -6.0, "change": -2.0, "distance": -80.0}


@dataclass(frozen=True)
class GraphNetworkConfig:
    """The shape of a network on the graph.

    Attributes:
        layers: rounds of messages between neighbours.
        embedding: size of the embedding of a vertex.
        hidden: width of the MLP in a layer.
        policy_hidden, value_hidden: hidden layers of the heads.
        dtype: the dtype in which the layers compute; parameters are float32.
    """

    layers: int = 3
    embedding: int = 64
    hidden: int = 128
    policy_hidden: tuple[int, ...] = (64,)
    value_hidden: tuple[int, ...] = (64,)
    dtype: str = "float32"


class GraphView(eqx.Module):
    """What the network sees of a state.

    Attributes:
        features: float32[vertices, features].
        edges: bool[vertices, vertices], whether there is an edge to the first from the second.
        extents: float32[vertices, vertices], the logarithm of how many numbers it stores.
        least: float32[vertices], what each vertex costs at least, in units of what reverse mode costs.
        alive: bool[vertices].
        vertices: float32[], how many intermediate vertices the whole graph has.
    """

    features: Array
    edges: Array
    extents: Array
    least: Array
    alive: Array
    vertices: Array

    @staticmethod
    def of(tables: GameTables, state: GameState) -> "GraphView":
        sizes = tables.sizes
        edges = state.edges[: sizes.intermediates, sizes.inputs :]
        return GraphView(
            game.describe(tables, state),
            edges != game.NO_EDGE,
            tables.extents[edges],
            tables.bounds / tables.reference,
            game.legal_actions(tables, state),
            jnp.maximum(jnp.sum(tables.intermediate), 1).astype(jnp.float32),
        )


class GraphLayer(eqx.Module):
    """Each vertex listens to its predecessors, its successors and to all, and thinks about it."""

    norm: eqx.nn.LayerNorm
    told: eqx.nn.Linear
    extent: Array
    widen: eqx.nn.Linear
    overall: eqx.nn.Linear
    narrow: eqx.nn.Linear

    def __init__(self, config: GraphNetworkConfig, key: Array):
        size, keys = config.embedding, jax.random.split(key, 4)
        self.norm = eqx.nn.LayerNorm(size, dtype=jnp.float32)
        self.told = linear(size, 2 * size, keys[0])
        self.extent = jnp.zeros(2, jnp.float32)
        self.widen = linear(3 * size, config.hidden, keys[1])
        self.overall = linear(size, config.hidden, keys[2])
        self.narrow = linear(config.hidden, size, keys[3])

    def __call__(self, tokens: Array, view: GraphView) -> Array:
        known = jax.vmap(self.norm)(tokens)
        downwards, upwards = jnp.split(jax.vmap(self.told)(known), 2, -1)
        before = self._weights(view, 0) @ downwards
        after = self._weights(view, 1).T @ upwards
        alive = view.alive.astype(tokens.dtype)
        pooled = alive @ known / jnp.maximum(jnp.sum(alive), 1)
        hidden = jax.vmap(self.widen)(jnp.concatenate([known, before, after], -1)) + self.overall(pooled)
        return tokens + jax.vmap(self.narrow)(jax.nn.gelu(hidden))

    def _weights(self, view: GraphView, side: int) -> Array:
        """How much each edge carries: the mean over the edges of a vertex, large ones more or less than small ones."""
        degree = jnp.maximum(jnp.sum(view.edges, 1 - side, keepdims=True), 1)
        carried = jnp.where(view.edges, (1.0 + self.extent[side] * view.extents) / degree, 0.0)
        return carried.astype(self.extent.dtype)


class GraphNetwork(eqx.Module):
    """From what is seen of a state to numbers [heads, vertices]: of a policy, of a value, or of both."""

    dtype: str = eqx.field(static=True)
    roles: tuple[str, ...] = eqx.field(static=True)
    embed: eqx.nn.Linear
    layers: list[GraphLayer]
    norm: eqx.nn.LayerNorm
    heads: list[Head]
    direct: Array

    def __init__(self, config: GraphNetworkConfig, roles: Sequence[str], key: Array):
        embed_key, layers_key, heads_key = jax.random.split(key, 3)
        self.dtype, self.roles = config.dtype, tuple(roles)
        self.embed = linear(len(FEATURES), config.embedding, embed_key)
        self.layers = [GraphLayer(config, each) for each in jax.random.split(layers_key, config.layers)]
        self.norm = eqx.nn.LayerNorm(config.embedding, dtype=jnp.float32)
        hidden = {"policy": config.policy_hidden, "value": config.value_hidden}
        keys = jax.random.split(heads_key, len(roles))
        self.heads = [Head(config.embedding, hidden[role], each) for role, each in zip(roles, keys, strict=True)]
        first = jnp.array([FIRST_LOGITS.get(name, 0.0) for name in FEATURES], jnp.float32)
        self.direct = jnp.stack([first if role == "policy" else jnp.zeros_like(first) for role in roles])

    def __call__(self, tables: GameTables, state: GameState) -> Array:
        view = GraphView.of(tables, state)
        computed = jax.tree.map(lambda weight: weight.astype(self.dtype), self)
        tokens = jax.vmap(computed.embed)(view.features.astype(self.dtype))
        for layer in computed.layers:
            tokens = layer(tokens, view)
        tokens = jax.vmap(computed.norm)(tokens).astype(jnp.float32)
        scores = jnp.stack([jax.vmap(head)(tokens) for head in self.heads]) + self.direct @ view.features.T
        # A value is a sum over vertices; it begins with what they cost at least.
        values = view.least + scores / view.vertices
        is_value = jnp.array([role == "value" for role in self.roles])
        return jnp.where(is_value[:, None], values, scores)
