"""From a traced program to its graph: the local blocks of every equation that matters."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np

from . import _jax
from ._jax import JaxprEqn, Program, Var
from .bodies import branch_programs, while_programs
from .branches import Branches
from .bundles import ALONE, AnyEdge, Bundle
from .graph import ComputationGraph, Edge, Vertex, pruned
from .loop import Loop
from .partials import Partials, equation_partials, tangent_shape
from .simplify import fold_constants, simplify
from .solves import moves_matrix, solve_partials
from .structure import identity
from .terms import renamed
from .trace import Traced
from .while_loop import COUNTED_STEPS, While


@dataclass(frozen=True, eq=False)
class LocalBlocks:
    """The blocks of one equation. ``edges`` maps (result, active operand) to the edge of the graph.

    In ``variables``, the variables that the equation reads, active ones come first.
    """

    partials: Partials | Branches
    variables: tuple[Var, ...]
    edges: dict[tuple[int, int], Edge]


@dataclass(frozen=True, eq=False)
class LocalLoop:
    """A loop and the edge between its two bundles."""

    loop: Loop
    edge: Edge


@dataclass(frozen=True, eq=False)
class Derivation:
    """A graph together with everything needed to execute plans on it.

    It is separate from the graph because it may hold values: arguments, and constants that the function closes over.
    """

    graph: ComputationGraph
    traced: Traced
    local: dict[int, LocalBlocks]
    loops: dict[int, LocalLoop]


def derive(
    traced: Traced,
    simplified: bool,
    whole: bool = True,
    moving: Iterable[Var] | None = None,
    wanted: Sequence[bool] | None = None,
    with_residuals: bool = True,
) -> Derivation:
    """Find the local blocks of all relevant equations, and the graph that they form.

    With ``whole``, blocks of small arrays are kept whole where that is faster. Derivatives are taken with respect to
    the inputs in ``moving`` and of the outputs that are ``wanted``; None means all of them. With ``with_residuals``,
    the residuals of linear solves are vertices.
    """
    program = traced.program
    numbers: dict[Var, int] = {var: -n for n, var in enumerate(program.inputs)}
    makers, further = _numbered(program, numbers)
    last = max(makers, default=0)
    outputs = program.outputs[: traced.out_count]
    results = [atom if wanted is None or wanted[n] else None for n, atom in enumerate(outputs)]
    moving = {var for var in (program.inputs if moving is None else moving) if _jax.is_differentiable(var.aval)}
    live = _live(program, results, moving)

    avals: dict[int, Any] = {number: var.aval for var, number in numbers.items()}
    edges: dict[Edge, AnyEdge] = {}
    local: dict[int, LocalBlocks] = {}
    loops: dict[int, LocalLoop] = {}
    for position, eqn in enumerate(program.equations):
        if not any(var in live for var in eqn.outvars):
            continue
        variables = tuple(dict.fromkeys(atom for atom in eqn.invars if isinstance(atom, Var)))
        # As in JAX, a value with a zero derivative (stop_gradient, floor) is a constant to the equations that use it.
        active = [var for var in variables if var in live and var in moving]
        if not active:
            continue
        if _jax.is_loop(eqn):
            loop = _loop(eqn, active, live, simplified, whole)
            first, second = further[position]
            loops[position] = LocalLoop(loop, (second, first))
            found = _loop_edges(eqn, loop, loops[position].edge, active, live, numbers)
            moving.update(eqn.outvars[o] for o in loop.reached(_positions(eqn, active)))
            edges.update(found)
            avals |= {first: _bundle_aval(eqn.invars), second: _bundle_aval(eqn.outvars)}
            continue
        variables = tuple(dict.fromkeys((*active, *variables)))
        partials = _partials(eqn, variables, active, live, simplified, whole, with_residuals)
        residuals = further.get(position, ())
        avals |= {number: var.aval for number, var in zip(residuals, eqn.outvars, strict=False)}
        targets = [*(numbers[var] for var in eqn.outvars), *residuals]
        sources = [*(numbers[var] for var in active), *residuals]
        moving.update(eqn.outvars[o] for o, _ in partials.structures if o < len(eqn.outvars))
        names = {
            (o, i): (targets[o], sources[i])
            for o, i in partials.structures
            if o >= len(eqn.outvars) or eqn.outvars[o] in live
        }
        edges.update({edge: renamed(partials.structures[key], position) for key, edge in names.items()})
        local[position] = LocalBlocks(partials, variables, names)

    inputs = tuple(numbers[var] for var in program.inputs)
    ends = [numbers[a] if isinstance(a, Var) and a in live else None for a in results]
    edges, reached = _with_output_vertices(edges, ends, set(inputs), last, avals, apart=wanted is not None)
    edges = pruned(edges, set(inputs), set(reached))
    present = {vertex for edge in edges for vertex in edge}
    vertices = _vertices(traced, makers, present | set(inputs), set(reached), avals)
    kept = tuple(o if o in present else None for o in reached)
    probed = [block.edges.get(key) for block in local.values() for key in block.partials.probed]
    fallbacks = tuple(edge for edge in probed if edge in edges)
    graph = ComputationGraph(vertices, inputs, kept, edges, last, simplified, fallbacks)
    return Derivation(graph, traced, local, loops)


def _numbered(program: Program, numbers: dict[Var, int]) -> tuple[dict[int, JaxprEqn], dict[int, tuple[int, ...]]]:
    """Number all values that equations define, two bundles per loop, and the residuals of linear solves.

    Returns the equations by number, and the further numbers by the position of the equation.
    """
    makers: dict[int, JaxprEqn] = {}
    further: dict[int, tuple[int, ...]] = {}
    for position, eqn in enumerate(program.equations):
        count = 2 if _jax.is_loop(eqn) else len(eqn.outvars) if _jax.is_solve(eqn) else 0
        if count:
            further[position] = tuple(len(makers) + 1 + n for n in range(count))
            makers |= dict.fromkeys(further[position], eqn)
        for var in eqn.outvars:
            numbers[var] = len(makers) + 1
            makers[numbers[var]] = eqn
    return makers, further


def _positions(eqn: JaxprEqn, active: Sequence[Var]) -> list[int]:
    return [n for n, atom in enumerate(eqn.invars) if isinstance(atom, Var) and atom in active]


def _loop(eqn: JaxprEqn, active: Sequence[Var], live: set[Var], simplified: bool, whole: bool) -> Loop:
    """The loop of an equation that depends on active operands."""
    moving, is_live = _positions(eqn, active), [var in live for var in eqn.outvars]
    if _jax.is_while(eqn):
        constants, program, condition = while_programs(eqn)
        # Operands that only the condition reads do not move.
        moving = [n for n in moving if n >= eqn.params["cond_nconsts"]]
        carries = len(eqn.outvars)
    else:
        constants, carries = _jax.scan_counts(eqn.params)
        program = _jax.inlined(eqn.params["jaxpr"])
    carried = range(constants, constants + carries)
    wanted = [n < carries or kept for n, kept in enumerate(is_live)]
    body = derive_body(program, {*moving, *carried}, wanted, simplified, whole)
    if _jax.is_while(eqn):
        return While(body, constants, carries, COUNTED_STEPS, condition=condition, operands=tuple(moving))
    return Loop(body, constants, carries, eqn.params["length"], eqn.params["reverse"])


def _partials(
    eqn: JaxprEqn,
    variables: Sequence[Var],
    active: Sequence[Var],
    live: set[Var],
    simplified: bool,
    whole: bool,
    with_residuals: bool,
) -> Partials | Branches:
    """The local blocks of an equation that is no loop. Active variables come first."""
    if with_residuals and moves_matrix(eqn, active):
        return solve_partials(eqn, variables, active, whole)
    if _jax.is_choice(eqn):
        return _branches(eqn, variables, active, live, simplified, whole)
    return equation_partials(eqn, variables, active, whole)


def _branches(
    eqn: JaxprEqn, variables: Sequence[Var], active: Sequence[Var], live: set[Var], simplified: bool, whole: bool
) -> Branches:
    """The branches of a `cond` as functions of all its variables. Active variables come first."""
    wanted = [var in live for var in eqn.outvars]
    programs = branch_programs(eqn, variables)
    return Branches(tuple(derive_body(each, range(len(active)), wanted, simplified, whole) for each in programs), whole)


def derive_body(
    program: Program, moving: Iterable[int], wanted: Sequence[bool], simplified: bool, whole: bool
) -> Derivation:
    """The derivation of a program inside an equation, with respect to some of its inputs."""
    program = fold_constants(program)
    program = simplify(program) if simplified else program
    names = tuple(f"input {n}" for n in range(len(program.inputs)))
    traced = Traced(program, (), (), False, None, None, len(program.outputs), names)
    return derive(traced, simplified, whole, [program.inputs[n] for n in moving], wanted)


def _loop_edges(
    eqn: JaxprEqn, loop: Loop, edge: Edge, active: Sequence[Var], live: set[Var], numbers: dict[Var, int]
) -> dict[Edge, AnyEdge]:
    """The edges from operands into a loop, through it, and from it to results."""
    second, first = edge
    edges: dict[Edge, AnyEdge] = {edge: loop}
    for var in active:
        members = {(n, ALONE): identity(tangent_shape(var.aval), renaming=True) for n in _positions(eqn, [var])}
        edges[first, numbers[var]] = Bundle.of(members)
    for o in loop.reached(_positions(eqn, active)):
        var = eqn.outvars[o]
        if var in live:
            edges[numbers[var], second] = Bundle.of({(ALONE, o): identity(tangent_shape(var.aval), renaming=True)})
    return edges


def _bundle_aval(atoms: Sequence[Any]) -> Any:
    """The type that stands for a bundle: all its differentiable values, concatenated."""
    values = [atom.aval for atom in atoms if _jax.is_differentiable(atom.aval)]
    return jax.ShapeDtypeStruct((sum(aval.size for aval in values),), np.result_type(*(aval.dtype for aval in values)))


def _vertices(
    traced: Traced, makers: dict[int, JaxprEqn], present: set[int], outputs: set[int | None], avals: dict[int, Any]
) -> dict[int, Vertex]:
    vertices = {}
    for number in sorted(present):
        kind = "input" if number <= 0 else "output" if number in outputs else "intermediate"
        maker = makers.get(number)
        name = traced.names[-number] if kind == "input" else maker.primitive.name if maker else "output"
        locate = partial(_jax.source_line, maker.source_info) if maker else str
        vertices[number] = Vertex(number, kind, tangent_shape(avals[number]), avals[number].dtype, name, locate)
    return vertices


def _live(program: Program, results: Iterable[Any], moving: Iterable[Var]) -> set[Var]:
    """The variables that a moving input reaches through differentiable values and that reach a result."""
    reached = set(moving)
    for eqn in program.equations:
        if any(isinstance(atom, Var) and atom in reached for atom in eqn.invars):
            reached.update(var for var in eqn.outvars if _jax.is_differentiable(var.aval))
    useful = {atom for atom in results if isinstance(atom, Var) and atom in reached}
    for eqn in reversed(program.equations):
        if any(var in useful for var in eqn.outvars):
            useful.update(atom for atom in eqn.invars if isinstance(atom, Var) and atom in reached)
    return useful


def _with_output_vertices(
    edges: dict[Edge, AnyEdge],
    ends: Sequence[int | None],
    inputs: set[int],
    last: int,
    avals: dict[int, Any],
    apart: bool,
) -> tuple[dict[Edge, AnyEdge], list[int | None]]:
    """Add a separate vertex after every output that is an input or is used inside the function.

    Outputs with the same value share a vertex, unless ``apart`` is true.
    """
    used = {source for _, source in pruned(edges, inputs, set(ends))} | inputs
    if apart:
        used |= {end for end in ends if end is not None and ends.count(end) > 1}
    edges = dict(edges)
    copies: dict[Any, int] = {}
    outputs: list[int | None] = []
    for place, end in enumerate(ends):
        name = (end, place) if apart else end
        if end is not None and end in used and avals[end].size and name not in copies:
            copies[name] = last + len(copies) + 1
            avals[copies[name]] = avals[end]
            edges[copies[name], end] = identity(tangent_shape(avals[end]), renaming=True)
        outputs.append(copies.get(name, end))
    return edges, outputs
