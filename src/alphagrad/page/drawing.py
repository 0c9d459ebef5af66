"""Drawings for papers: the graph after some eliminations, as SVG or DOT."""

import json
from html import escape

from graphax.graph import Vertex

from .layout import Placement, Point, lay_out
from .replay import Replay
from .symbols import symbol_of

FILLS = {"input": "#dbeef0", "intermediate": "#eef0f3", "output": "#fbe9d0"}
STROKES = {"input": "#2a7f8a", "intermediate": "#7b8594", "output": "#b9731a"}
EDGE, NEW, GONE = "#8b94a1", "#d5573b", "#d8dce1"
RADIUS = 13


def as_svg(replay: Replay, step: int) -> str:
    """The graph after ``step`` eliminations. Fill-in is red; eliminated vertices are dots."""
    layout = lay_out(replay.graph)
    edges = replay.edges_after(step)
    gone = replay.order.vertices[:step]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {layout.width:.0f} {layout.height:.0f}" '
        f'width="{layout.width:.0f}" height="{layout.height:.0f}" font-family="Helvetica, Arial, sans-serif">',
        '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
        '<path d="M0,1 L8,4 L0,7 z" fill="context-stroke"/></marker></defs>',
        *(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{GONE}"/>' for x, y in (layout.places[n] for n in gone)),
        '<g fill="none" stroke-width="1.3">',
    ]
    for (target, source), structure in edges.items():
        original = (target, source) in replay.graph.edges
        path = _path(layout, target, source, original)
        dashes = "" if structure.scale is None else ' stroke-dasharray="4 3"'
        lines.append(
            f'<path d="{path}" stroke="{EDGE if original else NEW}"{dashes} marker-end="url(#end)">'
            f"<title>{source} → {target}: {escape(str(structure))}</title></path>"
        )
    there = [vertex for number, vertex in replay.graph.vertices.items() if number not in gone]
    lines += ["</g>", *(_vertex_svg(vertex, layout.places[vertex.number]) for vertex in there)]
    return "\n".join([*lines, "</svg>", ""])


def _path(layout: Placement, target: int, source: int, original: bool) -> str:
    """A smooth curve from left to right that is horizontal at both ends and never overshoots its points."""
    bends = layout.bends.get((target, source), ()) if original else ()
    (x, y), (across, down) = layout.places[source], layout.places[target]
    points = [(x + RADIUS, y), *bends, (across - RADIUS, down)]
    slopes = [0.0, *map(_slope, points, points[1:], points[2:]), 0.0]
    text = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    for (x, y), (across, down), leaving, arriving in zip(points, points[1:], slopes, slopes[1:], strict=False):
        third = (across - x) / 3
        text += f" C{x + third:.1f},{y + leaving * third:.1f} {across - third:.1f},{down - arriving * third:.1f}"
        text += f" {across:.1f},{down:.1f}"
    return text


def _slope(before: Point, point: Point, after: Point) -> float:
    """The harmonic mean of the slopes on both sides; zero where the curve turns."""
    (x, y), (across, down), (farther, lower) = before, point, after
    first, second = (down - y) / (across - x), (lower - down) / (farther - across)
    return 0.0 if first * second <= 0 else 2 * first * second / (first + second)


def _vertex_svg(vertex: Vertex, place: Point) -> str:
    x, y = place
    names = [(vertex.name, x - RADIUS - 5, y + 3.5, 11, "end")]
    if vertex.kind != "input":
        inside, below = symbol_of(vertex.name), f"{vertex.number} {vertex.name}"
        names = [(inside, x, y + 3.5, 10, "middle"), (below, x, y + RADIUS + 9, 7, "middle")]
    texts = [
        f'<text x="{across:.1f}" y="{down:.1f}" font-size="{size}" text-anchor="{anchor}">{escape(_short(text))}</text>'
        for text, across, down, size, anchor in names
    ]
    return (
        f"<g><title>{escape(f'{vertex.name} {vertex.shape}')}</title>"
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}" fill="{FILLS[vertex.kind]}" stroke="{STROKES[vertex.kind]}"/>'
        f"{''.join(texts)}</g>"
    )


def _short(text: str, most: int = 13) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def as_dot(replay: Replay, step: int) -> str:
    """Like `as_svg`, for Graphviz, with the structures of edges as labels."""
    gone = set(replay.order.vertices[:step])
    lines = ["digraph {", "  rankdir=LR;", '  node [shape=circle, fontname="Helvetica", style=filled];']
    for number, vertex in replay.graph.vertices.items():
        if number not in gone:
            text = vertex.name if vertex.kind == "input" else f"{number}\n{vertex.name}"
            colours = f'fillcolor="{FILLS[vertex.kind]}", color="{STROKES[vertex.kind]}"'
            lines.append(f'  "{number}" [label={_quoted(text)}, {colours}];')
    for kind, rank in (("input", "min"), ("output", "max")):
        ends = "; ".join(f'"{v.number}"' for v in replay.graph.vertices.values() if v.kind == kind)
        lines.append(f"  {{ rank={rank}; {ends} }}")
    for (target, source), structure in replay.edges_after(step).items():
        colour = EDGE if (target, source) in replay.graph.edges else NEW
        style = "" if structure.scale is None else ", style=dashed"
        lines.append(f'  "{source}" -> "{target}" [label={_quoted(str(structure))}, color="{colour}"{style}];')
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
