"""Loops as edges: the structures and the costs of passing other edges through them. No values.

The body of a loop is a graph of its own. Pushing an edge through the loop carries a Jacobian along. In every step the
body is eliminated *together with* this Jacobian, whose columns are the inputs of the plan of the step. Pulling carries
adjoints backward in the same way. The carried Jacobian has the same structure in all steps: the fixed point of one
step.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar

from .bundles import AnyEdge, Bundle, Key, Passage, Passing, compose
from .elements import Element, Time, elements_of, over_time, together
from .errors import FingerprintError
from .graph import ComputationGraph, Vertex, pruned
from .order import Order
from .plan import Plan
from .prices import counted, prices_of
from .structure import Structure, dense
from .sums import hull
from .terms import AnyStructure, pattern_of, transposed

# A structure that keeps growing after this many steps is treated as dense.
_MOST_ROUNDS = 12
# A body is planned by the cheapest of these presets.
_ORDERS = ("rev", "fwd", "markowitz", "preelim_rev")

Structures = dict[Key, AnyStructure]


@dataclass(frozen=True)
class Way:
    """A plan for passing an edge through a loop.

    If pushed, keys are (input of the body, member of the edge's source). If pulled, keys are (member of the edge's
    target, output of the body); in ``summed``, the second part is an input.

    Attributes:
        graph: the body, together with the edges that enter it.
        order, plan: the order and the plan of one step.
        time: distinguishes structures over time from all others.
        ends: the vertex of each member of the edge's source (pushed) or target (pulled).
        elements: how edges over time are read step by step.
        carried: the structures that are carried from step to step.
        summed: when pulled, the structures that are summed over all steps.
    """

    graph: ComputationGraph
    order: Order
    plan: Plan
    time: Time
    ends: dict[int, int]
    elements: dict[Key, tuple[Element, ...]]
    carried: dict[Key, Structure]
    summed: dict[Key, Structure]


@dataclass(frozen=True, eq=False)
class Loop(Passage):
    """A loop between the bundle of its operands and the bundle of its results.

    Members are numbered like the operands and results of its equation, and so are the inputs and outputs of its body.
    Inputs are constants, carries and elements; outputs are carries and per-step outputs.

    Attributes:
        body: the derivation of one step.
        constants, carries: the number of inputs that are constants, and that are carried.
        length: the number of steps.
        backward: whether the loop begins with the last element.
        order: the order of a step, together with the edges that enter it; None for the cheapest of a few presets.
    """

    body: Any
    constants: int
    carries: int
    length: int
    backward: bool = False
    order: Order | None = None
    unbounded: ClassVar[bool] = False

    @cached_property
    def _content(self) -> tuple:
        return self.graph, self.constants, self.carries, self.length, self.backward, self.order

    def __hash__(self):
        return hash(self._content)

    def __eq__(self, other):
        """Loops are equal if edges pass through both in the same way, like graphs with the same plans."""
        return isinstance(other, Loop) and self._content == other._content

    def __getstate__(self):
        # The program of a body belongs to the process that traced it; other processes only plan loops.
        return {field.name: getattr(self, field.name) for field in fields(self)} | {"body": _Body(self.graph)}

    def __str__(self):
        return f"loop of {self.length} steps"

    @property
    def digest(self) -> str:
        return f"loop {self.graph.digest} {self.constants} {self.carries} {self.length} {self.backward}"

    @property
    def fingerprint(self) -> str:
        return f"{self.graph.fingerprint} {self.constants} {self.carries}"

    def with_order(self, order: Order) -> "Loop":
        return replace(self, order=order)

    @property
    def graph(self) -> ComputationGraph:
        return self.body.graph

    @cached_property
    def step(self) -> Structures:
        """The structures of one step, by output and input of the body."""
        found = self.graph.plan("rev").results
        return {
            (o, i): _plain(found[vertex, source])
            for o, vertex in enumerate(self.graph.outputs)
            for i, source in enumerate(self.graph.inputs)
            if vertex is not None and (vertex, source) in found
        }

    def is_carried(self, inp: int) -> bool:
        return self.constants <= inp < self.constants + self.carries

    def is_element(self, inp: int) -> bool:
        return inp >= self.constants + self.carries

    def reached(self, operands: Iterable[int]) -> set[int]:
        """The results that depend on any of these operands."""
        moving = set(operands)
        while True:
            found = {o for o, i in self.step if i in moving}
            more = {self.constants + o for o in found if o < self.carries} - moving
            if not more:
                return found | {i - self.constants for i in moving if self.is_carried(i)}
            moving |= more

    def pushed(self, behind: Mapping[Key, AnyStructure]) -> Passing | None:
        time = Time.of(self.length, behind.values())
        elements = {key: elements_of(s, time) for key, s in behind.items() if self.is_element(key[0])}
        start = {key: s for key, s in behind.items() if self.is_carried(key[0])}
        known = {key: s for key, s in behind.items() if key not in start and key not in elements}
        known |= {key: together(found) for key, found in elements.items()}

        def one_step_on(entering: Structures) -> Iterable[tuple[Key, AnyStructure]]:
            for (o, i), outer in self.step.items():
                for (inp, member), inner in entering.items():
                    product = compose(outer, inner) if inp == i and o < self.carries else None
                    if product is not None:
                        yield (self.constants + o, member), _plain(product.structure)

        carried = _fixed_point(start, known, one_step_on)
        ends = _ends(carried | known, 1, min(self.graph.vertices) - 1, -1)
        edges = {(self.graph.inputs[i], ends[j]): s for (i, j), s in (known | carried).items()}
        graph = _extended(self.graph, edges, ends.values(), "input")
        order, plan = self._planned(graph, "forward")
        results: Structures = {(i - self.constants, j): s for (i, j), s in carried.items()}
        for o, vertex in list(enumerate(self.graph.outputs))[self.carries :]:
            for member, end in ends.items():
                if vertex is not None and (vertex, end) in plan.results:
                    results[o, member] = over_time(_plain(plan.results[vertex, end]), time)
        return self._passing(results, Way(graph, order, plan, time, ends, elements, carried, {}), True)

    def pulled(self, before: Mapping[Key, AnyStructure]) -> Passing | None:
        start = {key: s for key, s in before.items() if key[1] < self.carries}
        time = Time.of(self.length, before.values())
        elements = {key: elements_of(transposed(s), time) for key, s in before.items() if key not in start}
        known = {key: transposed(together(found)) for key, found in elements.items()}

        def one_step_back(leaving: Structures) -> Iterable[tuple[Key, AnyStructure]]:
            for (o, i), inner in self.step.items():
                for (member, out), outer in leaving.items():
                    product = compose(outer, inner) if out == o and self.is_carried(i) else None
                    if product is not None:
                        yield (member, i - self.constants), _plain(product.structure)

        carried = _fixed_point(start, known, one_step_back)
        ends = _ends(carried | known, 0, max(self.graph.vertices) + 1, 1)
        edges = {
            (ends[m], vertex): s
            for (m, o), s in (known | carried).items()
            if (vertex := self.graph.outputs[o]) is not None
        }
        graph = _extended(self.graph, edges, ends.values(), "output")
        order, plan = self._planned(graph, "backward")
        results: Structures = {(m, self.constants + c): s for (m, c), s in carried.items()}
        summed = {}
        for n, vertex in enumerate(self.graph.inputs):
            for member, end in ends.items():
                if self.is_carried(n) or (end, vertex) not in plan.results:
                    continue
                found = _plain(plan.results[end, vertex])
                if self.is_element(n):
                    results[member, n] = transposed(over_time(transposed(found), time))
                else:
                    results[member, n] = summed[member, n] = pattern_of(found)
        return self._passing(results, Way(graph, order, plan, time, ends, elements, carried, summed), False)

    def _planned(self, graph: ComputationGraph, way: str) -> tuple[Order, Plan]:
        """The order and the plan of a step: the given order, or the cheapest of the presets."""
        given = self.order
        if given is None:
            return planned(graph)
        if not given.fits(graph):
            raise FingerprintError(
                f"an order for the body of a {self} was made for the graph {given.fingerprint} ({len(given)} vertices "
                f"to eliminate), but carrying derivatives {way} through this body has the graph {graph.fingerprint} "
                f"({len(graph.intermediates)} to eliminate). The body, the way through it and what is carried must be "
                f"those the order was found with; otherwise find an order again."
            )
        return Order.of(given, graph), graph.plan(given)

    def _passing(self, results: Structures, way: Way, forward: bool) -> Passing | None:
        if not results:
            return None
        cost, raw = way.plan.cost(), way.plan.cost("raw")
        additions = cost.additions + sum(structure.stored for structure in way.summed.values())
        # The backward pass needs the local blocks of the forward pass.
        kept = 0 if forward else sum(edge.stored for edge in map(self.graph.edges.get, way.plan.operands) if edge)
        return Passing(
            Bundle.of(results),
            self.length * cost.multiplications,
            self.length * raw.multiplications,
            self.length * additions,
            forward,
            way,
            self.length,
            2 * self.length * kept,
            self.unbounded,
        )


@dataclass(frozen=True)
class _Body:
    """A stand-in for a derivation in a process without the program."""

    graph: ComputationGraph


def _plain(edge: AnyEdge) -> AnyStructure:
    assert not isinstance(edge, (Bundle, Passage))
    return edge


def _fixed_point(
    start: Structures, known: Structures, step: Callable[[Structures], Iterable[tuple[Key, AnyStructure]]]
) -> dict[Key, Structure]:
    """The smallest structures that contain the start and the results of a step applied to them and to ``known``."""
    reached = {key: pattern_of(structure) for key, structure in start.items()}
    for _ in range(_MOST_ROUNDS):
        grown = dict(reached)
        for key, structure in step({**known, **reached}):
            found = pattern_of(structure)
            grown[key] = pattern_of(hull(grown[key], found)) if key in grown else found
        if grown == reached:
            return reached
        reached = grown
    return {key: dense(structure.out_shape, structure.inp_shape) for key, structure in reached.items()}


def _ends(edges: Iterable[Key], side: int, first: int, step: int) -> dict[int, int]:
    """A vertex per member on one side of the edges."""
    return {member: first + step * n for n, member in enumerate(sorted({key[side] for key in edges}))}


def _extended(
    graph: ComputationGraph, edges: Mapping[tuple[int, int], AnyStructure], ends: Iterable[int], kind: str
) -> ComputationGraph:
    """A graph with edges from new inputs into its own inputs, or from its outputs to new outputs."""
    ends = tuple(ends)
    inputs, outputs = (ends, graph.outputs) if kind == "input" else (graph.inputs, ends)
    kept = pruned({**graph.edges, **edges}, set(inputs), set(outputs))
    present = {vertex for edge in kept for vertex in edge} | set(inputs)
    vertices = {**graph.vertices, **_end_vertices(edges, ends, kind)}
    roles = dict.fromkeys(present, "intermediate") | dict.fromkeys(outputs, "output") | dict.fromkeys(inputs, "input")
    vertices = {number: replace(vertices[number], kind=roles[number]) for number in sorted(present)}
    wanted = tuple(o if o in present else None for o in outputs)
    return ComputationGraph(vertices, inputs, wanted, kept, graph.numbered, graph.simplified, ())


def planned(graph: ComputationGraph, whole: bool = True) -> tuple[Order, Plan]:
    """The cheapest of a few presets for a body, and its plan."""
    orders = [Order.of(name, graph) for name in _ORDERS]
    if whole and not graph.has_loops:
        prices = prices_of(graph)
        best = min(orders, key=lambda order: counted(prices, order.vertices))
        return best, graph.plan(best)
    return min(((order, graph.plan(order, whole)) for order in orders), key=lambda pair: pair[1].cost().operations)


def _end_vertices(edges: Mapping[tuple[int, int], AnyStructure], ends: Sequence[int], kind: str) -> dict[int, Vertex]:
    """New inputs or new outputs with the shapes of their edges."""
    if kind == "input":
        shapes = {source: structure.inp_shape for (_, source), structure in edges.items()}
    else:
        shapes = {target: structure.out_shape for (target, _), structure in edges.items()}
    name = "source" if kind == "input" else "target"
    return {end: Vertex(end, kind, shapes[end], None, f"{name} {n}") for n, end in enumerate(ends) if end in shapes}
