"""Better orders for the bodies of the loops in a graph."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from .prices import Prices, operations
from .refine import refined

if TYPE_CHECKING:
    from .graph import ComputationGraph
    from .order import Order
    from .plan import Plan

Bodies = tuple[tuple[int, "Order"], ...]


@lru_cache(64)
def refined_bodies(graph: ComputationGraph, vertices: tuple[int, ...]) -> Bodies:
    """Orders of loop bodies by vertex, if all of them together save operations; an empty tuple otherwise."""
    plan = graph.plan(vertices)
    found = {}
    for vertex, passing in plan.passings:
        body, known = passing.how.graph, passing.how.order.vertices
        better = refined(body, Prices(body), known)
        if better != known:
            found[vertex] = body.order(better, finder="auto")
    bodies = tuple(found.items())
    # Another order of a body may leave wider blocks behind, which make the rest of the graph more expensive.
    return bodies if bodies and _counted(graph.plan(graph.order(vertices, bodies=bodies))) < _counted(plan) else ()


def _counted(plan: Plan) -> int:
    return sum(operations(step.operation) for step in plan.instructions)
