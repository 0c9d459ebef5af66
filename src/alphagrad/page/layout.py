"""Where the vertices of a drawing are, and along which points its edges go."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from graphax.graph import ComputationGraph, Edge

from .layers import Layers, Neighbours, Node, in_layers, neighbours_of

MARGIN = 40.0
# Room for the names of inputs.
LEFT = 82.0
# What a drawing should be, width by height, as far as distances between vertices allow.
ASPECT = 2.1
ACROSS, DOWN = (48.0, 240.0), (38.0, 72.0)
# Small graphs are drawn about as wide, if they have few enough vertices to be so far apart.
WIDE = 800.0
# A joint needs less room than a vertex.
THIN = 0.42
RELAXATIONS = 30

Point = tuple[float, float]


@dataclass(frozen=True)
class Placement:
    """A drawing from left to right.

    Attributes:
        width, height: of the whole, with a margin.
        places: of the vertices.
        bends: the points between source and target that an edge of the original graph passes, where it has any.
    """

    width: float
    height: float
    places: dict[int, Point]
    bends: dict[Edge, tuple[Point, ...]]


def lay_out(graph: ComputationGraph) -> Placement:
    """The drawing of a graph: deterministic, and of a shape that fits a screen where that is possible."""
    if not graph.vertices:
        return Placement(2 * MARGIN, 2 * MARGIN, {}, {})
    layers = in_layers(graph)
    heights = _relaxed(layers)
    top = min(heights.values())
    rows, columns = max(heights.values()) - top, len(layers.rows) - 1
    across = min(max(max(ASPECT * rows * DOWN[0], WIDE) / max(columns, 1), ACROSS[0]), ACROSS[1])
    down = min(max(columns * across / ASPECT / max(rows, 1), DOWN[0]), DOWN[1])

    layer = {node: number for number, row in enumerate(layers.rows) for node in row}

    def place(node: Node) -> Point:
        return LEFT + across * layer[node], MARGIN + down * (heights[node] - top)

    return Placement(
        LEFT + MARGIN + across * columns,
        2 * MARGIN + down * rows,
        {vertex: place(vertex) for vertex in sorted(graph.vertices)},
        {edge: tuple(map(place, chain[1:-1])) for edge, chain in layers.chains.items() if len(chain) > 2},
    )


def _relaxed(layers: Layers) -> dict[Node, float]:
    """A height for each node: near the mean of its neighbours, in the order of its layer, no two too close."""
    before, after = neighbours_of(layers.chains.values())
    heights: dict[Node, float] = {}
    for row in layers.rows:
        offsets = _offsets(row)
        heights |= {node: at - offsets[-1] / 2 for node, at in zip(row, offsets, strict=True)}
    for turn in range(RELAXATIONS):
        for row in layers.rows if turn % 2 == 0 else reversed(layers.rows):
            heights |= _spread(row, heights, before, after)
    return heights


def _offsets(row: Sequence[Node]) -> list[float]:
    """How far below the first node each one is at least."""
    offsets = [0.0]
    for above, below in pairwise(row):
        thin = isinstance(above, tuple) + isinstance(below, tuple)
        offsets.append(offsets[-1] + (1.0, (1 + THIN) / 2, THIN)[thin])
    return offsets


def _spread(
    row: Sequence[Node], heights: Mapping[Node, float], before: Neighbours, after: Neighbours
) -> dict[Node, float]:
    """The heights nearest to where the nodes want to be, by pooling those that would come too close.

    Less their offsets, heights must not fall along the row: that is isotonic regression.
    """
    offsets = _offsets(row)
    pools: list[list[float]] = []
    for node, offset in zip(row, offsets, strict=True):
        near = [*before[node], *after[node]]
        wish = sum(heights[n] for n in near) / len(near) if near else heights[node]
        pools.append([wish - offset, 1])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            mean, count = pools.pop()
            above, others = pools[-1]
            pools[-1] = [(above * others + mean * count) / (others + count), others + count]
    flat = [mean for mean, count in pools for _ in range(int(count))]
    return {node: at + offset for node, at, offset in zip(row, flat, offsets, strict=True)}
