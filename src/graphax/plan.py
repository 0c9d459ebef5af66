"""Plans: derivative programs as straight-line code on blocks, and their costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from .bundles import (
    AnyEdge,
    Mirrored,
    Operation,
    Passage,
    Passing,
    Pick,
    ProductOperation,
    SumOperation,
    Turned,
    add,
    compose,
    passed,
)
from .errors import GraphaxError

if TYPE_CHECKING:
    from .graph import ComputationGraph

COUNTINGS = ("folded", "raw")
Edge = tuple[int, int]
# Adjoints are numbered like their values, offset by this number.
ADJOINTS = 1 << 30


def check_counting(counting: str) -> None:
    if counting not in COUNTINGS:
        raise GraphaxError(f"unknown counting {counting!r}; choose one of: {', '.join(COUNTINGS)}")


@dataclass(frozen=True, slots=True)
class Instruction:
    """``values[result] = values[left] * values[right]``, or ``+``, depending on the operation.

    Operands of a sum are not used again. ``edge`` is the edge of the graph that the result belongs to. ``together``
    holds the operands of all products that pass through a loop at once, including this one.
    """

    result: int
    left: int
    right: int
    operation: Operation
    edge: Edge
    together: tuple[int, ...] = ()

    @property
    def structure(self) -> AnyEdge:
        return self.operation.structure

    def multiplications(self, counting: str) -> int:
        return self.operation.multiplications if counting == "folded" else self.operation.raw_multiplications

    def __str__(self):
        match self.operation:
            case Mirrored():
                made = f"mirrored b{self.left}"
            case Turned():
                made = f"transposed b{self.left}"
            case _:
                made = f"b{self.left} {'+' if self.operation.is_sum else '*'} b{self.right}"
        target, source = map(_name, self.edge)
        return f"b{self.result} = {made}  # {source}→{target}: {self.structure}"


def _name(vertex: int) -> str:
    return str(vertex) if vertex < ADJOINTS else f"adjoint of {vertex - ADJOINTS}"


@dataclass(frozen=True, slots=True)
class Drop:
    """Marks values that are not used again. A vertex is gone with its last block."""

    values: tuple[int, ...]
    vertex: int

    def __str__(self):
        return f"drop {', '.join(f'b{value}' for value in self.values)}  # vertex {self.vertex} is gone"


@dataclass(frozen=True)
class Cost:
    """The cost of a plan.

    Attributes:
        multiplications, additions: the arithmetic that accumulates the Jacobian. The local partial derivatives are not
            included; they are the same in every order.
        peak: the largest number of values that the edges of the graph hold at any one time.
        counting: "folded" counts what is executed: a coefficient of plus or minus one is free, and constants are
            multiplied ahead of time. "raw" counts every product of two edges, as in the literature.
    """

    multiplications: int
    additions: int
    peak: int
    counting: str = "folded"

    @property
    def operations(self) -> int:
        """Multiplications and additions together."""
        return self.multiplications + self.additions


class Fill(NamedTuple):
    """The effect of eliminating a vertex on one edge. ``total`` is None if the edge did not exist before."""

    target: int
    source: int
    product: ProductOperation
    total: SumOperation | None


class Elimination:
    """A graph during elimination, on its way to becoming bipartite."""

    def __init__(self, graph: ComputationGraph, whole: bool = True):
        self._whole = whole
        self.predecessors: dict[int, dict[int, AnyEdge]] = {v: {} for v in graph.vertices}
        self.successors: dict[int, dict[int, AnyEdge]] = {v: {} for v in graph.vertices}
        for (target, source), structure in graph.edges.items():
            self._connect(target, source, structure)

    def _connect(self, target: int, source: int, structure: AnyEdge) -> None:
        self.predecessors[target][source] = structure
        self.successors[source][target] = structure

    def eliminate(self, vertex: int) -> list[Fill]:
        """Connect every predecessor of ``vertex`` with every successor, and remove the vertex."""
        fills = []
        before, after = self.predecessors.pop(vertex), self.successors.pop(vertex)
        products = products_at(before, after, self._whole)
        for source in before:
            del self.successors[source][vertex]
        for target in after:
            del self.predecessors[target][vertex]
        for target in sorted(after):
            for source in sorted(before):
                product = products[target, source]
                if product is None:
                    continue
                existing = self.predecessors[target].get(source)
                total = None if existing is None else add(existing, product.structure, self._whole)
                self._connect(target, source, (total or product).structure)
                fills.append(Fill(target, source, product, total))
        return fills

    def stored(self) -> int:
        return sum(s.stored for edges in self.predecessors.values() for s in edges.values())


def products_at(
    entering: Mapping[int, AnyEdge], leaving: Mapping[int, AnyEdge], whole: bool = True
) -> dict[Edge, ProductOperation | None]:
    """The products that connect each predecessor of a vertex with each successor. All pass through a loop together."""
    before, after = sorted(entering.items()), sorted(leaving.items())
    found: dict[Edge, ProductOperation | None] = {}
    for target, outer in after:
        if isinstance(outer, Passage):
            picks = passed(outer, tuple(inner for _, inner in before), forward=True)
            found |= {(target, source): pick for (source, _), pick in zip(before, picks, strict=True)}
    for source, inner in before:
        if isinstance(inner, Passage):
            picks = passed(inner, tuple(outer for _, outer in after), forward=False)
            found |= {(target, source): pick for (target, _), pick in zip(after, picks, strict=True)}
        else:
            rest = [(target, outer) for target, outer in after if not isinstance(outer, Passage)]
            found |= {(target, source): compose(outer, inner, whole) for target, outer in rest}
    return found


@dataclass(frozen=True, eq=False)
class Plan:
    """A derivative program: straight-line code on numbered blocks.

    Attributes:
        order: the vertices in order of elimination.
        operands: the edges of the graph, whose blocks are the values 0, 1, ...
        code: products, sums and drops of values.
        outputs: the value of every edge that remains, by (output, input). Absent edges are zero.
        structures: the structures of all values.
    """

    order: tuple[int, ...]
    operands: tuple[Edge, ...]
    code: tuple[Instruction | Drop, ...]
    outputs: dict[Edge, int]
    structures: tuple[AnyEdge, ...]

    @property
    def instructions(self) -> Iterator[Instruction]:
        return (step for step in self.code if isinstance(step, Instruction))

    @property
    def results(self) -> dict[Edge, AnyEdge]:
        """The structures of all nonzero blocks of the Jacobian."""
        return {edge: self.structures[value] for edge, value in self.outputs.items()}

    def cost(self, counting: str = "folded") -> Cost:
        """The total cost of all products and sums."""
        check_counting(counting)
        multiplications = sum(step.multiplications(counting) for step in self.instructions)
        additions = sum(step.operation.additions for step in self.instructions)
        return Cost(multiplications, additions, self.peak, counting)

    @property
    def moved(self) -> int:
        """The number of values that loops write and read again."""
        return sum(passing.moved for _, passing in self.passings)

    def loops(self) -> Iterator[tuple[Edge, Passing]]:
        """Yield the edges that are loops, with their passings."""
        for step in self.code:
            if isinstance(step, Instruction) and isinstance(step.operation, Pick) and step.operation.index == 0:
                passing = step.operation.passing
                yield self.operands[step.left if passing.forward else step.right], passing

    @property
    def passings(self) -> Iterator[tuple[int, Passing]]:
        """The vertices at which loops are passed, with their passings."""
        for vertex, steps in self.by_vertex():
            for step in steps:
                if isinstance(step.operation, Pick) and step.operation.index == 0:
                    yield vertex, step.operation.passing

    @property
    def peak(self) -> int:
        """The largest number of values that are alive at the same time."""
        stored = [structure.stored for structure in self.structures]
        most = live = sum(stored[: len(self.operands)])
        for step in self.code:
            if isinstance(step, Drop):
                most = max(most, live)
                live -= sum(stored[value] for value in step.values)
            else:
                live += stored[step.result]
                live -= stored[step.left] + stored[step.right] if step.operation.is_sum else 0
        return most

    def __str__(self):
        known = zip(self.operands, self.structures, strict=False)
        given = [f"b{n}: {source}→{target}, {structure}" for n, ((target, source), structure) in enumerate(known)]
        return "\n".join([*given, *map(str, self.code)])

    def by_vertex(self) -> Iterator[tuple[int, list[Instruction]]]:
        """Yield the products and sums of each elimination."""
        steps: list[Instruction] = []
        for step in self.code:
            if isinstance(step, Instruction):
                steps.append(step)
            else:
                yield step.vertex, steps
                steps = []


@lru_cache(256)
def make_plan(graph: ComputationGraph, vertices: tuple[int, ...], whole: bool = True) -> Plan:
    """The plan of eliminating the vertices of ``graph`` in the given (valid) order."""
    state = Elimination(graph, whole)
    structures = list(graph.edges.values())
    values = {edge: number for number, edge in enumerate(graph.edges)}
    code: list[Instruction | Drop] = []

    def write(left: int, right: int, operation: Operation, edge: Edge, together: tuple[int, ...] = ()) -> None:
        code.append(Instruction(len(structures), left, right, operation, edge, together))
        values[edge] = len(structures)
        structures.append(operation.structure)

    for vertex in vertices:
        incoming = [(vertex, source) for source in state.predecessors[vertex]]
        outgoing = [(target, vertex) for target in state.successors[vertex]]
        passing = {
            True: tuple(values[edge] for edge in sorted(incoming)),
            False: tuple(values[edge] for edge in sorted(outgoing)),
        }
        for target, source, product, total in state.eliminate(vertex):
            edge, existing = (target, source), values.get((target, source))
            together = passing[product.passing.forward] if isinstance(product, Pick) else ()
            write(values[target, vertex], values[vertex, source], product, edge, together)
            if total is not None and existing is not None:
                write(existing, values[edge], total, edge)
        code.append(Drop(tuple(values.pop(edge) for edge in (*incoming, *outgoing)), vertex))
    return Plan(vertices, tuple(graph.edges), tuple(code), values, tuple(structures))
