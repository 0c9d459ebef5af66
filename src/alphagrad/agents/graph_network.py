"""A network on the graph itself: vertices send messages to their neighbours along the current edges.

It begins with useful features of each vertex (`alphagrad.game.features`), so it plays well before it has learned
anything: its first policy prefers vertices that are cheap and make others cheaper. It follows the cheaper of forward
and reverse mode, more closely the more the two differ. Vertex numbers play no role, and no part of the network depends
on the size of the graph.
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

# The first policy: logits of a vertex by its features. Training can change all of it.
FIRST_LOGITS = {"price": -6.0, "change": -2.0, "distance": -80.0}
# The largest standard deviation of these logits over the vertices of a graph. Larger ones would leave games no
# alternatives to try, and take long to unlearn.
SPREAD = 4.0


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
    """The part of a state that the network sees.

    Attributes:
        features: float32[vertices, features].
        edges: bool[vertices, vertices], whether there is an edge to the first vertex from the second.
        extents: float32[vertices, vertices], the logarithm of the number of values that the edge stores.
        least: float32[vertices], the lower bound on the cost of each vertex, in units of the cost of reverse mode.
        alive: bool[vertices], whether the vertex is still in the graph.
        vertices: float32[], the number of intermediate vertices of the whole graph.
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
    """Each vertex combines messages from its predecessors, its successors and all vertices by an MLP."""

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
        """The weight of each edge in a mean over the edges of a vertex, which depends on its extent."""
        degree = jnp.maximum(jnp.sum(view.edges, 1 - side, keepdims=True), 1)
        carried = jnp.where(view.edges, (1.0 + self.extent[side] * view.extents) / degree, 0.0)
        return carried.astype(self.extent.dtype)


class GraphNetwork(eqx.Module):
    """Maps a state to numbers of shape [heads, vertices]: of a policy, of a value, or of both."""

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
        scores = jnp.stack([jax.vmap(head)(tokens) for head in self.heads])
        direct = self.direct @ view.features.T
        # A value is a sum over vertices. It starts from their lower bounds.
        values = view.least + (scores + direct) / view.vertices
        is_value = jnp.array([role == "value" for role in self.roles])
        return jnp.where(is_value[:, None], values, scores + limited(direct, view.alive))


def limited(logits: Array, alive: Array) -> Array:
    """Logits of shape [heads, vertices], around zero, with a standard deviation of at most `SPREAD`."""
    share = (alive / jnp.maximum(jnp.sum(alive), 1)).astype(logits.dtype)
    around = logits - logits @ share[:, None]
    # Far below any spread that matters; without it, equal logits would have no gradient.
    variance = jnp.square(around) @ share[:, None] + 1e-6
    return around * jnp.minimum(1.0, SPREAD / jnp.sqrt(variance))
