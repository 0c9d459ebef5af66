"""Features of each vertex before a move: its price, the effects of its elimination on others, and its place.

All features follow from the structures of the edges by a few matrix products, for all vertices at once. None depends on
vertex numbers or on the size of the graph: prices are relative to the mean price per vertex in reverse mode, and places
to the longest path through the graph.
"""

import jax
import jax.numpy as jnp
from jax import Array

from ..elimination.structures import NO_EDGE
from .rules import GameState, degrees, edges_by_structure, legal_actions, summed_over_products
from .tables import GameTables

# Features of both sides are adjacent: first the side before the vertex, then the side after it.
FEATURES = (
    "price", "relative_price", "slack", "bound", "tight", "predecessors", "successors", "one_predecessor",
    "one_successor", "created", "merged", "grown", "change_before", "change_after", "change", "inputs_before",
    "outputs_after", "depth", "height", "distance", "remaining",
)  # fmt: skip
# The mean price per vertex in reverse mode is encoded as the logarithm of this plus one.
UNITS = 4.0


def describe(tables: GameTables, state: GameState) -> Array:
    """float32[intermediates, features], in the order of `FEATURES`. Eliminated vertices have zeros."""
    sizes, alive = tables.sizes, legal_actions(tables, state)
    unit = tables.reference / (UNITS * jnp.maximum(jnp.sum(tables.intermediate), 1))
    structures, (incoming, outgoing) = edges_by_structure(tables, state), degrees(tables, state)
    price, created = summed_over_products([tables.multiplications, tables.created], *structures)
    removed = sum(structures) @ jnp.expm1(tables.extents)
    slack = jnp.maximum(price - tables.bounds, 0.0)
    present = state.edges != NO_EDGE
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
    """Per vertex, the number of products of its elimination that meet an existing edge, and changes of prices.

    The latter are the total changes of the prices of its predecessors and of its successors. Prices are assumed to be
    proportional to the number of edges on either side, as they are between scalars.
    """
    vertices = len(price)
    common_sources = _in_common(present[:vertices], present)
    common_targets = _in_common(present[:, inputs:].T, present.T)
    incoming, outgoing = present[:vertices].astype(jnp.float32), present[:, inputs:].T.astype(jnp.float32)
    merged = jnp.sum(outgoing * common_sources, 1)
    degree_in, degree_out = jnp.sum(incoming, 1), jnp.sum(outgoing, 1)
    per_source = jnp.pad(price / jnp.maximum(degree_in, 1.0), (0, outgoing.shape[1] - vertices))
    per_target = jnp.pad(price / jnp.maximum(degree_out, 1.0), (inputs, 0))
    before = incoming * (degree_out[:, None] - 1.0 - common_targets) @ per_target
    after = outgoing * (degree_in[:, None] - 1.0 - common_sources) @ per_source
    return merged, before, after


def _in_common(sets: Array, others: Array) -> Array:
    """float32[sets, others], the number of elements that two sets have in common. A set is a row of truth values."""
    shared = _bits(sets)[:, None] & _bits(others)
    return jnp.sum(jax.lax.population_count(shared), -1).astype(jnp.float32)


def _bits(sets: Array) -> Array:
    """uint32[sets, words], the rows as the bits of whole numbers."""
    words = -(-sets.shape[1] // 32)
    padded = jnp.pad(sets, ((0, 0), (0, 32 * words - sets.shape[1]))).reshape(-1, words, 32)
    return jnp.sum(padded.astype(jnp.uint32) << jnp.arange(32, dtype=jnp.uint32), -1, dtype=jnp.uint32)


def _signed_log(value: Array) -> Array:
    return jnp.sign(value) * jnp.log1p(jnp.abs(value))
