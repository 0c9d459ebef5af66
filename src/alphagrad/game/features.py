"""What is worth knowing of each vertex before a move: its price, what its elimination does to others, and its place.

All of it follows from the structures of the edges by a few products of matrices, for all vertices at once. Nothing
depends on how vertices are numbered or on how large the graph is: prices are relative to what reverse mode pays per
vertex, and places to the longest way through the graph.
"""

import jax.numpy as jnp
from jax import Array

from ..elimination.structures import NO_EDGE
from .rules import GameState, degrees, edges_by_structure, legal_actions, summed_over_products
from .tables import GameTables

# What is told of both sides stands side by side: first before, then after the vertex.
FEATURES = (
    "price", "relative_price", "slack", "bound", "tight", "predecessors", "successors", "one_predecessor",
    "one_successor", "created", "merged", "grown", "change_before", "change_after", "change", "inputs_before",
    "outputs_after", "depth", "height", "distance", "remaining",
)  # fmt: skip
# What reverse mode pays per vertex is described as the logarithm of this, plus one.
UNITS = 4.0


def describe(tables: GameTables, state: GameState) -> Array:
    """float32[intermediates, features], in the order of `FEATURES`; zeros for vertices that are gone."""
    sizes, alive = tables.sizes, legal_actions(tables, state)
    unit = tables.reference / (UNITS * jnp.maximum(jnp.sum(tables.intermediate), 1))
    structures, (incoming, outgoing) = edges_by_structure(tables, state), degrees(tables, state)
    price, created = (summed_over_products(table, *structures) for table in (tables.multiplications, tables.created))
    removed = sum(structures) @ jnp.expm1(tables.extents)
    slack = jnp.maximum(price - tables.bounds, 0.0)
    present = (state.edges != NO_EDGE).astype(jnp.float32)
    merged, before, after = _effects(present, price, sizes.inputs)
    columns = (
        jnp.log1p(price),
        jnp.log1p(price / unit),
        jnp.log1p(slack / unit),
        jnp.log1p(tables.bounds / unit),
        slack == 0,
        jnp.log1p(incoming),
        jnp.log1p(outgoing),
        incoming == 1,
        outgoing == 1,
        jnp.log1p(incoming * outgoing - merged),
        jnp.log1p(merged),
        _signed_log(created - removed),
        _signed_log(before / unit),
        _signed_log(after / unit),
        _signed_log((before + after) / unit),
        jnp.log1p(jnp.sum(present[: sizes.intermediates, : sizes.inputs], 1)),
        jnp.log1p(jnp.sum(present[sizes.intermediates :, sizes.inputs :], 0)),
        *tables.places.T,
        jnp.broadcast_to(jnp.sum(alive) / jnp.maximum(jnp.sum(tables.intermediate), 1), price.shape),
    )
    return jnp.where(alive[:, None], jnp.stack([column.astype(jnp.float32) for column in columns], -1), 0.0)


def _effects(present: Array, price: Array, inputs: int) -> tuple[Array, Array, Array]:
    """For each vertex: how many products of its elimination meet an edge that is there, and by how much the prices of
    its predecessors and of its successors change.

    Prices are taken to be proportional to the number of edges on either side, as they are between scalars.
    """
    vertices = len(price)
    incoming, outgoing = present[:vertices], present[:, inputs:]
    common_sources, common_targets = incoming @ present.T, outgoing.T @ present
    merged = jnp.sum(outgoing.T * common_sources, 1)
    degree_in, degree_out = jnp.sum(incoming, 1), jnp.sum(outgoing, 0)
    per_source = jnp.pad(price / jnp.maximum(degree_in, 1.0), (0, len(outgoing) - vertices))
    per_target = jnp.pad(price / jnp.maximum(degree_out, 1.0), (inputs, 0))
    before = jnp.sum(incoming * per_target * (degree_out[:, None] - 1.0 - common_targets), 1)
    after = jnp.sum(outgoing.T * per_source * (degree_in[:, None] - 1.0 - common_sources), 1)
    return merged, before, after


def _signed_log(value: Array) -> Array:
    return jnp.sign(value) * jnp.log1p(jnp.abs(value))
