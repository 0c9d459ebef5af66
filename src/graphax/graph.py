"""The computational graph: vertices with shapes, edges with structures, no values."""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from . import _jax
from ._jax import Program, Var
from .partials import Partials, equation_partials, tangent_shape
from .structure import Structure, identity
from .trace import Request, Traced, trace

Edge = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Vertex:
    """A value of the program.

    Equations are numbered from 1 by the variable they define; input n is vertex -n; an output that is also used
    inside the function gets a vertex of its own behind the last equation, so that the value can be eliminated.
    """

    number: int
    kind: str
    shape: tuple[int, ...]
    dtype: Any
    name: str
    source_info: Any = None

    def __getstate__(self):
        # Where a value comes from is known to the process that traced it.
        return {**self.__dict__, "source_info": None}

    @property
    def source(self) -> str:
        """The line of the user's code that computes the value."""
        return "" if self.source_info is None else _jax.source_line(self.source_info)


@dataclass(frozen=True, eq=False)
class ComputationGraph:
    """What elimination works on. Edges are (target, source) pairs: ``edges[k, j]`` is the block of k by j.

    Attributes:
        vertices: all live vertices by number; a vertex that no input reaches, or that reaches no output, is absent.
        inputs: the vertices of the differentiated inputs, one for each leaf of the arguments under ``argnums``.
        outputs: the vertex of each leaf of the result; None where it depends on no input.
        numbered: how many values the equations of the function define, live or not.
        simplified: whether common subexpressions were removed.
        dense_fallbacks: the edges whose values come from applying a linear map to tangents, for want of a complete
            rule.
    """

    vertices: dict[int, Vertex]
    inputs: tuple[int, ...]
    outputs: tuple[int | None, ...]
    edges: dict[Edge, Structure]
    numbered: int
    simplified: bool
    dense_fallbacks: tuple[Edge, ...]

    @cached_property
    def intermediates(self) -> tuple[int, ...]:
        """The vertices to eliminate, ascending."""
        return tuple(sorted(v.number for v in self.vertices.values() if v.kind == "intermediate"))

    @cached_property
    def fingerprint(self) -> str:
        """Identifies the vertices and how they are connected, so that an order can be told from one for another
        graph. Dtypes, primitives and coefficients do not matter to what an order means and are left out."""
        description = {
            "vertices": [[v.number, v.kind, list(v.shape)] for _, v in sorted(self.vertices.items())],
            "edges": sorted(self.edges),
            "outputs": self.outputs,
        }
        return hashlib.sha256(json.dumps(description).encode()).hexdigest()[:16]

    @cached_property
    def digest(self) -> str:
        """Identifies the graph with all its structures and known coefficients, and so what orders cost on it.

        Coefficients are rounded, so that a function has the same digest in single and in double precision.
        """
        edges = sorted(self.edges.items(), key=lambda item: item[0])
        rounded = {edge: "" if s.scale is None else f"{s.scale:.6g}" for edge, s in edges}
        texts = [f"{edge} {s.out} {s.inp} {s.sizes} {s.values} {s.renaming} {rounded[edge]}" for edge, s in edges]
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
        """Graphs are equal if they have the same plans, so that calling a function again does not plan again."""
        return isinstance(other, ComputationGraph) and self._content == other._content

    def plan(self, order: Any = "auto"):
        """The contractions that eliminating in this order takes; see `graphax.plan.Plan`."""
        from .order import resolve
        from .plan import make_plan

        return make_plan(self, resolve(order, self))

    def cost(self, order: Any = "auto", counting: str = "folded"):
        """What an elimination order costs: multiplications, additions, peak live elements."""
        return self.plan(order).cost(counting)

    def __getstate__(self):
        # What is computed from the rest may hold for one process only, as hashes do.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def lower_bound(self, minimize: str = "multiplications", counting: str = "folded") -> int:
        """A cost that no elimination order gets below.

        ``minimize`` is "multiplications", "operations" (with additions) or "peak" (live numbers, counted alike in
        every counting). An order that costs no more is optimal.
        """
        from .bound import lower_bound

        return lower_bound(self, minimize, counting)

    def __repr__(self):
        return (
            f"ComputationGraph({len(self.inputs)} inputs, {len(self.intermediates)} intermediates, "
            f"{len([o for o in self.outputs if o is not None])} outputs, {len(self.edges)} edges, "
            f"fingerprint {self.fingerprint})"
        )


@dataclass(frozen=True, eq=False)
class LocalBlocks:
    """The blocks of one equation: ``edges`` names, for (result, active operand), the edge of the graph."""

    partials: Partials
    variables: tuple[Var, ...]
    edges: dict[tuple[int, int], Edge]


@dataclass(frozen=True, eq=False)
class Derivation:
    """A graph together with what it takes to execute plans on it.

    Apart from the graph, because it may hold values: arguments, and constants that the function closes over.
    """

    graph: ComputationGraph
    traced: Traced
    local: dict[int, LocalBlocks]


def build_graph(
    function: Callable,
    *args: Any,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    simplify: bool = False,
    **kwargs: Any,
) -> ComputationGraph:
    """The computational graph of ``function`` at the shapes of the example arguments.

    Arguments under ``argnums`` may be arrays or `jax.ShapeDtypeStruct`s. ``simplify`` removes dead code and common
    subexpressions first, which gives other vertex numbers.
    """
    return derive(trace(function, args, kwargs, Request(argnums, has_aux), simplify), simplify).graph


def derive(traced: Traced, simplified: bool) -> Derivation:
    """Find the local blocks of all equations that matter, and the graph they make."""
    program = traced.program
    numbers: dict[Var, int] = {var: -n for n, var in enumerate(program.inputs)}
    defined = [var for eqn in program.equations for var in eqn.outvars]
    numbers.update((var, number) for number, var in enumerate(defined, start=1))
    results = program.outputs[: traced.out_count]
    live = _live(program, results)

    edges: dict[Edge, Structure] = {}
    local: dict[int, LocalBlocks] = {}
    moving = set(_differentiable_inputs(program))
    for position, eqn in enumerate(program.equations):
        if not any(var in live for var in eqn.outvars):
            continue
        variables = tuple(dict.fromkeys(atom for atom in eqn.invars if isinstance(atom, Var)))
        # A value with a zero derivative (stop_gradient, floor) is a constant to those that use it, as in JAX.
        active = [var for var in variables if var in live and var in moving]
        if not active:
            continue
        partials = equation_partials(eqn, variables, active)
        moving.update(eqn.outvars[o] for o, _ in partials.structures)
        names = {
            (o, i): (numbers[eqn.outvars[o]], numbers[active[i]])
            for o, i in partials.structures
            if eqn.outvars[o] in live
        }
        edges.update({edge: partials.structures[key] for key, edge in names.items()})
        local[position] = LocalBlocks(partials, variables, names)

    inputs = tuple(numbers[var] for var in program.inputs)
    avals: dict[int, Any] = {numbers[var]: var.aval for var in (*program.inputs, *defined)}
    ends = [numbers[a] if isinstance(a, Var) and a in live else None for a in results]
    edges, outputs = _with_output_vertices(edges, ends, set(inputs), len(defined), avals)
    edges = _pruned(edges, set(inputs), set(outputs))
    present = {vertex for edge in edges for vertex in edge}
    vertices = _vertices(traced, numbers, present | set(inputs), set(outputs), avals)
    kept = tuple(o if o in present else None for o in outputs)
    probed = [block.edges.get(key) for block in local.values() for key in block.partials.probed]
    fallbacks = tuple(edge for edge in probed if edge in edges)
    graph = ComputationGraph(vertices, inputs, kept, edges, len(defined), simplified, fallbacks)
    return Derivation(graph, traced, local)


def _vertices(
    traced: Traced, numbers: dict[Var, int], present: set[int], outputs: set[int | None], avals: dict[int, Any]
) -> dict[int, Vertex]:
    makers = {numbers[var]: eqn for eqn in traced.program.equations for var in eqn.outvars}
    vertices = {}
    for number in sorted(present):
        kind = "input" if number <= 0 else "output" if number in outputs else "intermediate"
        maker = makers.get(number)
        name = traced.names[-number] if kind == "input" else maker.primitive.name if maker else "output"
        source = maker.source_info if maker else None
        vertices[number] = Vertex(number, kind, tangent_shape(avals[number]), avals[number].dtype, name, source)
    return vertices


def _differentiable_inputs(program: Program) -> list[Var]:
    return [var for var in program.inputs if _jax.is_differentiable(var.aval)]


def _live(program: Program, results: Iterable[Any]) -> set[Var]:
    """The variables that an input reaches through differentiable values and that reach a result."""
    reached = set(_differentiable_inputs(program))
    for eqn in program.equations:
        if any(isinstance(atom, Var) and atom in reached for atom in eqn.invars):
            reached.update(var for var in eqn.outvars if _jax.is_differentiable(var.aval))
    useful = {atom for atom in results if isinstance(atom, Var) and atom in reached}
    for eqn in reversed(program.equations):
        if any(var in useful for var in eqn.outvars):
            useful.update(atom for atom in eqn.invars if isinstance(atom, Var) and atom in reached)
    return useful


def _with_output_vertices(
    edges: dict[Edge, Structure], ends: Sequence[int | None], inputs: set[int], last: int, avals: dict[int, Any]
) -> tuple[dict[Edge, Structure], list[int | None]]:
    """Put a vertex of its own behind every output that is an input or is used inside the function."""
    used = {source for _, source in _pruned(edges, inputs, set(ends))} | inputs
    edges = dict(edges)
    copies: dict[int | None, int] = {}
    for end in dict.fromkeys(ends):
        if end is not None and end in used and avals[end].size:
            copies[end] = last + len(copies) + 1
            avals[copies[end]] = avals[end]
            edges[copies[end], end] = identity(tangent_shape(avals[end]), renaming=True)
    return edges, [copies.get(end, end) for end in ends]


def _pruned(edges: dict[Edge, Structure], inputs: set[int], outputs: set[int | None]) -> dict[Edge, Structure]:
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
