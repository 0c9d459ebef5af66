"""The static part of `alphagrad.game`: a graph and the algebra of its structures as arrays of fixed sizes.

Rows are the targets of edges (intermediates, then outputs) and columns are the sources (inputs, then intermediates),
each kind in ascending order. Structure numbers index the tables of products and sums. The entries of these tables are
packed into single integers, because lookups dominate the time of a step of the game.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from graphax import ComputationGraph
from graphax.bound import vertex_bounds
from graphax.bundles import AnyEdge, Bundle, Passage
from graphax.sparsity_types import sparsity_type
from graphax.structure import Structure

from ..elimination.objective import Objective
from ..elimination.structures import MOST_STRUCTURES, NO_EDGE, StructureTable, closed_table, with_coefficient
from ..errors import AlphagradError

OTHER_TYPE = 11

# A product: its structure, whether its multiplications depend on the coefficient, and its factor.
STRUCTURE_BITS = 12
IF_SCALED = 1 << STRUCTURE_BITS
FACTOR_SHIFT = STRUCTURE_BITS + 1
MOST_FACTOR = 1 << (31 - FACTOR_SHIFT)
# A sum: its structures for different and for equal coefficients, what becomes of the coefficient, and if it is
# computed.
ADDS = 1 << 24
KEEPS = 1 << 25
COMPUTED_IF_EQUAL = 1 << 26
COMPUTED_IF_DIFFERENT = 1 << 27

assert MOST_STRUCTURES == 1 << STRUCTURE_BITS


class Sizes(NamedTuple):
    """The numbers of inputs, intermediates, outputs and structures (including "no edge") that a game has room for."""

    inputs: int
    intermediates: int
    outputs: int
    structures: int


class GameTables(NamedTuple):
    """The data that a game needs about its graph, as a pytree of arrays.

    Attributes:
        edges: int32[rows, columns], the structure of every edge at the start; 0 for no edge.
        scale: float32[rows, columns], the known coefficient of every edge; 1 for edges with values and 0 for no edge.
        intermediate: bool[intermediates], False for padding.
        product: int32[structures, structures], the packed results of composing.
        multiplications: float32[structures, structures], the charge for the multiplications of a product.
        sum: int32[structures, structures], the packed results of adding.
        additions: float32[structures, structures], the charge for the additions of a product. Empty if they are free.
        stored: float32[structures], the charge for adding two edges if the sum has this structure. Empty if it is free.
        types: float32[structures, 2], the sparsity type for coefficients other than 1, and for coefficient 1.
        shapes: float32[structures, 4], the sizes of a block.
        extents: float32[structures], the logarithm of the number of values that an edge of this structure stores.
        created: float32[structures, structures], the number of values that the result of a product stores.
        bounds: float32[intermediates], a lower bound on the cost of eliminating each vertex, in every order.
        places: float32[intermediates, 3], the lengths of the longest paths from an input and to an output, relative to
            the longest of all vertices; and the distance from the end where the cheaper of forward and reverse mode
            begins, weighted by how much cheaper that mode is.
        reference: float32[], the cost of reverse mode, but at least 1. A unit in which costs are about 1.
    """

    edges: Array
    scale: Array
    intermediate: Array
    product: Array
    multiplications: Array
    sum: Array
    additions: Array
    stored: Array
    types: Array
    shapes: Array
    extents: Array
    created: Array
    bounds: Array
    places: Array
    reference: Array

    @property
    def sizes(self) -> Sizes:
        """The sizes of one game, also for stacked tables."""
        rows, columns = self.edges.shape[-2:]
        intermediates = self.intermediate.shape[-1]
        return Sizes(columns - intermediates, intermediates, rows - intermediates, self.product.shape[-1])


def sizes_of(graph: ComputationGraph) -> Sizes:
    """The smallest sizes that hold a graph."""
    structures = len(closed_table(graph))
    return Sizes(len(graph.inputs), len(graph.intermediates), len(_outputs(graph)), structures)


def common_sizes(sizes: Sequence[Sizes]) -> Sizes:
    """The smallest sizes that hold all the given ones."""
    return Sizes(*(max(column) for column in zip(*sizes, strict=True)))


def make_tables(
    graph: ComputationGraph,
    counting: str = "raw",
    minimize: str | tuple[float, float] | Objective = "multiplications",
    sizes: Sizes | None = None,
) -> GameTables:
    """The tables of a graph.

    Args:
        counting: ``"raw"`` (every product of two edges, as in the literature) or ``"folded"`` (what is executed).
        minimize: the cost of a step: ``"multiplications"``, ``"operations"`` (including additions), or a pair of
            weights for multiplications and additions. Costs are exact up to 2**24 if the weights are whole numbers.
        sizes: room for a larger graph. Use `common_sizes` for tables that can be stacked.

    Raises:
        AlphagradError: if the graph does not fit, or takes on too many structures.
    """
    objective = Objective.of(minimize, counting)
    if objective.minimize == "peak":
        raise AlphagradError("a game counts arithmetic; it cannot minimize the peak, which is not a sum over its steps")
    needed = sizes_of(graph)
    room = needed if sizes is None else sizes
    if any(have < want for have, want in zip(room, needed, strict=True)):
        raise AlphagradError(f"the graph needs {needed}, but the tables are made for {room}")
    table = closed_table(graph)
    edges, scale = _edges(graph, table, room)
    product, multiplications, product_additions = _products(table, objective.counting, room.structures)
    types, shapes = _observed(table, room.structures)
    forward, reverse = (max(objective.value(graph.cost(mode, objective.counting)), 1) for mode in ("fwd", "rev"))
    per_multiplication, per_addition = objective.weights
    stored = np.zeros(room.structures)
    stored[1 : needed.structures] = [structure.stored for _, structure in table.numbered()]
    return GameTables(
        edges=jnp.asarray(edges, jnp.int32),
        scale=jnp.asarray(scale, jnp.float32),
        intermediate=jnp.arange(room.intermediates) < needed.intermediates,
        product=jnp.asarray(product, jnp.int32),
        multiplications=jnp.asarray(per_multiplication * multiplications, jnp.float32),
        sum=jnp.asarray(_sums(table, room.structures), jnp.int32),
        additions=jnp.asarray(per_addition * product_additions if per_addition else np.zeros((0, 0)), jnp.float32),
        stored=jnp.asarray(per_addition * stored if per_addition else np.zeros(0), jnp.float32),
        types=jnp.asarray(types, jnp.float32),
        shapes=jnp.asarray(shapes, jnp.float32),
        extents=jnp.asarray(np.log1p(stored), jnp.float32),
        created=jnp.asarray(stored[product & (MOST_STRUCTURES - 1)], jnp.float32),
        bounds=jnp.asarray(_bounds(graph, objective, room.intermediates), jnp.float32),
        places=jnp.asarray(_places(graph, forward / reverse, room.intermediates), jnp.float32),
        reference=jnp.float32(reverse),
    )


def stack_tables(tables: Sequence[GameTables]) -> GameTables:
    """Tables of the same sizes along a new leading axis, for `jax.vmap` over games."""
    different = {table.sizes for table in tables}
    if len(different) != 1:
        raise AlphagradError(f"only tables of the same sizes can be stacked, but there are {sorted(different)}")
    if len({table.stored.size for table in tables}) != 1:
        raise AlphagradError("tables that charge additions cannot be stacked with tables that do not")
    return jax.tree.map(lambda *arrays: jnp.stack(arrays), *tables)


def _outputs(graph: ComputationGraph) -> list[int]:
    return sorted(number for number, vertex in graph.vertices.items() if vertex.kind == "output")


def _edges(graph: ComputationGraph, table: StructureTable, room: Sizes) -> tuple[np.ndarray, np.ndarray]:
    rows = dict(zip(graph.intermediates, range(room.intermediates), strict=False))
    columns = {vertex: room.inputs + place for vertex, place in rows.items()}
    rows |= {vertex: room.intermediates + place for place, vertex in enumerate(_outputs(graph))}
    columns |= {vertex: place for place, vertex in enumerate(graph.inputs)}
    shape = room.intermediates + room.outputs, room.inputs + room.intermediates
    edges, scale = np.full(shape, NO_EDGE), np.zeros(shape)
    for (target, source), structure in graph.edges.items():
        place = rows[target], columns[source]
        edges[place] = table.number(structure)
        scale[place] = 1.0 if structure.scale is None else structure.scale
    return edges, scale


def _products(table: StructureTable, counting: str, room: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    packed = np.zeros((room, room), np.int64)
    multiplications, additions = np.zeros((room, room)), np.zeros((room, room))
    for pair, entry in table.products.items():
        if entry.factor >= MOST_FACTOR:
            raise AlphagradError(f"a sum over {entry.factor} equal numbers; the tables have room for {MOST_FACTOR - 1}")
        conditional = IF_SCALED if counting == "folded" and entry.if_scaled else 0
        packed[pair] = entry.result | conditional | entry.factor << FACTOR_SHIFT
        multiplications[pair] = entry.counted(counting)
        additions[pair] = entry.additions
    return packed, multiplications, additions


def _sums(table: StructureTable, room: int) -> np.ndarray:
    packed = np.zeros((room, room), np.int64)
    # If there is nothing to add, coefficients still add up, since those of no edge are zero.
    packed[NO_EDGE, NO_EDGE] = ADDS
    for number, structure in table.numbered():
        alone = number | number << STRUCTURE_BITS | ADDS * (structure.scale is not None)
        packed[NO_EDGE, number] = packed[number, NO_EDGE] = alone
    for pair, entry in table.sums.items():
        packed[pair] = (
            entry.different
            | entry.equal << STRUCTURE_BITS
            | ADDS * entry.adds
            | KEEPS * entry.keeps
            | COMPUTED_IF_EQUAL * (entry.equal_additions > 0)
            | COMPUTED_IF_DIFFERENT * (entry.different_additions > 0)
        )
    return packed


def _observed(table: StructureTable, room: int) -> tuple[np.ndarray, np.ndarray]:
    types, shapes = np.zeros((room, 2)), np.zeros((room, 4))
    for number, structure in table.numbered():
        assert not isinstance(structure, (Bundle, Passage))
        types[number] = [_type(with_coefficient(structure, scale)) for scale in (-1.0, 1.0)]
        shapes[number] = *_two_sizes(structure.inp_shape), *_two_sizes(structure.out_shape)
    return types, shapes


def _bounds(graph: ComputationGraph, objective: Objective, room: int) -> np.ndarray:
    least = vertex_bounds(graph, objective.counting)
    bounds = np.zeros(room)
    bounds[: len(graph.intermediates)] = [least[vertex] for vertex in graph.intermediates]
    return objective.weights[0] * bounds


def _places(graph: ComputationGraph, ratio: float, room: int) -> np.ndarray:
    """The distances of intermediate vertices from inputs and outputs, relative to the farthest vertex.

    The third column is the distance from the outputs if forward mode costs more than reverse mode (``ratio`` is above
    one), and from the inputs otherwise, times the logarithm of the ratio. It orders vertices as the cheaper mode does.
    """
    places = np.zeros((room, 3))
    sources: dict[int, list[int]] = {number: [] for number in graph.vertices}
    targets: dict[int, list[int]] = {number: [] for number in graph.vertices}
    for target, source in graph.edges:
        sources[target].append(source)
        targets[source].append(target)
    inner = graph.intermediates
    for side, (vertices, neighbours) in enumerate([(inner, sources), (inner[::-1], targets)]):
        longest: dict[int, int] = {}
        for vertex in vertices:
            longest[vertex] = 1 + max((longest.get(neighbour, 0) for neighbour in neighbours[vertex]), default=0)
        places[: len(inner), side] = [longest[vertex] / max(longest.values()) for vertex in inner]
    places[:, 2] = abs(np.log(ratio)) * places[:, int(ratio > 1)]
    return places


def _type(structure: AnyEdge) -> int:
    if not isinstance(structure, Structure) or len(structure.out) > 2 or len(structure.inp) > 2:
        return OTHER_TYPE
    return sparsity_type(structure)


def _two_sizes(shape: tuple[int, ...]) -> tuple[int, int]:
    """The sizes of a matrix. A vector is a column; with more axes, all but the last are combined."""
    if len(shape) <= 2:
        first, second = (*shape, 1, 1)[:2]
        return first, second
    return int(np.prod(shape[:-1])), shape[-1]
