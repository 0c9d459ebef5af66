"""What an order does to a graph, elimination by elimination."""

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
        vertex: the one that goes, with all its edges.
        multiplications, additions: what it takes.
        edges: those that are new or changed, with their structures afterwards.
    """

    vertex: int
    multiplications: int
    additions: int
    edges: dict[Edge, AnyEdge]


@dataclass(frozen=True, eq=False)
class Replay:
    """An order on a graph, to be looked at step by step.

    Attributes:
        name: what people call the order.
        order, plan, cost: the order, what it stands for, and what that costs.
        found: where the order is from.
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
        """Where the order is from and what it costs, as data."""
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
        """The edges that are left after so many eliminations."""
        edges = dict(self.graph.edges)
        for move in self.moves[:step]:
            edges = {edge: structure for edge, structure in edges.items() if move.vertex not in edge}
            edges |= move.edges
        return edges
