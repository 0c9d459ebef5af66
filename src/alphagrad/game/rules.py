"""VertexGame: vertex elimination as a single-player game, in pure JAX.

A move eliminates an intermediate vertex. It costs what `graphax.Plan` counts for that elimination. All functions can be
jitted, scanned and mapped, over states as well as over the tables of several graphs:

    tables = make_tables(graph, counting="raw")
    state, costs = jax.jit(play)(tables, jnp.arange(len(graph.intermediates)))

Known coefficients are tracked in single precision, where `graphax` uses double. This only affects whether folded
counting treats a coefficient as plus or minus one, and whether two coefficients are equal.
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
    """A graph during elimination, on its way to becoming bipartite.

    Attributes:
        edges: int32[rows, columns], the structure of every edge; 0 for no edge.
        scale: float32[rows, columns], the known coefficient of every edge; 1 for edges with values and 0 for no edge.
        eliminated: bool[intermediates], whether each vertex is eliminated.
        cost: the cost of all moves so far.
        steps: the number of moves so far.
    """

    edges: Array
    scale: Array
    eliminated: Array
    cost: Array
    steps: Array


def init(tables: GameTables) -> GameState:
    """The initial state: the graph with all its vertices."""
    return GameState(
        tables.edges, tables.scale, jnp.zeros_like(tables.intermediate), jnp.float32(0.0), jnp.asarray(0, jnp.int32)
    )


def legal_actions(tables: GameTables, state: GameState) -> Array:
    """bool[intermediates]: the vertices that are not eliminated yet."""
    return tables.intermediate & ~state.eliminated


def is_over(tables: GameTables, state: GameState) -> Array:
    """Whether the graph is bipartite, with only edges from inputs to outputs left."""
    return ~jnp.any(legal_actions(tables, state))


def step(tables: GameTables, state: GameState, action: ArrayLike) -> tuple[GameState, Array]:
    """Eliminate an intermediate vertex, counted from 0 in ascending order. Returns the new state and the cost.

    An illegal action (an eliminated vertex, padding, out of range) changes nothing and costs nothing.
    """
    chosen = (jnp.arange(len(tables.intermediate)) == action) & legal_actions(tables, state)
    legal, vertex = jnp.any(chosen), jnp.argmax(chosen)
    column = vertex + tables.sizes.inputs
    # Without incoming and outgoing edges there are no products, so an illegal action makes none.
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
    """The structures and coefficients of all products of an outgoing and an incoming edge, and their cost."""
    pair = outgoing[:, None] * tables.sizes.structures + incoming
    packed = _look_up(tables.product, pair)
    fill = packed & _STRUCTURE
    # A coefficient beyond single precision is infinite, and infinity times the zero of no edge would be NaN.
    factor = jnp.where(fill == NO_EDGE, 0.0, known * (packed >> packed_as.FACTOR_SHIFT).astype(jnp.float32))
    free = ((packed & packed_as.IF_SCALED) != 0) & (jnp.abs(factor) == 1.0)
    charged = jnp.where(free, 0.0, _look_up(tables.multiplications, pair))
    if tables.additions.size:
        charged += _look_up(tables.additions, pair)
    return fill, factor, jnp.sum(charged)


def _add(tables: GameTables, state: GameState, fill: Array, factor: Array) -> tuple[Array, Array, Array]:
    """All edges after adding the products, their coefficients, and the cost of adding."""
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
    """bool[rows, columns]: the edges with no end among the given intermediate vertices."""
    sizes = tables.sizes
    as_target = jnp.pad(vertices, (0, sizes.outputs))
    as_source = jnp.pad(vertices, (sizes.inputs, 0))
    return ~(as_target[:, None] | as_source)


def observe(tables: GameTables, state: GameState) -> Array:
    """The extended adjacency tensor, float32[5, rows, columns].

    Each edge has its sparsity type (`graphax.sparsity_type`), the two sizes of its source, and the two sizes of its
    target; all are zero for no edge. Blocks with more than two axes on a side have type `OTHER_TYPE` = 11, and all axes
    of a side but the last count as one. Rows and columns of eliminated vertices have type `ELIMINATED_TYPE` = -11.
    """
    types = _look_up(tables.types, 2 * state.edges + (state.scale == 1.0))
    types = jnp.where(_outside(tables, state.eliminated), types, float(ELIMINATED_TYPE))
    sizes = jnp.moveaxis(tables.shapes[state.edges], -1, 0)
    return jnp.concatenate([types[None], sizes])


def prices(tables: GameTables, state: GameState) -> Array:
    """float32[intermediates]: the charge for the multiplications of eliminating each vertex now, its Markowitz degree.

    With folded counting, factors of plus or minus one are charged here as well.
    """
    return summed_over_products([tables.multiplications], *edges_by_structure(tables, state))[0]


def summed_over_products(tables: Sequence[Array], incoming: Array, outgoing: Array) -> Array:
    """Per table and vertex, the sum of entries over all products of its elimination; see `edges_by_structure`."""
    # A product of matrices: XLA would compute a sum again wherever it is used.
    per_incoming = jnp.einsum("vo,oti->vti", outgoing, jnp.stack(tables, 1))
    return jnp.einsum("vti,vi->tv", per_incoming, incoming)


def degrees(tables: GameTables, state: GameState) -> tuple[Array, Array]:
    """The numbers of incoming and of outgoing edges of each intermediate vertex."""
    sizes = tables.sizes
    # As numbers of type float32, since XLA is slow to add whole numbers on a CPU.
    present = (state.edges != NO_EDGE).astype(jnp.float32)
    return jnp.sum(present[: sizes.intermediates], 1), jnp.sum(present[:, sizes.inputs :], 0)


def edges_by_structure(tables: GameTables, state: GameState) -> tuple[Array, Array]:
    """The numbers of incoming and outgoing edges by structure, of shape float32[intermediates, structures]."""
    sizes = tables.sizes
    none = jnp.zeros((sizes.intermediates, sizes.structures), jnp.float32)
    vertices = jnp.arange(sizes.intermediates)[:, None]
    # Most places have no edge. An index beyond the end of the table drops them at no cost.
    edges = jnp.where(state.edges == NO_EDGE, sizes.structures, state.edges)
    incoming = none.at[vertices, edges[: sizes.intermediates]].add(1.0, mode="drop")
    outgoing = none.at[vertices, edges[:, sizes.inputs :].T].add(1.0, mode="drop")
    return incoming, outgoing


def play(tables: GameTables, order: ArrayLike) -> tuple[GameState, Array]:
    """Take all actions of ``order`` in turn. Returns the last state, and the cost of each action."""
    return jax.lax.scan(lambda state, action: step(tables, state, action), init(tables), jnp.asarray(order))


@dataclass(frozen=True, eq=False)
class VertexGame:
    """A graph with its tables, for use with vertex numbers."""

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
        """The cost of eliminating these vertices, in this order."""
        return float(_play(self.tables, self.actions(vertices))[0].cost)


_play = jax.jit(play)
