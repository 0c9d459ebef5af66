"""From a traced program to its graph: the local blocks of every equation that matters."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from . import _jax
from ._jax import Program, Var
from .graph import ComputationGraph, Edge, Vertex
from .partials import Partials, equation_partials, tangent_shape
from .structure import identity
from .terms import AnyStructure, renamed
from .trace import Traced


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


def derive(traced: Traced, simplified: bool) -> Derivation:
    """Find the local blocks of all equations that matter, and the graph they make."""
    program = traced.program
    numbers: dict[Var, int] = {var: -n for n, var in enumerate(program.inputs)}
    defined = [var for eqn in program.equations for var in eqn.outvars]
    numbers.update((var, number) for number, var in enumerate(defined, start=1))
    results = program.outputs[: traced.out_count]
    live = _live(program, results)

    edges: dict[Edge, AnyStructure] = {}
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
        edges.update({edge: renamed(partials.structures[key], position) for key, edge in names.items()})
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
        locate = partial(_jax.source_line, maker.source_info) if maker else str
        vertices[number] = Vertex(number, kind, tangent_shape(avals[number]), avals[number].dtype, name, locate)
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
    edges: dict[Edge, AnyStructure], ends: Sequence[int | None], inputs: set[int], last: int, avals: dict[int, Any]
) -> tuple[dict[Edge, AnyStructure], list[int | None]]:
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


def _pruned(edges: dict[Edge, AnyStructure], inputs: set[int], outputs: set[int | None]) -> dict[Edge, AnyStructure]:
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
