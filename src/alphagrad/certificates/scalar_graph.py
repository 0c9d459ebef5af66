"""Graphs of single numbers, reduced to what elimination orders and their multiplications depend on."""

from collections.abc import Iterable
from copy import deepcopy

from graphax import ComputationGraph
from graphax.bundles import AnyEdge

# The number on an edge if it is known beforehand, else None.
Coefficient = float | None


class ScalarGraph:
    """Vertices and their edges during elimination, on the way to becoming bipartite.

    In folded counting, a product with a known number is free if that number is plus or minus one, or if both are known.
    In raw counting, the known numbers are the renamings, which are free in any product; no sum is a renaming.
    """

    def __init__(self, graph: ComputationGraph, counting: str):
        self.folded = counting == "folded"
        self.inputs = frozenset(graph.inputs)
        self.outputs = frozenset(output for output in graph.outputs if output is not None)
        self.predecessors: dict[int, dict[int, Coefficient]] = {v: {} for v in sorted(graph.vertices)}
        self.successors: dict[int, dict[int, Coefficient]] = {v: {} for v in sorted(graph.vertices)}
        for (target, source), structure in sorted(graph.edges.items(), key=lambda edge: edge[0]):
            self._connect(target, source, self._coefficient(structure))

    def _coefficient(self, structure: AnyEdge) -> Coefficient:
        return structure.scale if self.folded or structure.renaming else None

    def _connect(self, target: int, source: int, coefficient: Coefficient) -> None:
        self.predecessors[target][source] = coefficient
        self.successors[source][target] = coefficient

    def copy(self) -> "ScalarGraph":
        return deepcopy(self)

    @property
    def intermediates(self) -> list[int]:
        return [v for v in self.predecessors if v not in self.inputs and v not in self.outputs]

    def has_values_only(self, vertices: Iterable[int]) -> bool:
        """Whether no edge of these vertices has a known number."""
        sides = (self.predecessors, self.successors)
        return all(c is None for v in vertices for side in sides for c in side[v].values())

    def cost(self, vertex: int) -> int:
        """The multiplications of eliminating ``vertex`` now."""
        inner, outer = self.predecessors[vertex].values(), self.successors[vertex].values()
        return sum(self._is_counted(a, b) for a in outer for b in inner)

    def _is_counted(self, a: Coefficient, b: Coefficient) -> bool:
        if not self.folded:
            return a is None and b is None
        known = [c for c in (a, b) if c is not None]
        return not known or (len(known) == 1 and abs(known[0]) != 1)

    def eliminate(self, vertex: int) -> int:
        """Connect the predecessors of ``vertex`` with its successors, remove it, and return the cost."""
        cost = self.cost(vertex)
        inner, outer = self.predecessors.pop(vertex), self.successors.pop(vertex)
        for source in inner:
            del self.successors[source][vertex]
        for target in outer:
            del self.predecessors[target][vertex]
        for target, a in outer.items():
            for source, b in inner.items():
                product = None if a is None or b is None else a * b
                if source in self.predecessors[target]:
                    product = self._sum(self.predecessors[target][source], product)
                self._connect(target, source, product)
        return cost

    def _sum(self, a: Coefficient, b: Coefficient) -> Coefficient:
        return None if a is None or b is None or not self.folded else a + b
