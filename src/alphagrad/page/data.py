"""The data of a page: a view as plain numbers and texts."""

import linecache
import re
from collections.abc import Iterable
from math import isfinite
from typing import Any

from graphax import ComputationGraph
from graphax.bundles import AnyEdge
from graphax.graph import Edge, Vertex

from ..elimination.structures import StructureTable
from .algebra import algebra_of, described
from .layout import lay_out
from .replay import Replay
from .symbols import symbol_of
from .view import View, way_of


def page_data(view: View, timings: Iterable[dict[str, Any]] = ()) -> dict[str, Any]:
    """Everything that the page shows for one function.

    An edge is four numbers: target, source, its index in ``structures``, and its coefficient, which is null if it has
    values. Lists of edges are flat. The bodies of loops are such data themselves. An order has a row per loop that it
    passes: the vertex, the index of the body, and how it is passed.
    """
    structures = StructureTable(coefficients=False)
    graph = view.graph
    edges = _flat(graph.edges.items(), structures)
    places = {body: place for place, body in enumerate(view.bodies)}
    orders = [{**_order(replay, structures), "bodies": _passed(replay, places)} for replay in view.replays]
    algebra = algebra_of(graph, view.counting, structures)
    layout = lay_out(graph)
    return {
        "title": view.title,
        "counting": view.counting,
        "bound": view.bound,
        "searched": view.searched,
        "simplified": graph.simplified,
        "size": [round(layout.width, 1), round(layout.height, 1)],
        "vertices": [_vertex(vertex, layout.places[number]) for number, vertex in sorted(graph.vertices.items())],
        "edges": edges,
        "bends": [[*edge, *(round(x, 1) for point in bends for x in point)] for edge, bends in layout.bends.items()],
        "orders": orders,
        "structures": described(structures),
        "algebra": algebra,
        "timings": list(timings),
        "bodies": [page_data(body) for body in view.bodies.values()],
    }


def _vertex(vertex: Vertex, place: tuple[float, float]) -> dict[str, Any]:
    where, code = source_of(vertex)
    return {
        "number": vertex.number,
        "kind": vertex.kind,
        "name": vertex.name,
        "symbol": symbol_of(vertex.name),
        "shape": list(vertex.shape),
        "where": where,
        "code": code,
        "x": round(place[0], 1),
        "y": round(place[1], 1),
    }


def source_of(vertex: Vertex) -> tuple[str, str]:
    """The place in the user's code that computes a vertex, without folders, and the line of code itself."""
    parts = re.match(r"(.*?):(\d+)(?::\d+)?(?: \((.*)\))?$", vertex.source)
    if parts is None:
        return "", ""
    path, line, function = parts.groups()
    name = re.split(r"[/\\]", path)[-1]
    return f"{name}:{line}" + (f" in {function}" if function else ""), linecache.getline(path, int(line)).strip()


def _order(replay: Replay, structures: StructureTable) -> dict[str, Any]:
    steps = [[m.vertex, m.multiplications, m.additions, _flat(m.edges.items(), structures)] for m in replay.moves]
    return {**replay.summary(), "steps": steps}


def _passed(replay: Replay, places: dict[ComputationGraph, int]) -> list[list[Any]]:
    passings = [(vertex, passing) for vertex, passing in replay.plan.passings if passing.how.graph in places]
    return [
        [vertex, places[passing.how.graph], f"{way_of(passing)}, {passing.length} step{'s'[: passing.length != 1]}"]
        for vertex, passing in passings
    ]


def _flat(edges: Iterable[tuple[Edge, AnyEdge]], structures: StructureTable) -> list[Any]:
    return [
        number
        for (target, source), structure in edges
        for number in (target, source, structures.number(structure) - 1, _coefficient(structure))
    ]


def _coefficient(structure: AnyEdge) -> float | str | None:
    """The coefficient as a JSON number; infinities and NaN as text."""
    scale = structure.scale
    if scale is None or not isfinite(scale):
        return scale if scale is None else str(scale)
    return int(scale) if scale == int(scale) else scale
