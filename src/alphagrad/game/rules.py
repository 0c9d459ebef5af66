"""VertexGame: vertex elimination as a game for one player, in pure JAX.

A move eliminates an intermediate vertex; it costs what `graphax.Plan` counts for that elimination. All functions
can be jitted, scanned and mapped, over states as well as over the tables of several graphs:

    tables = make_tables(graph, counting="raw")
    state, costs = jax.jit(play)(tables, jnp.arange(len(graph.intermediates)))

Coefficients that are known beforehand are followed in single precision, where `graphax` has double. That decides only
whether folded counting takes a coefficient for plus or minus one, and whether two are equal.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from graphax import ComputationGraph

from ..elimination.objective import Objective
from ..elimination.structures import MOST_STRUCTURES, NO_EDGE
from ..errors import AlphagradError
from . import tables as packed_as
from .tables import GameTables, Sizes, make_tables

ELIMINATED_TYPE = -11
_STRUCTURE = MOST_STRUCTURES - 1


class GameState(NamedTuple):
    """A graph on its way to becoming bipartite.

    Attributes:
        edges: int32[rows, columns], the structure of every edge; 0 where there is none.
        scale: float32[rows, columns], its known coefficient; 1 for edges with values and 0 for none.
        eliminated: bool[intermediates].
        cost: what all moves so far cost.
        steps: how many moves there were.
    """

    edges: Array
    scale: Array
    eliminated: Array
    cost: Array
    steps: Array


def init(tables: GameTables) -> GameState:
    """The graph with all its vertices."""
    return GameState(
        tables.edges, tables.scale, jnp.zeros_like(tables.intermediate), jnp.float32(0.0), jnp.asarray(0, jnp.int32)
    )


def legal_actions(tables: GameTables, state: GameState) -> Array:
    """bool[intermediates]: the vertices that are still there."""
    return tables.intermediate & ~state.eliminated


def is_over(tables: GameTables, state: GameState) -> Array:
    """Whether the graph is bipartite: all that is left are edges from inputs to outputs."""
    return ~jnp.any(legal_actions(tables, state))


def step(tables: GameTables, state: GameState, action: ArrayLike) -> tuple[GameState, Array]:
    """Eliminate an intermediate vertex, counted from 0 in ascending order, and return what that costs.

    An illegal action (a vertex that is eliminated, padding, out of range) changes nothing and costs nothing.
    """
    chosen = (jnp.arange(len(tables.intermediate)) == action) & legal_actions(tables, state)
    legal, vertex = jnp.any(chosen), jnp.argmax(chosen)
    column = vertex + tables.sizes.inputs
    # Without incoming and outgoing edges there are no products, so an illegal action takes none.
    outgoing, incoming = state.edges[:, column] * legal, state.edges[vertex] * legal
    known = state.scale[:, column, None] * state.scale[vertex]
    fill, factor, cost = _compose(tables, outgoing, incoming, known)
    edges, scale, added = _add(tables, state, fill, factor)
    cost += added
    kept = _outside(tables, chosen)
    after = GameState(
        jnp.where(kept, edges, NO_EDGE),
        jnp.where(kept, scale, 0.0),
        state.eliminated | chosen,
        state.cost + cost,
        state.steps + legal,
    )
    return after, cost


def _compose(tables: GameTables, outgoing: Array, incoming: Array, known: Array) -> tuple[Array, Array, Array]:
    """The structure and coefficient of every product of an outgoing and an incoming edge, and what all of them cost."""
    pair = outgoing[:, None] * tables.sizes.structures + incoming
    packed = _look_up(tables.product, pair)
    fill = packed & _STRUCTURE
    # A coefficient beyond single precision is infinite, and infinity times the zero of no edge would be no number.
    factor = jnp.where(fill == NO_EDGE, 0.0, known * (packed >> packed_as.FACTOR_SHIFT).astype(jnp.float32))
    free = ((packed & packed_as.IF_SCALED) != 0) & (jnp.abs(factor) == 1.0)
    charged = jnp.where(free, 0.0, _look_up(tables.multiplications, pair))
    if tables.additions.size:
        charged += _look_up(tables.additions, pair)
    return fill, factor, jnp.sum(charged)


def _add(tables: GameTables, state: GameState, fill: Array, factor: Array) -> tuple[Array, Array, Array]:
    """All edges after adding the products, their coefficients, and what that costs."""
    packed = _look_up(tables.sum, state.edges * tables.sizes.structures + fill)
    equal = state.scale == factor
    edges = jnp.where(equal, packed >> packed_as.STRUCTURE_BITS, packed) & _STRUCTURE
    kept = jnp.where(equal & ((packed & packed_as.KEEPS) != 0), state.scale, 1.0)
    scale = jnp.where((packed & packed_as.ADDS) != 0, state.scale + factor, kept)
    if not tables.stored.size:
        return edges, scale, jnp.float32(0.0)
    computed = (packed & jnp.where(equal, packed_as.COMPUTED_IF_EQUAL, packed_as.COMPUTED_IF_DIFFERENT)) != 0
    return edges, scale, jnp.sum(jnp.where(computed, _look_up(tables.stored, edges), 0.0))


def _look_up(table: Array, index: Array) -> Array:
    return table.reshape(-1).at[index].get(mode="promise_in_bounds")


def _outside(tables: GameTables, vertices: Array) -> Array:
    """bool[rows, columns]: the edges that have no end among the given intermediate vertices."""
    sizes = tables.sizes
    as_target = jnp.pad(vertices, (0, sizes.outputs))
    as_source = jnp.pad(vertices, (sizes.inputs, 0))
    return ~(as_target[:, None] | as_source)


def observe(tables: GameTables, state: GameState) -> Array:
    """The extended adjacency tensor, float32[5, rows, columns].

    For every edge: the sparsity type (`graphax.sparsity_type`), the two sizes of its source, and the two of its
    target; zeros for no edge. Blocks with more than two axes on a side have type `OTHER_TYPE` = 11, and all axes of a
    side but the last count as one. Rows and columns of eliminated vertices have type `ELIMINATED_TYPE` = -11.
    """
    types = _look_up(tables.types, 2 * state.edges + (state.scale == 1.0))
    types = jnp.where(_outside(tables, state.eliminated), types, float(ELIMINATED_TYPE))
    sizes = jnp.moveaxis(tables.shapes[state.edges], -1, 0)
    return jnp.concatenate([types[None], sizes])


def prices(tables: GameTables, state: GameState) -> Array:
    """float32[intermediates]: what eliminating each vertex now is charged for multiplications, its Markowitz degree.

    With folded counting, factors of plus or minus one are charged here as well.
    """
    return summed_over_products(tables.multiplications, *edges_by_structure(tables, state))


def summed_over_products(table: Array, incoming: Array, outgoing: Array) -> Array:
    """For each vertex, the sum of a table's entries over all products of its elimination; see `edges_by_structure`."""
    return jnp.einsum("vo,oi,vi->v", outgoing, table, incoming)


def degrees(tables: GameTables, state: GameState) -> tuple[Array, Array]:
    """How many incoming and outgoing edges each intermediate vertex has."""
    sizes = tables.sizes
    present = state.edges != NO_EDGE
    return jnp.sum(present[: sizes.intermediates], 1), jnp.sum(present[:, sizes.inputs :], 0)


def edges_by_structure(tables: GameTables, state: GameState) -> tuple[Array, Array]:
    """How many incoming and outgoing edges of each structure a vertex has, float32[intermediates, structures]."""
    sizes = tables.sizes
    none = jnp.zeros((sizes.intermediates, sizes.structures), jnp.float32)
    vertices = jnp.arange(sizes.intermediates)[:, None]
    # Places without an edge are most of them; beyond the end of the table they cost nothing.
    edges = jnp.where(state.edges == NO_EDGE, sizes.structures, state.edges)
    incoming = none.at[vertices, edges[: sizes.intermediates]].add(1.0, mode="drop")
    outgoing = none.at[vertices, edges[:, sizes.inputs :].T].add(1.0, mode="drop")
    return incoming, outgoing


def play(tables: GameTables, order: ArrayLike) -> tuple[GameState, Array]:
    """Take all actions of ``order``, one after another: the last state, and what each action cost."""
    return jax.lax.scan(lambda state, action: step(tables, state, action), init(tables), jnp.asarray(order))


@dataclass(frozen=True, eq=False)
class VertexGame:
    """A graph with its tables, for those who think in vertex numbers."""

    graph: ComputationGraph
    tables: GameTables

    @staticmethod
    def of(
        graph: ComputationGraph,
        counting: str = "raw",
        minimize: str | tuple[float, float] | Objective = "multiplications",
        sizes: Sizes | None = None,
    ) -> "VertexGame":
        """See `make_tables`."""
        return VertexGame(graph, make_tables(graph, counting, minimize, sizes))

    def actions(self, vertices: Iterable[int]) -> np.ndarray:
        """The actions that eliminate these vertices."""
        places = {vertex: place for place, vertex in enumerate(self.graph.intermediates)}
        try:
            return np.array([places[vertex] for vertex in vertices], np.int32)
        except KeyError as error:
            raise AlphagradError(f"{error.args[0]} is not an intermediate vertex of the graph") from None

    def vertices(self, actions: Sequence[int] | np.ndarray | Array) -> tuple[int, ...]:
        """The vertices that these actions eliminate."""
        return tuple(self.graph.intermediates[action] for action in np.asarray(actions).tolist())

    def cost(self, vertices: Iterable[int]) -> float:
        """What eliminating these vertices costs, in this order."""
        return float(_play(self.tables, self.actions(vertices))[0].cost)


_play = jax.jit(play)
