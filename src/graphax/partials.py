"""The local Jacobian blocks of one equation.

JAX differentiates: `jax.linearize` of the equation gives a program in which everything nonlinear is computed
beforehand and the tangents pass through linear primitives only. Here identity blocks are pushed through that
linear part, using one rule for each primitive (`graphax.linear_rules`). Where a rule knows only the pattern, or
there is none, the values are read off by applying the linear part to tangents, as few as the pattern allows, from
whichever side needs fewer. Complex values are differentiated as pairs of real ones.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import _jax
from ._jax import JaxprEqn, Literal, Program, Var
from .axes import labels_of
from .block import JacobianBlock, add, compose, read_values, seeds
from .linear_rules import LinearCall, apply_rule, as_pattern, only_moves
from .structure import Structure, identity

_CACHE_SIZE = 4096

# Transposing a linear map is worth its trouble if it saves this factor in tangents.
_BACKWARD_GAIN = 4

Edge = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Partials:
    """What one equation contributes to the graph.

    Attributes:
        program: from the equation's distinct variables to its results, followed by the values of the blocks.
        structures: for (result, active operand) the structure of the block; zero blocks are absent.
        probed: those whose values come from applying the linear map to tangents, because some primitive in it
            has no complete rule.
    """

    program: Program
    structures: dict[Edge, Structure]
    probed: frozenset[Edge]

    @property
    def valued(self) -> list[Edge]:
        """The blocks that have values, in the order in which the program returns them."""
        return [edge for edge, structure in self.structures.items() if structure.scale is None]


def tangent_shape(aval: Any) -> tuple[int, ...]:
    """The shape of the derivative of a value: complex numbers are pairs."""
    return (*aval.shape, 2) if _jax.is_complex(aval) else tuple(aval.shape)


def equation_partials(eqn: JaxprEqn, variables: Sequence[Var], active: Sequence[Var]) -> Partials:
    """The blocks of an equation's results by its ``active`` operands; ``variables`` are its distinct operands.

    What is known now of the other operands must stand in the equation as literals.
    """
    operands = tuple(
        _Constant(np.asarray(atom.val), atom.aval) if isinstance(atom, Literal) else variables.index(atom)
        for atom in eqn.invars
    )
    key = _EquationKey(
        eqn, operands, tuple(var.aval for var in variables), tuple(variables.index(var) for var in active)
    )
    try:
        return _cached(key)
    except Exception as error:
        error.add_note(f"graphax: while differentiating '{eqn.primitive.name}' at {_jax.source_line(eqn)}")
        raise


class _Constant:
    """A literal operand, compared by value."""

    def __init__(self, value: np.ndarray, aval: Any):
        self.value = value
        self.key = (aval, value.tobytes())

    def __hash__(self):
        return hash(self.key)

    def __eq__(self, other):
        return isinstance(other, _Constant) and self.key == other.key


class _EquationKey:
    """All that the blocks of an equation depend on. Equations with unhashable parameters equal only themselves."""

    def __init__(self, eqn: JaxprEqn, operands: tuple, avals: tuple, active: tuple[int, ...]):
        self.eqn, self.operands, self.avals, self.active = eqn, operands, avals, active
        self.key: Any = (eqn.primitive, tuple(sorted(eqn.params.items())), operands, avals, active)
        try:
            self.hash = hash(self.key)
        except TypeError:
            self.key, self.hash = self, id(self)

    def __hash__(self):
        return self.hash

    def __eq__(self, other):
        return self is other or (isinstance(other, _EquationKey) and self.key is not self and self.key == other.key)

    def local(self, known: Sequence[Any]) -> Callable:
        """The equation as a function of its active operands' real form: (real form of results, all results)."""

        def function(*tangible: Any):
            values = list(known)
            for index, operand in zip(self.active, tangible, strict=True):
                values[index] = _from_real(operand, self.avals[index])
            operands = [entry.value if isinstance(entry, _Constant) else values[entry] for entry in self.operands]
            results = _jax.evaluate(self.eqn, operands)
            return [_to_real(results[n]) for n in self.differentiable], results

        return function

    @property
    def differentiable(self) -> list[int]:
        return [n for n, var in enumerate(self.eqn.outvars) if _jax.is_differentiable(var.aval)]

    def inputs(self, known: Sequence[Any]) -> list[Any]:
        return [_to_real(known[index]) for index in self.active]


@lru_cache(_CACHE_SIZE)
def _cached(key: _EquationKey) -> Partials:
    forward = _linearised(key, backward=False)
    if _jax.only_transposable(forward.linear):
        return _partials(key, _linearised(key, backward=True))
    partials = _partials(key, forward)
    patterns = [partials.structures[edge] for edge in partials.probed]
    if patterns and _BACKWARD_GAIN * _probes([s.transposed for s in patterns]) <= _probes(patterns):
        try:
            return _partials(key, _linearised(key, backward=True))
        except Exception:  # noqa: BLE001  JAX cannot transpose this map, for whatever reason; the forward one stands.
            return partials
    return partials


def _probes(patterns: Sequence[Structure]) -> int:
    return max(prod(s.sizes[n] for n in set(labels_of(s.inp)) - set(labels_of(s.out))) for s in patterns)


@dataclass(frozen=True, eq=False)
class _Linearised:
    """The derivative of an equation: nonlinear equations first, then a linear map between tangents.

    ``backward`` maps go from the tangents of the results to those of the operands.
    """

    operands: tuple[Var, ...]
    constants: dict[Var, Any]
    known: tuple[JaxprEqn, ...]
    linear: tuple[JaxprEqn, ...]
    results: tuple[Any, ...]
    sources: tuple[Var, ...]
    targets: tuple[Any, ...]
    backward: bool


def _linearised(key: _EquationKey, backward: bool) -> _Linearised:
    def derivative(known: Sequence[Any], tangents: Sequence[Any]):
        local, inputs = key.local(known), key.inputs(known)
        if backward:
            _, transposed, results = jax.vjp(local, *inputs, has_aux=True)
            return results, transposed(list(tangents))
        _, pushed, results = jax.linearize(local, *inputs, has_aux=True)
        return results, pushed(*tangents)

    avals = [key.eqn.outvars[n].aval for n in key.differentiable] if backward else [key.avals[n] for n in key.active]
    tangents = [jax.ShapeDtypeStruct(tangent_shape(aval), _real_dtype(aval)) for aval in avals]
    known = [jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type) for aval in key.avals]
    program = _jax.trace(derivative, known, tangents)
    count = len(key.eqn.outvars)
    results, targets = program.outputs[:count], program.outputs[count:]
    sources = program.inputs[len(known) :]
    moving = set(sources)
    fixed, linear = [], []
    for eqn in _jax.needed(program.equations, program.outputs):
        if any(isinstance(atom, Var) and atom in moving for atom in eqn.invars):
            moving.update(eqn.outvars)
            linear.append(eqn)
        else:
            fixed.append(eqn)
    operands = program.inputs[: len(known)]
    return _Linearised(
        operands, program.constants, tuple(fixed), tuple(linear), results, sources, targets, backward
    )


def _partials(key: _EquationKey, derivative: _Linearised) -> Partials:
    """Stage the computation of all block values as one program of the equation's operands."""
    structures: dict[Edge, Structure] = {}
    probed: set[Edge] = set()

    def run(*operands: Any):
        values = derivative.constants | dict(zip(derivative.operands, operands, strict=True))
        for eqn in derivative.known:
            values.update(zip(eqn.outvars, _jax.evaluate(eqn, _jax.read_all(values, eqn.invars)), strict=True))
        blocks = _push(derivative, values)
        patterns = {edge: block.structure for edge, block in blocks.items() if block.is_pattern}
        blocks |= _probe(derivative, values, patterns)
        if derivative.backward:
            blocks = {(o, i): block.transpose() for (i, o), block in blocks.items()}
            patterns = {(o, i): structure for (i, o), structure in patterns.items()}
        probed.update((key.differentiable[o], i) for o, i in patterns)
        moves = only_moves(key.eqn.primitive.name)
        for (o, i), block in blocks.items():
            # x + 1 hands its tangent on unchanged, yet it is arithmetic.
            renaming = block.structure.renaming and moves
            structures[key.differentiable[o], i] = replace(block.structure, renaming=renaming)
        block_values = [block.values for block in blocks.values() if block.structure.scale is None]
        return [*_jax.read_all(values, derivative.results), *block_values]

    program = _jax.trace(run, *[jax.ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in key.avals])
    lean = Program(
        program.inputs, program.constants, _jax.needed(program.equations, program.outputs), program.outputs
    )
    return Partials(lean, structures, frozenset(probed))


def _push(derivative: _Linearised, values: dict[Var, Any]) -> dict[Edge, JacobianBlock]:
    """The blocks of every target by every source, pushed forward through the linear equations."""
    reached: dict[Var, dict[int, JacobianBlock]] = {
        var: {n: JacobianBlock(identity(var.aval.shape, renaming=True), None)}
        for n, var in enumerate(derivative.sources)
    }
    for eqn in derivative.linear:
        moving = [isinstance(atom, Var) and atom in reached for atom in eqn.invars]
        operands = tuple(
            None if moves else _jax.read_all(values, [atom])[0]
            for moves, atom in zip(moving, eqn.invars, strict=True)
        )
        for position, atom in enumerate(eqn.invars):
            if not moving[position]:
                continue
            call = LinearCall(
                eqn.primitive.name,
                eqn.params,
                position,
                operands,
                tuple(tuple(operand.aval.shape) for operand in eqn.invars),
                tuple(tuple(var.aval.shape) for var in eqn.outvars),
                eqn.outvars[0].aval.dtype,
            )
            local = apply_rule(call) if atom.aval.size else [None] * len(eqn.outvars)
            if any(_jax.is_complex(v.aval) for v in (atom, *eqn.outvars) if _jax.is_differentiable(v.aval)):
                local = [block and as_pattern(block) for block in local]
            for var, block in zip(eqn.outvars, local, strict=True):
                if block is not None and var.aval.size:
                    _extend(reached.setdefault(var, {}), block, reached[atom])
                else:
                    reached.setdefault(var, {})
    blocks = {}
    for o, target in enumerate(derivative.targets):
        for i, block in (reached.get(target, {}) if isinstance(target, Var) else {}).items():
            blocks[o, i] = block
    return blocks


def _extend(into: dict[int, JacobianBlock], block: JacobianBlock, before: dict[int, JacobianBlock]) -> None:
    """Add ``block`` after each of the blocks ``before`` to those already in ``into``."""
    for source, earlier in before.items():
        product = compose(block, earlier)
        if product is not None:
            into[source] = add(into[source], product) if source in into else product


def _probe(
    derivative: _Linearised, values: dict[Var, Any], patterns: dict[Edge, Structure]
) -> dict[Edge, JacobianBlock]:
    """Find the values of blocks whose pattern is known by applying the linear map to a batch of tangents."""
    if not patterns:
        return {}

    def linear_map(tangents: Sequence[Any]) -> list[Any]:
        scope = values | dict(zip(derivative.sources, tangents, strict=True))
        for eqn in derivative.linear:
            scope.update(zip(eqn.outvars, _jax.evaluate(eqn, _jax.read_all(scope, eqn.invars)), strict=True))
        return _jax.read_all(scope, derivative.targets)

    # Blocks of one source that need the same tangents share them.
    batches: dict[tuple, tuple[int, Any]] = {}
    users: dict[Edge, tuple[tuple, tuple[int, ...]]] = {}
    for (target, source), structure in patterns.items():
        tangents, own = seeds(structure)
        key = (source, structure.transposed.out, tuple(labels_of(structure.inp).index(n) for n in own))
        batches.setdefault(key, (source, tangents))
        users[target, source] = key, own
    total = sum(tangents.shape[0] for _, tangents in batches.values())
    stacked = [[] for _ in derivative.sources]  # type: list[list[Any]]
    offsets, start = {}, 0
    for key, (source, tangents) in batches.items():
        offsets[key] = range(start, start + tangents.shape[0])
        start += tangents.shape[0]
        for n, var in enumerate(derivative.sources):
            piece = tangents if n == source else np.zeros((tangents.shape[0], *var.aval.shape), np.float32)
            stacked[n].append(lax.convert_element_type(piece, var.aval.dtype))
    inputs = [jnp.concatenate(pieces) if len(pieces) > 1 else pieces[0] for pieces in stacked]
    if total == 1:
        results = [result[None] for result in linear_map([tangent[0] for tangent in inputs])]
    else:
        results = jax.vmap(linear_map)(inputs)
    blocks = {}
    for (target, source), structure in patterns.items():
        key, own = users[target, source]
        rows = offsets[key]
        result = lax.slice_in_dim(results[target], rows.start, rows.stop)
        blocks[target, source] = JacobianBlock(structure, read_values(structure, result, own))
    return blocks


def _real_dtype(aval: Any) -> np.dtype:
    return np.dtype(jnp.finfo(aval.dtype).dtype) if _jax.is_complex(aval) else aval.dtype


def _to_real(value: Any) -> Any:
    if not jnp.iscomplexobj(value):
        return value
    parts = [lax.expand_dims(part, [value.ndim]) for part in (lax.real(value), lax.imag(value))]
    return lax.concatenate(parts, value.ndim)


def _from_real(value: Any, aval: Any) -> Any:
    if not _jax.is_complex(aval):
        return value
    parts = [lax.index_in_dim(value, n, value.ndim - 1, keepdims=False) for n in (0, 1)]
    return lax.complex(*parts)
