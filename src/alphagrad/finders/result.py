"""The result of a search."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from graphax import ComputationGraph, Cost, Order
from graphax.table import table

from ..elimination.objective import Objective

# Bounds that are further below the best order, as a fraction of its cost, are called weak.
WEAK = 0.1


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The best order that a search found, with its cost and the lower bound.

    Attributes:
        order: the order, to pass to `graphax.jacve` or to save.
        cost: its multiplications, additions and peak.
        value: the quantity that was minimised.
        bound: a lower bound on the value of every order of this graph.
        objective: the objective that was minimised.
        history: (seconds, evaluations, value) each time a better order was found.
        evaluations, seconds: the number of orders evaluated, and the duration.
        stopped: why the search ended: "optimal", "budget", "exhausted" (nothing left to try), "interrupted"
            or "workers died".
        graph: the graph that was searched.
        bodies: the results for the bodies of loops, each with the vertex at whose elimination the loop is passed. Costs
            and bounds of a body are those of one step.
    """

    order: Order
    cost: Cost
    value: float
    bound: float
    objective: Objective
    history: tuple[tuple[float, int, float], ...]
    evaluations: int
    seconds: float
    stopped: str
    graph: ComputationGraph
    bodies: "tuple[tuple[int, SearchResult], ...]" = field(default=(), kw_only=True)

    @property
    def optimal(self) -> bool:
        """Whether the order is certified to be optimal."""
        return self.value <= self.bound

    @property
    def gap(self) -> float:
        """The largest possible distance from the optimum, as a fraction of the value."""
        return 0.0 if self.optimal else (self.value - self.bound) / self.value

    @property
    def certificate(self) -> str:
        """What is proven about the optimum, in words."""
        if self.optimal:
            return "optimal"
        if self.graph.has_loops:
            return "no lower bound is known for a graph with loops"
        if self.gap > WEAK:
            return f"the lower bound, {self.bound:g}, is weak: an order that is {self.gap:.1%} cheaper is not ruled out"
        return f"no order is more than {self.gap:.1%} cheaper (lower bound {self.bound:g})"

    def compared(self) -> list[tuple[str, Cost]]:
        """The costs of forward, reverse and Markowitz order, if quick to compute, and of the order found."""
        presets = ("fwd", "rev", "markowitz") if len(self.graph.intermediates) <= 1500 else ()
        counting = self.objective.counting
        return [*((name, self.graph.cost(name, counting)) for name in presets), ("found", self.cost)]

    def as_dict(self) -> dict[str, object]:
        """Everything except the graph, as plain data."""
        return {
            "order": asdict(self.order),
            "cost": asdict(self.cost),
            "value": self.value,
            "bound": self.bound,
            "optimal": self.optimal,
            "gap": self.gap,
            "minimize": str(self.objective),
            "history": [list(entry) for entry in self.history],
            "evaluations": self.evaluations,
            "seconds": self.seconds,
            "stopped": self.stopped,
            "bodies": [{"vertex": vertex, **body.as_dict()} for vertex, body in self.bodies],
        }

    def __str__(self) -> str:
        rows = [
            [name, cost.multiplications, cost.additions, cost.peak, f"{self.objective.value(cost):g}"]
            for name, cost in self.compared()
        ]
        columns = ["order", "multiplications", "additions", "peak", str(self.objective)]
        text = table(f"{len(self.graph.intermediates)} vertices to eliminate", columns, rows)
        if self.bodies:
            columns = ["passed at", "vertices", "multiplications", "additions", "certificate"]
            text += "\n\n" + table("Steps of loops", columns, list(self._steps())) + "\n"
        return (
            f"{text}\n{self.certificate}; {self.evaluations:,} orders in {self.seconds:.1f} s, "
            f"stopped: {self.stopped}, seed {self.order.seed}"
        )

    def _steps(self, outside: str = "") -> Iterator[list[Any]]:
        """Yield a row per body, followed by the bodies inside of it."""
        for vertex, body in self.bodies:
            size, cost = len(body.graph.intermediates), body.cost
            yield [f"{outside}{vertex}", size, cost.multiplications, cost.additions, body.certificate]
            yield from body._steps(f"{outside}{vertex} → ")
