"""Plans: the list of contractions that an elimination order stands for, and what they cost."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from .errors import GraphaxError
from .graph import ComputationGraph, Edge
from .structure import Product, Structure, Sum, add, compose

if TYPE_CHECKING:
    from .order import Order

COUNTINGS = ("folded", "raw")


def check_counting(counting: str) -> None:
    if counting not in COUNTINGS:
        raise GraphaxError(f"unknown counting {counting!r}; it is one of: {', '.join(COUNTINGS)}")


@dataclass(frozen=True)
class Contraction:
    """One step: ``edges[target, source] += edges[target, vertex] @ edges[vertex, source]``.

    ``total`` is None if the edge (target, source) does not exist yet.
    """

    vertex: int
    target: int
    source: int
    product: Product
    total: Sum | None

    @property
    def structure(self) -> Structure:
        """The structure of the edge (target, source) afterwards."""
        return self.product.structure if self.total is None else self.total.structure

    def multiplications(self, counting: str) -> int:
        return self.product.multiplications if counting == "folded" else self.product.raw_multiplications

    @property
    def additions(self) -> int:
        return self.product.additions + (self.total.additions if self.total else 0)


@dataclass(frozen=True)
class Cost:
    """What a plan costs.

    Attributes:
        multiplications, additions: arithmetic to accumulate the Jacobian; local partial derivatives, which every
            order needs alike, are not counted.
        peak: the most numbers that the edges of the graph hold at any one time.
        counting: "folded" (a coefficient of plus or minus one is free and constants are multiplied beforehand: what
            is executed) or "raw" (every product of two edges counts, as in the literature).
    """

    multiplications: int
    additions: int
    peak: int
    counting: str = "folded"

    @property
    def operations(self) -> int:
        """Multiplications and additions together."""
        return self.multiplications + self.additions


class Elimination:
    """A graph on its way to becoming bipartite."""

    def __init__(self, graph: ComputationGraph):
        self.predecessors: dict[int, dict[int, Structure]] = {v: {} for v in graph.vertices}
        self.successors: dict[int, dict[int, Structure]] = {v: {} for v in graph.vertices}
        for (target, source), structure in graph.edges.items():
            self._connect(target, source, structure)

    def _connect(self, target: int, source: int, structure: Structure) -> None:
        self.predecessors[target][source] = structure
        self.successors[source][target] = structure

    def eliminate(self, vertex: int) -> list[Contraction]:
        """Connect every predecessor of ``vertex`` with every successor and remove it."""
        steps = []
        before, after = self.predecessors.pop(vertex), self.successors.pop(vertex)
        for source in before:
            del self.successors[source][vertex]
        for target in after:
            del self.predecessors[target][vertex]
        for target, outer in sorted(after.items()):
            for source, inner in sorted(before.items()):
                product = compose(outer, inner)
                if product is None:
                    continue
                existing = self.predecessors[target].get(source)
                total = None if existing is None else add(existing, product.structure)
                step = Contraction(vertex, target, source, product, total)
                self._connect(target, source, step.structure)
                steps.append(step)
        return steps

    def degree(self, vertex: int) -> int:
        """The raw multiplications that eliminating ``vertex`` now would take: its Markowitz degree."""
        products = (
            compose(outer, inner)
            for outer in self.successors[vertex].values()
            for inner in self.predecessors[vertex].values()
        )
        return sum(product.raw_multiplications for product in products if product)

    def stored(self) -> int:
        return sum(s.stored for edges in self.predecessors.values() for s in edges.values())


@dataclass(frozen=True, eq=False)
class Plan:
    """A derivative program: which blocks to contract, in which order.

    Attributes:
        order: the vertices as they are eliminated.
        steps: the contractions.
        results: the structure of every remaining edge, (output, input); absent ones are zero.
    """

    order: tuple[int, ...]
    steps: tuple[Contraction, ...]
    results: dict[Edge, Structure]
    _initial: dict[Edge, Structure]

    def cost(self, counting: str = "folded") -> Cost:
        """What all contractions cost together."""
        check_counting(counting)
        return Cost(
            sum(step.multiplications(counting) for step in self.steps),
            sum(step.additions for step in self.steps),
            self.peak,
            counting,
        )

    @property
    def peak(self) -> int:
        """The most numbers held by edges at any one time, before the operands of an elimination are dropped."""
        edges = {edge: structure.stored for edge, structure in self._initial.items()}
        incident: dict[int, set[Edge]] = {}
        for edge in (*edges, *((step.target, step.source) for step in self.steps)):
            for vertex in edge:
                incident.setdefault(vertex, set()).add(edge)
        live = most = sum(edges.values())
        for vertex, steps in self.by_vertex():
            for step in steps:
                edge = step.target, step.source
                live += step.structure.stored - edges.get(edge, 0)
                edges[edge] = step.structure.stored
            most = max(most, live)
            live -= sum(edges.pop(edge, 0) for edge in incident.get(vertex, ()))
        return most

    def by_vertex(self) -> Iterator[tuple[int, list[Contraction]]]:
        """The steps of each elimination."""
        steps: dict[int, list[Contraction]] = {vertex: [] for vertex in self.order}
        for step in self.steps:
            steps[step.vertex].append(step)
        yield from steps.items()


def touched_edges(steps: list[Contraction]) -> set[Edge]:
    """The edges that an elimination reads, and removes."""
    return {edge for s in steps for edge in ((s.target, s.vertex), (s.vertex, s.source))}


def make_plan(graph: ComputationGraph, order: "Order") -> Plan:
    """The plan of eliminating the vertices of ``graph`` in the given (valid) order."""
    return _planned(graph, order.vertices)


@lru_cache(256)
def _planned(graph: ComputationGraph, vertices: tuple[int, ...]) -> Plan:
    state = Elimination(graph)
    steps = [step for vertex in vertices for step in state.eliminate(vertex)]
    results = {
        (target, source): structure
        for target, edges in state.predecessors.items()
        for source, structure in edges.items()
    }
    return Plan(vertices, tuple(steps), results, graph.edges)
