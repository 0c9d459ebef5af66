"""The computational graph: vertices with shapes, edges with structures, no values."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from .axes import Axis
from .bound import lower_bound
from .bundles import AnyEdge, Bundle, Passage
from .errors import OrderError
from .order import Order, OrderLike
from .plan import Cost, Edge, Plan, make_plan
from .positions import canonical
from .terms import terms_of


@dataclass(frozen=True, eq=False)
class Vertex:
    """A value of the program.

    Values that equations define are numbered from 1; input n is vertex -n. An output that is also used inside the
    function gets a separate vertex after the last equation, so that the value itself can be eliminated.
    """

    number: int
    kind: str
    shape: tuple[int, ...]
    dtype: Any
    name: str
    locate: Callable[[], str] = str

    def __getstate__(self):
        # Only the process that traced a value knows its source line.
        return {**self.__dict__, "locate": str}

    @property
    def source(self) -> str:
        """The line of the user's code that computes the value."""
        return self.locate()


@dataclass(frozen=True, eq=False)
class ComputationGraph:
    """The graph that elimination works on.

    Edges are (target, source) pairs; ``edges[k, j]`` is the block of k with respect to j.

    Attributes:
        vertices: all live vertices by number, without those that no input reaches or that reach no output.
        inputs: the vertices of the differentiated inputs, one per leaf of the arguments under ``argnums``.
        outputs: the vertex of each leaf of the result; None if it depends on no input.
        numbered: the number of values that the equations of the function define, live or not.
        simplified: whether common subexpressions were removed.
        dense_fallbacks: the edges whose values come from applying a linear map to tangents, because no complete rule
            exists.
    """

    vertices: dict[int, Vertex]
    inputs: tuple[int, ...]
    outputs: tuple[int | None, ...]
    edges: dict[Edge, AnyEdge]
    numbered: int
    simplified: bool
    dense_fallbacks: tuple[Edge, ...]

    @cached_property
    def intermediates(self) -> tuple[int, ...]:
        """The vertices to eliminate, ascending."""
        return tuple(sorted(v.number for v in self.vertices.values() if v.kind == "intermediate"))

    @cached_property
    def has_loops(self) -> bool:
        """Whether an edge is a program that other edges are pushed or pulled through."""
        return bool(self.loops)

    @cached_property
    def loops(self) -> dict[Edge, Passage]:
        """The edges that are programs, each between two bundles."""
        return {edge: passage for edge, passage in self.edges.items() if isinstance(passage, Passage)}

    @cached_property
    def fingerprint(self) -> str:
        """Identifies the vertices and their connections, so that an order cannot be used with another graph by mistake.

        Dtypes, primitives, coefficients and numbers of steps are left out, since they do not affect the meaning of an
        order.
        """
        description: dict[str, Any] = {
            "vertices": [[v.number, v.kind, list(v.shape)] for _, v in sorted(self.vertices.items())],
            "edges": sorted(self.edges),
            "outputs": self.outputs,
        }
        # Graphs without loops keep the fingerprints that saved orders hold.
        if self.has_loops:
            description["bodies"] = [[*edge, loop.fingerprint] for edge, loop in sorted(self.loops.items())]
        return _hashed(description)

    @cached_property
    def form(self) -> str:
        """Like `fingerprint`, but independent of the vertex numbers.

        Vertex numbers also count irrelevant equations, and how many there are depends on which arguments are known.
        """
        numbers = {number: n for n, number in enumerate(sorted(self.vertices))}
        # Bundles also hold irrelevant operands, so their shapes are left out. Orders of bodies have fingerprints of
        # their own.
        bundles = {vertex for edge in self.loops for vertex in edge}
        shapes = [[v.kind, [] if number in bundles else v.shape] for number, v in sorted(self.vertices.items())]
        edges = sorted((numbers[target], numbers[source]) for target, source in self.edges)
        outputs = [output if output is None else numbers[output] for output in self.outputs]
        return _hashed({"vertices": shapes, "edges": edges, "outputs": outputs, "loops": len(self.loops)})

    def order(self, vertices: Iterable[int], **about: Any) -> Order:
        """An order of these vertices for this graph. ``about`` gives its origin and its known properties."""
        return Order(tuple(vertices), self.fingerprint, simplified=self.simplified, form=self.form, **about)

    @cached_property
    def digest(self) -> str:
        """Identifies the graph with all its structures and known coefficients, and hence the costs of orders.

        Coefficients are rounded, so that a function has the same digest in single and in double precision.
        """
        edges = sorted(self.edges.items(), key=lambda item: item[0])
        texts = [f"{edge} {text}" for edge, whole in edges for text in _descriptions(whole)]
        return hashlib.sha256("\n".join([self.fingerprint, str(self.simplified), *texts]).encode()).hexdigest()[:24]

    @cached_property
    def _content(self) -> tuple:
        return self.fingerprint, self.simplified, tuple(sorted(self.edges.items(), key=lambda item: item[0]))

    @cached_property
    def _hash(self) -> int:
        return hash(self._content)

    def __hash__(self):
        return self._hash

    def __eq__(self, other):
        """Graphs are equal if they have the same plans, so that repeated calls of a function are planned once."""
        return isinstance(other, ComputationGraph) and self._content == other._content

    def plan(self, order: OrderLike = "auto", whole: bool = True) -> Plan:
        """The products and sums that eliminate the graph in this order; see `graphax.Plan`.

        With ``whole``, blocks of small arrays are kept whole where that is faster. Without it, entries that are always
        zero are never stored.
        """
        found = Order.of(order, self)
        return make_plan(self._with_bodies(found) if found.bodies else self, found.vertices, whole)

    def _with_bodies(self, order: Order) -> "ComputationGraph":
        """The same graph, with loops whose steps follow the orders of their bodies.

        A loop is passed when the first of its two bundles is eliminated.
        """
        passed = {min(edge, key=order.vertices.index): edge for edge in self.loops}
        misplaced = [(vertex, body.fingerprint) for vertex, body in order.bodies if vertex not in passed]
        if misplaced:
            plan = make_plan(self, order.vertices)
            bodies = [(vertex, passing.how.graph.fingerprint) for vertex, passing in plan.passings]
            raise OrderError(
                f"the order has orders for bodies of loops that are passed at {_listed(misplaced)}, but eliminating in "
                f"this order passes {f'loops at {_listed(bodies)}' if bodies else 'no loop'}"
            )
        ordered = {passed[vertex]: self.loops[passed[vertex]].with_order(body) for vertex, body in order.bodies}
        return replace(self, edges={**self.edges, **ordered})

    def cost(self, order: OrderLike = "auto", counting: str = "folded") -> Cost:
        """The cost of an elimination order: multiplications, additions and the peak of live numbers."""
        return self.plan(order).cost(counting)

    def __getstate__(self):
        # Cached values such as hashes may be valid within one process only.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def lower_bound(self, minimize: str = "multiplications", counting: str = "folded") -> int:
        """A lower bound on the cost of every elimination order.

        ``minimize`` is "multiplications", "operations" (including additions) or "peak" (live numbers, the same in every
        counting). An order whose cost equals the bound is optimal.
        """
        return lower_bound(self, minimize, counting)

    def __repr__(self):
        return (
            f"ComputationGraph({len(self.inputs)} inputs, {len(self.intermediates)} intermediates, "
            f"{len([o for o in self.outputs if o is not None])} outputs, {len(self.edges)} edges, "
            f"fingerprint {self.fingerprint})"
        )


def _hashed(description: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(description).encode()).hexdigest()[:16]


def _listed(bodies: Iterable[tuple[int, str]]) -> str:
    return ", ".join(f"vertex {vertex} (body {fingerprint or 'unknown'})" for vertex, fingerprint in bodies)


def _descriptions(edge: AnyEdge) -> Iterator[str]:
    """Yield texts that describe everything by which an edge differs from others."""
    if isinstance(edge, Passage):
        yield edge.digest
    elif isinstance(edge, Bundle):
        yield from (f"{key} {text}" for key, structure in edge.members for text in _descriptions(structure))
    else:
        for s in terms_of(edge):
            scale = "" if s.scale is None else f"{s.scale:.6g}"
            yield f"{_canonical(s.out)} {_canonical(s.inp)} {s.sizes} {s.values} {s.renaming} {scale}"


def _canonical(side: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """Axes that look the same if they are equal."""
    return tuple(tuple(digit._replace(at=canonical(digit.at)) for digit in axis) for axis in side)


def pruned(edges: dict[Edge, AnyEdge], inputs: set[int], outputs: set[int | None]) -> dict[Edge, AnyEdge]:
    """The edges on a path from an input to an output."""
    successors: dict[int, list[int]] = {}
    predecessors: dict[int, list[int]] = {}
    for target, source in edges:
        successors.setdefault(source, []).append(target)
        predecessors.setdefault(target, []).append(source)
    below = _reachable(inputs, successors)
    above = _reachable({o for o in outputs if o is not None}, predecessors)
    return {(t, s): structure for (t, s), structure in edges.items() if s in below and t in above}


def _reachable(start: set[int], neighbours: dict[int, list[int]]) -> set[int]:
    seen, todo = set(start), list(start)
    while todo:
        new = [n for n in neighbours.get(todo.pop(), ()) if n not in seen]
        seen.update(new)
        todo.extend(new)
    return seen
