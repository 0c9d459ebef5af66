"""The effect of an order on a graph, elimination by elimination."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from graphax import ComputationGraph, Cost, Order
from graphax.bundles import AnyEdge
from graphax.plan import Edge, Plan


@dataclass(frozen=True, eq=False)
class Move:
    """One elimination.

    Attributes:
        vertex: the vertex that is eliminated, with all its edges.
        multiplications, additions: the cost of the elimination.
        edges: the new or changed edges, with their structures afterward.
    """

    vertex: int
    multiplications: int
    additions: int
    edges: dict[Edge, AnyEdge]


@dataclass(frozen=True, eq=False)
class Replay:
    """An order on a graph, to be viewed step by step.

    Attributes:
        name: the display name of the order.
        order, plan, cost: the order, its plan, and the cost of the plan.
        found: the origin of the order.
    """

    name: str
    graph: ComputationGraph
    order: Order
    cost: Cost
    plan: Plan
    found: str = ""

    @staticmethod
    def of(name: str, graph: ComputationGraph, order: Order, counting: str, found: str = "") -> "Replay":
        plan = graph.plan(order)
        return Replay(name, graph, order, plan.cost(counting), plan, found)

    def summary(self) -> dict[str, Any]:
        """The origin and the cost of the order, as data."""
        counts = {name: getattr(self.cost, name) for name in ("multiplications", "additions", "peak")}
        return {"name": self.name, "found": self.found, **counts}

    @cached_property
    def moves(self) -> tuple[Move, ...]:
        return tuple(
            Move(
                vertex,
                sum(step.multiplications(self.cost.counting) for step in steps),
                sum(step.operation.additions for step in steps),
                {step.edge: step.structure for step in steps},
            )
            for vertex, steps in self.plan.by_vertex()
        )

    def edges_after(self, step: int) -> dict[Edge, AnyEdge]:
        """The edges that are left after ``step`` eliminations."""
        edges = dict(self.graph.edges)
        for move in self.moves[:step]:
            edges = {edge: structure for edge, structure in edges.items() if move.vertex not in edge}
            edges |= move.edges
        return edges
