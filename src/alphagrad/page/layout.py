"""The positions of the vertices of a drawing, and the points along which its edges run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from graphax.graph import ComputationGraph, Edge

from .layers import Layers, Neighbours, Node, in_layers, neighbours_of

MARGIN = 40.0
# Room for the names of inputs.
LEFT = 82.0
# The desired ratio of width to height, as far as distances between vertices allow.
ASPECT = 2.1
ACROSS, DOWN = (48.0, 240.0), (38.0, 72.0)
# The desired width of small graphs, if their vertices can be this far apart.
WIDE = 800.0
# A joint needs less room than a vertex.
THIN = 0.42
RELAXATIONS = 30

Point = tuple[float, float]


@dataclass(frozen=True)
class Placement:
    """A drawing from left to right.

    Attributes:
        width, height: the size of the drawing, including a margin.
        places: the positions of the vertices.
        bends: the points between source and target that an edge of the original graph passes, if any.
    """

    width: float
    height: float
    places: dict[int, Point]
    bends: dict[Edge, tuple[Point, ...]]


def lay_out(graph: ComputationGraph) -> Placement:
    """The drawing of a graph. It is deterministic, and fits a screen if possible."""
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
    """A height per node: near the mean of its neighbours, in the order of its layer, with a minimum distance."""
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
    """The minimum distance of each node below the first one."""
    offsets = [0.0]
    for above, below in pairwise(row):
        thin = isinstance(above, tuple) + isinstance(below, tuple)
        offsets.append(offsets[-1] + (1.0, (1 + THIN) / 2, THIN)[thin])
    return offsets


def _spread(
    row: Sequence[Node], heights: Mapping[Node, float], before: Neighbours, after: Neighbours
) -> dict[Node, float]:
    """The heights nearest to the desired ones, found by pooling nodes that would come too close.

    Heights minus their offsets must not decrease along the row, so this is isotonic regression.
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
