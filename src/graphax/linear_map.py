"""Linear programs: the part of a derivative that tangents pass through.

A `LinearMap` gives its Jacobian blocks in two ways. `push` sends identity blocks through the equations, with one rule
per primitive. `probe` applies the map to tangents and reads off the values, with as few tangents as a known pattern
allows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import _jax
from ._jax import Atom, JaxprEqn, Program, Var
from .axes import labels_of
from .block import JacobianBlock, add, as_pattern, compose
from .part import read_values, seeds
from .rule import LinearCall, apply_rule
from .structure import Structure, identity

Pair = tuple[int, int]


@dataclass(frozen=True, eq=False)
class LinearMap:
    """Equations that are linear in ``sources``. All other values that they read are known."""

    equations: tuple[JaxprEqn, ...]
    sources: tuple[Var, ...]
    targets: tuple[Atom, ...]

    def __call__(self, known: dict[Var, Any], tangents: Sequence[Any]) -> list[Any]:
        values = known | dict(zip(self.sources, tangents, strict=True))
        _jax.run(self.equations, values)
        return _jax.read_all(values, self.targets)

    def push(self, known: dict[Var, Any], whole: bool = True) -> dict[Pair, JacobianBlock]:
        """The block of each (target, source). Zero blocks are absent, and some blocks may be patterns only.

        With ``whole``, terms of small arrays become one structure.
        """
        reached: dict[Atom, dict[int, JacobianBlock]] = {
            var: {n: JacobianBlock.of(identity(_jax.shape(var), renaming=True))} for n, var in enumerate(self.sources)
        }
        for number, eqn in enumerate(self.equations):
            # A loop counter next to a tangent is not known here. It is no tangent either, so nothing reaches it.
            operands = [
                None if isinstance(atom, Var) and atom in reached else _jax.read_all(known, [atom])[0]
                for atom in eqn.invars
            ]
            moving = tuple(isinstance(atom, Var) and bool(reached.get(atom)) for atom in eqn.invars)
            for var in eqn.outvars:
                reached[var] = {}
            for position in (n for n, moves in enumerate(moving) if moves):
                local = _local_blocks(eqn, position, operands, moving, number)
                for var, block in zip(eqn.outvars, local, strict=True):
                    if block is not None:
                        _extend(reached[var], block, reached[eqn.invars[position]], whole)
        return {
            (o, i): block
            for o, target in enumerate(self.targets)
            if isinstance(target, Var)
            for i, block in reached.get(target, {}).items()
        }

    def probe(self, known: dict[Var, Any], patterns: dict[Pair, Structure]) -> dict[Pair, JacobianBlock]:
        """The blocks with the given patterns. Their values are read off the map applied to a batch of tangents."""
        if not patterns:
            return {}
        # Blocks of one source that need the same tangents share them.
        batches: dict[tuple, tuple[int, Any]] = {}
        rows_of: dict[Pair, tuple[tuple, tuple[int, ...]]] = {}
        for (target, source), structure in patterns.items():
            tangents, own = seeds(structure)
            key = (source, structure.transposed.out, tuple(labels_of(structure.inp).index(n) for n in own))
            batches.setdefault(key, (source, tangents))
            rows_of[target, source] = key, own
        results = self._applied(known, list(batches.values()))
        start, rows = 0, {}
        for key, (_, tangents) in batches.items():
            rows[key] = slice(start, start + tangents.shape[0])
            start = rows[key].stop
        blocks = {}
        for (target, source), structure in patterns.items():
            key, own = rows_of[target, source]
            result = lax.slice_in_dim(results[target], rows[key].start, rows[key].stop)
            blocks[target, source] = JacobianBlock.of(structure, read_values(structure, result, own))
        return blocks

    def _applied(self, known: dict[Var, Any], batches: Sequence[tuple[int, Any]]) -> list[Any]:
        """The targets for all tangents of all batches. Each batch varies one source, with the others at zero."""
        inputs = []
        for number, var in enumerate(self.sources):
            pieces = [
                tangents if source == number else np.zeros((tangents.shape[0], *_jax.shape(var)), np.float32)
                for source, tangents in batches
            ]
            tangents = jnp.concatenate([lax.convert_element_type(p, _jax.dtype(var)) for p in pieces])
            inputs.append(_jax.varying_like(tangents, var))
        if inputs[0].shape[0] == 1:
            return [result[None] for result in self(known, [tangent[0] for tangent in inputs])]
        return jax.vmap(lambda tangents: self(known, tangents))(inputs)


def split(program: Program, sources: Sequence[Var], targets: Sequence[Atom]) -> tuple[tuple[JaxprEqn, ...], LinearMap]:
    """The equations that do not depend on ``sources``, and the linear map made of those that do."""
    known, linear = _jax.split_by(program, sources)
    return tuple(known), LinearMap(tuple(linear), tuple(sources), tuple(targets))


def probes(patterns: Sequence[Structure]) -> int:
    """The number of tangents that the largest of these patterns needs."""
    return max(prod(s.sizes[n] for n in set(labels_of(s.inp)) - set(labels_of(s.out))) for s in patterns)


def _local_blocks(
    eqn: JaxprEqn, position: int, operands: Sequence[Any], moving: tuple[bool, ...], number: int
) -> list[JacobianBlock | None]:
    """The blocks of an equation's results with respect to one operand that it is linear in."""
    operand = eqn.invars[position]
    call = LinearCall(
        eqn.primitive.name,
        eqn.params,
        position,
        tuple(operands),
        moving,
        tuple(_jax.shape(atom) for atom in eqn.invars),
        tuple(_jax.shape(var) for var in eqn.outvars),
        _jax.dtype(eqn.outvars[0]),
        (number, position),
    )
    if not prod(call.shape):
        return [None] * len(eqn.outvars)
    blocks = apply_rule(call)
    # A complex number is a pair of real ones, and rules only tell its position.
    if any(_jax.is_complex(atom.aval) for atom in (operand, *eqn.outvars)):
        blocks = [block and as_pattern(block) for block in blocks]
    carries = [prod(_jax.shape(var)) > 0 and _jax.is_differentiable(var.aval) for var in eqn.outvars]
    return [block if carried else None for block, carried in zip(blocks, carries, strict=True)]


def _extend(
    into: dict[int, JacobianBlock], block: JacobianBlock, before: dict[int, JacobianBlock], whole: bool
) -> None:
    """Add the products of ``block`` with each of the blocks ``before`` to those already in ``into``."""
    for source, earlier in before.items():
        product = compose(block, earlier, whole)
        if product is not None:
            into[source] = add(into[source], product, whole) if source in into else product
