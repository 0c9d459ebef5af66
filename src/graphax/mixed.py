"""Orders that go forward through one part of a graph and in reverse through the other.

A cut is a set of values from which everything after it is computed. Reverse mode is cheap for the part before a narrow
cut, and forward mode for the part after it. The values of the cut itself join both parts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .graph import ComputationGraph

# The number of cuts to try, and the smallest distance between two of them as a fraction of the graph.
_CUTS, _APART = 4, 1 / 8


def mixed_orders(graph: ComputationGraph) -> Iterator[tuple[int, ...]]:
    """Yield orders that cut the graph in two where it is narrow, and take each part forward or in reverse."""
    vertices, last = graph.intermediates, _last_uses(graph)
    for place in islice(_apart(graph), _CUTS):
        first, second = vertices[:place], vertices[place:]
        cut = tuple(vertex for vertex in first if last[vertex] > first[-1])
        before = tuple(vertex for vertex in first if last[vertex] <= first[-1])
        yield before[::-1] + cut + second
        yield second + before[::-1] + cut
        yield second[::-1] + before + cut


def _apart(graph: ComputationGraph) -> Iterator[int]:
    """Yield places between intermediate vertices that are far from each other, narrowest first."""
    vertices, taken = graph.intermediates, list[int]()
    for _, vertex in sorted((width, vertex) for vertex, width in widths(graph).items()):
        place = bisect_right(vertices, vertex)
        if place < len(vertices) and all(abs(place - other) >= _APART * len(vertices) for other in taken):
            taken.append(place)
            yield place


def widths(graph: ComputationGraph) -> dict[int, int]:
    """Per intermediate vertex, the number of elements of all values up to it that are used after it."""
    size = {number: prod(vertex.shape) for number, vertex in graph.vertices.items()}
    last = _last_uses(graph)
    ending: dict[int, int] = {}
    for source, target in last.items():
        ending[target] = ending.get(target, 0) + size[source]
    alive = sum(size[vertex] for vertex in set(graph.inputs) & last.keys())
    found = {}
    for vertex in sorted(graph.vertices.keys() - set(graph.inputs)):
        alive += (size[vertex] if vertex in last else 0) - ending.get(vertex, 0)
        found[vertex] = alive
    return {vertex: found[vertex] for vertex in graph.intermediates}


def _last_uses(graph: ComputationGraph) -> dict[int, int]:
    """The last vertex that uses each vertex."""
    last: dict[int, int] = {}
    for target, source in graph.edges:
        last[source] = max(target, last.get(source, target))
    return last
