"""The local Jacobian blocks of one equation.

JAX differentiates: `jax.linearize` of the equation gives a program that computes everything nonlinear beforehand and
whose tangents pass through linear primitives only. Here, identity blocks are pushed through this linear part, with one
rule per primitive (modules of `graphax.rules`). Where a rule is missing or knows only the pattern, the values are read
off by applying the linear part to tangents. It takes as few tangents as the pattern allows, from the side that needs
fewer. Complex values are differentiated as pairs of real ones.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import _jax, rules
from ._jax import Atom, JaxprEqn, Literal, Program, Var
from .block import JacobianBlock
from .errors import GraphaxError
from .labelled import nothing_told_apart
from .linear_map import LinearMap, Pair, probes, split
from .part import Part
from .rule import LinearCall, apply_rule, only_renames, remembered, taken_as_one
from .terms import AnyStructure, pattern_of

assert rules.MODULES

_CACHE_SIZE = 4096

# Reductions over at most this many entries are pushed through JAX's steps: they have few terms, and no zeros.
_SHORT = 16

# Transposing a linear map is worthwhile if it saves at least this factor in tangents.
_BACKWARD_GAIN = 4


@dataclass(frozen=True, eq=False)
class Partials:
    """The contribution of one equation to the graph.

    Attributes:
        program: maps the distinct variables of the equation to its results, followed by the arrays of the blocks.
        tree: the blocks by (result, active operand), as a pytree of these arrays. Zero blocks are absent.
        probed: the blocks whose values come from applying the linear map to tangents, because some primitive in it has
            no complete rule.
    """

    program: Program
    tree: Any
    probed: tuple[Pair, ...]

    def blocks(self, arrays: Sequence[Any]) -> dict[Pair, JacobianBlock]:
        """The blocks that consist of these arrays."""
        return jax.tree_util.tree_unflatten(self.tree, arrays)

    @cached_property
    def structures(self) -> dict[Pair, AnyStructure]:
        return {edge: block.structure for edge, block in self.blocks([None] * self.tree.num_leaves).items()}


def tangent_shape(aval: Any) -> tuple[int, ...]:
    """The shape of the derivative of a value. Complex numbers are pairs."""
    return (*aval.shape, 2) if _jax.is_complex(aval) else tuple(aval.shape)


def equation_partials(eqn: JaxprEqn, variables: Sequence[Var], active: Sequence[Var], whole: bool = True) -> Partials:
    """The blocks of an equation's results with respect to its ``active`` operands.

    ``variables`` are its distinct operands. Other operands with known values must be literals in the equation. With
    ``whole``, blocks of small arrays are kept whole.
    """
    key = EquationKey.of(eqn, variables, active, whole)
    try:
        return _derived(key) if _jax.has_function(eqn) else _remembered(key)
    except Exception as error:
        error.add_note(f"graphax: while differentiating '{eqn.primitive.name}' at {_jax.source_line(eqn.source_info)}")
        raise


def partials_from_results(eqn: JaxprEqn, variables: Sequence[Var], active: Sequence[Var], whole: bool) -> Partials:
    """Like `equation_partials`, with all unknown values read off by applying the transposed map to cotangents."""
    key = EquationKey.of(eqn, variables, active, whole)
    return _partials(key, _linearised(key, backward=True))


class _Constant:
    """A literal operand, compared by value."""

    def __init__(self, value: np.ndarray, aval: Any):
        self.value = value
        self.key = (aval, value.tobytes())

    def __hash__(self):
        return hash(self.key)

    def __eq__(self, other):
        return isinstance(other, _Constant) and self.key == other.key


class EquationKey:
    """Everything that the blocks of an equation depend on.

    Equations with unhashable parameters equal only themselves.
    """

    def __init__(self, eqn: JaxprEqn, operands: tuple, avals: tuple, active: tuple[int, ...], whole: bool):
        self.eqn, self.operands, self.avals, self.active, self.whole = eqn, operands, avals, active, whole
        self.key: Any = (eqn.primitive, tuple(sorted(eqn.params.items())), operands, avals, active, whole)
        try:
            self.hash = hash(self.key)
        except TypeError:
            self.key, self.hash = self, id(self)

    @staticmethod
    def of(eqn: JaxprEqn, variables: Sequence[Var], active: Sequence[Var], whole: bool) -> "EquationKey":
        """The key of an equation with respect to its ``active`` operands. ``variables`` are its distinct operands."""
        operands = tuple(
            _Constant(np.asarray(atom.val), atom.aval) if isinstance(atom, Literal) else variables.index(atom)
            for atom in eqn.invars
        )
        avals = tuple(var.aval for var in variables)
        return EquationKey(eqn, operands, avals, tuple(variables.index(var) for var in active), whole)

    def __hash__(self):
        return self.hash

    def __eq__(self, other):
        return self is other or (isinstance(other, EquationKey) and self.key is not self and self.key == other.key)

    def local(self, known: Sequence[Any]) -> Callable:
        """The equation as a function of the real form of its active operands: (real form of results, all results)."""

        def function(*tangible: Any):
            values = list(known)
            for index, operand in zip(self.active, tangible, strict=True):
                values[index] = _from_real(operand, self.avals[index])
            results = _jax.evaluate(self.eqn, self.read(values))
            return [_to_real(results[n]) for n in self.differentiable], results

        return function

    def read(self, values: Sequence[Any]) -> list[Any]:
        """The operands of the equation, given the values of its variables."""
        return [entry.value if isinstance(entry, _Constant) else values[entry] for entry in self.operands]

    @property
    def differentiable(self) -> list[int]:
        return [n for n, var in enumerate(self.eqn.outvars) if _jax.is_differentiable(var.aval)]

    def inputs(self, known: Sequence[Any]) -> list[Any]:
        return [_to_real(known[index]) for index in self.active]


@remembered(_CACHE_SIZE)
def _remembered(key: EquationKey) -> Partials:
    return _derived(key)


def _derived(key: EquationKey) -> Partials:
    forward = _linearised(key, backward=False)
    # The transpose of a collective would sum the cotangents of all points, which is a different derivative.
    collective = _jax.is_collective(key.eqn)
    if _jax.only_transposable(forward.linear.equations):
        if collective:
            raise GraphaxError("a custom_vjp function between the inputs and a collective has no forward derivative")
        return _partials(key, _linearised(key, backward=True))
    partials = _partials(key, forward)
    if collective:
        return partials
    patterns = [pattern_of(partials.structures[edge]) for edge in partials.probed]
    if patterns and _BACKWARD_GAIN * probes([s.transposed for s in patterns]) <= probes(patterns):
        try:
            return _partials(key, _linearised(key, backward=True))
        except GraphaxError:
            raise
        except Exception:  # noqa: BLE001  JAX cannot transpose this map; keep the forward one.
            return partials
    return partials


@dataclass(frozen=True, eq=False)
class _Linearised:
    """The derivative of an equation: nonlinear equations first, then a linear map between tangents.

    ``backward`` maps go from the tangents of the results to those of the operands.
    """

    operands: tuple[Var, ...]
    constants: dict[Var, Any]
    known: tuple[JaxprEqn, ...]
    results: tuple[Atom, ...]
    linear: LinearMap
    backward: bool


def _linearised(key: EquationKey, backward: bool) -> _Linearised:
    def derivative(known: Sequence[Any], tangents: Sequence[Any]):
        local, inputs = key.local(known), key.inputs(known)
        if backward:
            _, transposed, results = jax.vjp(local, *inputs, has_aux=True)
            return results, transposed(list(tangents))
        _, pushed, results = jax.linearize(local, *inputs, has_aux=True)
        return results, pushed(*tangents)

    avals = [key.eqn.outvars[n].aval for n in key.differentiable] if backward else [key.avals[n] for n in key.active]
    tangents = [_jax.tangent_placeholder(aval, tangent_shape(aval), _real_dtype(aval)) for aval in avals]
    program = _jax.trace(derivative, key.avals, tangents)
    operands, sources = program.inputs[: len(key.avals)], program.inputs[len(key.avals) :]
    results, targets = program.outputs[: len(key.eqn.outvars)], program.outputs[len(key.eqn.outvars) :]
    known, linear = split(program, sources, targets)
    return _Linearised(operands, program.constants, known, results, linear, backward)


def _partials(key: EquationKey, derivative: _Linearised) -> Partials:
    """Stage the computation of all block values as one program of the operands of the equation."""
    trees: list[Any] = []
    probed: list[Pair] = []

    def run(*operands: Any):
        values = derivative.constants | dict(zip(derivative.operands, operands, strict=True))
        _jax.run(derivative.known, values)
        blocks = _pattern_blocks(key, derivative.backward) or derivative.linear.push(values, key.whole)
        patterns = {edge: pattern_of(block.structure) for edge, block in blocks.items() if block.is_pattern}
        found = derivative.linear.probe(values, patterns)
        moves = only_renames(key.eqn.primitive.name)
        # Primitives that only move entries have no coefficients besides zero and one.
        blocks |= {edge: _as_mask(block) if moves else block for edge, block in found.items()}
        if derivative.backward:
            blocks = {(o, i): block.transpose() for (i, o), block in blocks.items()}
            patterns = {(o, i): structure for (i, o), structure in patterns.items()}
        probed.extend((key.differentiable[o], i) for o, i in patterns)
        # x + 1 passes its tangent on unchanged, but it is arithmetic.
        named = {(key.differentiable[o], i): block if moves else arithmetic(block) for (o, i), block in blocks.items()}
        arrays, tree = jax.tree_util.tree_flatten(named)
        trees.append(tree)
        return [*_jax.read_all(values, derivative.results), *arrays]

    # Cached partials may be run by any backend.
    with nothing_told_apart(False):
        program = _jax.trace(run, *key.avals)
    lean = replace(program, equations=_jax.needed(program.equations, program.outputs))
    return Partials(lean, trees[-1], tuple(probed))


def _pattern_blocks(key: EquationKey, backward: bool) -> dict[Pair, JacobianBlock]:
    """The blocks of an equation whose pattern is known; empty if it has to be pushed through its derivative."""
    name, shapes = key.eqn.primitive.name, tuple(_jax.shape(atom) for atom in key.eqn.invars)
    out_shapes = tuple(_jax.shape(var) for var in key.eqn.outvars)
    simple = all(0 not in shape for shape in shapes + out_shapes)
    if not taken_as_one(name) or not simple or any(_jax.is_complex(var.aval) for var in key.eqn.outvars):
        return {}
    unknown = (None,) * len(shapes)
    blocks: dict[Pair, JacobianBlock] = {}
    for source, variable in enumerate(key.active):
        for position in [n for n, entry in enumerate(key.operands) if entry == variable]:
            moving = tuple(n == position for n in range(len(shapes)))
            dtype = _jax.dtype(key.eqn.outvars[0])
            call = LinearCall(name, key.eqn.params, position, unknown, moving, shapes, out_shapes, dtype)
            found = apply_rule(call)
            blocks |= {(o, source): block for o, n in enumerate(key.differentiable) if (block := found[n]) is not None}
    if not blocks or probes([pattern_of(block.structure) for block in blocks.values()]) <= _SHORT:
        return {}
    return {(i, o): block.transpose() for (o, i), block in blocks.items()} if backward else blocks


def arithmetic(block: JacobianBlock) -> JacobianBlock:
    """The same block, marked as arithmetic instead of mere renaming."""
    return block.mapped(lambda part: replace(part, structure=replace(part.structure, renaming=False)))


def _as_mask(block: JacobianBlock) -> JacobianBlock:
    def mask(part: Part) -> Part:
        return replace(part, values=lax.ne(part.values, lax.full_like(part.values, 0)), dtype=part.values.dtype)

    return block.mapped(mask)


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
