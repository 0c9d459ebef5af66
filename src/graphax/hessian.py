"""Hessians by symmetric elimination, or as the Jacobian of the Jacobian where a function does not allow it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.tree_util import tree_unflatten

from . import _jax
from ._jax import Var
from .block import JacobianBlock, add, compose, mirrored
from .bundles import Bundle, Passage
from .curvature import Curvature, equation_curvature
from .derive import Derivation
from .execute import Blocks, eliminate, evaluate_all, finished
from .graph import ComputationGraph
from .order import Order
from .part import chosen_halves
from .pipeline import Pipeline
from .plan import Edge, Plan
from .structure import identity
from .symmetric import LocalPair, adjoint_plan, order_of_pairs, pair, symmetric_plan
from .terms import AnyStructure, is_symmetric, renamed, transposed
from .trace import Request

# Flat outputs and auxiliary data, the Jacobian by flat output and input, and the Hessian by output and two inputs.
Found = tuple[list[Any], list[list[Any]], list[list[list[Any]]]]


@dataclass(frozen=True, eq=False)
class SymmetricHessian:
    """The derivatives of a function with one real result, as a program of its flat arguments that computes one half.

    Attributes:
        pipeline: the function, its arguments and its graph, with the requested order.
    """

    pipeline: Pipeline

    @property
    def graph(self) -> ComputationGraph:
        return self.derivation.graph

    @cached_property
    def derivation(self) -> Derivation:
        """The derivation without residuals, because second derivatives of a solution are not those of its residual."""
        return self.pipeline.without_residuals

    @property
    def is_possible(self) -> bool:
        """Whether all values are real, there is one result, and there are no loops or collectives."""
        traced = self.pipeline.traced
        # The adjoints of a collective sum over all points, which is a different derivative.
        if any(map(_jax.is_collective, _jax.all_equations(traced.program.equations))):
            return False
        outputs = traced.program.outputs[: traced.out_count]
        ends = [_jax.dtype(atom) for atom in (*outputs, *traced.program.inputs)]
        if [_jax.shape(atom) for atom in outputs] != [()] or not all(is_floating(dtype) for dtype in ends):
            return False
        plain = not any(isinstance(edge, (Bundle, Passage)) for edge in self.graph.edges.values())
        return plain and all(is_floating(vertex.dtype) for vertex in self.graph.vertices.values())

    @property
    def _whole(self) -> bool:
        return not self.pipeline.sparse

    @cached_property
    def adjoints(self) -> Plan:
        """The plan of the derivatives of the result with respect to all vertices."""
        (output,) = self.graph.outputs
        assert output is not None
        return adjoint_plan(self.graph, output, self._whole)

    @cached_property
    def _curved(self) -> list["_Curved"]:
        """The equations that have second derivatives."""
        found = []
        for position, local in self.derivation.local.items():
            results = {o: (self.graph.outputs[0], target) for (o, _), (target, _) in sorted(local.edges.items())}
            reached = {o: edge for o, edge in results.items() if edge in self.adjoints.outputs}
            sources = {i: source for (_, i), (_, source) in local.edges.items() if source in self.graph.vertices}
            if reached and sources:
                eqn, active = self.pipeline.traced.program.equations[position], sorted(sources)
                variables = [local.variables[i] for i in active]
                curvature = equation_curvature(eqn, local.variables, variables, tuple(reached), self._whole)
                numbers = tuple(sources[i] for i in active)
                found.append(_Curved(position, curvature, local.variables, numbers, tuple(reached.values())))
        return found

    @cached_property
    def second(self) -> tuple[tuple[LocalPair, AnyStructure], ...]:
        """The structures of all local second derivatives."""
        return tuple(item for curved in self._curved for item in curved.structures.items())

    @cached_property
    def order(self) -> Order:
        if self.pipeline.is_automatic:
            return Order.of(order_of_pairs(self.graph, self.second), self.graph)
        asked = self.pipeline.order
        return replace(asked, vertices=tuple(v for v in asked.vertices if v in self.graph.intermediates))

    @cached_property
    def plan(self) -> Plan:
        return symmetric_plan(self.graph, self.second, self.order.vertices, self._whole)

    def __call__(self, *args: Any) -> Found:
        values, local = evaluate_all(self.derivation, args, "xla")
        gradient: Blocks = {}
        hessian: Blocks = {}
        if self.graph.outputs[0] is not None:
            gradient = eliminate(self.adjoints, local)
            second: dict[Any, Any] = {
                key: block for curved in self._curved for key, block in curved.blocks(values, gradient).items()
            }
            hessian = eliminate(self.plan, local | second)
        atoms = self.pipeline.traced.program.outputs
        outputs = [_jax.typed_like(x, a) for x, a in zip(_jax.read_all(values, atoms), atoms, strict=True)]
        return outputs, [self._gradient(gradient, args)], [self._rows(hessian, args)]

    def _gradient(self, found: Blocks, args: Sequence[Any]) -> list[Any]:
        atom, edges = self.pipeline.traced.program.outputs[0], [(self.graph.outputs[0], n) for n in self.graph.inputs]
        known: dict[Any, Any] = found
        blocks = [finished(known.get(edge), atom.aval, argument) for edge, argument in zip(edges, args, strict=True)]
        return [_jax.typed_like(block.todense(), atom) for block in blocks]

    def _rows(self, found: Blocks, args: Sequence[Any]) -> list[list[Any]]:
        atom = self.pipeline.traced.program.outputs[0]
        ends = list(zip(self.graph.inputs, args, strict=True))

        def entry(row: int, column: int) -> Any:
            (first, one), (second, other) = ends[row], ends[column]
            block = _plain(found.get(pair(first, second)))
            block = block.transpose() if block is not None and first > second else block
            aval = jax.ShapeDtypeStruct(np.shape(one), _jax.dtype(atom))
            block = finished(block, aval, other)
            symmetric = first != second or is_symmetric(block.structure)
            if self.pipeline.sparse:
                return block if symmetric else _averaged(block)
            dense = block.todense()
            return _jax.typed_like(dense if symmetric else mirrored_array(dense, np.size(one)), atom)

        return [[entry(row, column) for column in range(len(ends))] for row in range(len(ends))]


@dataclass(frozen=True, eq=False)
class _Curved:
    """An equation with second derivatives: the vertices of its active operands and the adjoints of its results."""

    position: int
    curvature: Curvature
    variables: tuple[Var, ...]
    numbers: tuple[int, ...]
    adjoints: tuple[Edge, ...]

    @property
    def _keys(self) -> dict[tuple[int, int], tuple[LocalPair, bool]]:
        """Per pair of active operands, the name of their block in the plan, and whether it is transposed there."""
        pairs = {(o, i): (self.numbers[o], self.numbers[i]) for o, i in self.curvature.edges}
        return {key: ((pair(*both), self.position), both[0] > both[1]) for key, both in pairs.items()}

    @property
    def structures(self) -> dict[LocalPair, AnyStructure]:
        found = {}
        for key, (name, turned) in self._keys.items():
            structure = renamed(self.curvature.structures[key], ("second", self.position))
            found[name] = transposed(structure) if turned else structure
        return found

    def blocks(self, values: dict[Var, Any], gradient: Blocks) -> dict[LocalPair, JacobianBlock]:
        adjoints = []
        for edge, var in zip(self.adjoints, self.curvature.results, strict=True):
            block = gradient[edge]
            assert isinstance(block, JacobianBlock)
            adjoints.append(_jax.varying_like(lax.convert_element_type(block.todense(), _jax.dtype(var)), var))
        made = self.curvature.blocks([values[var] for var in self.variables], adjoints)
        found = {}
        for key, (name, turned) in self._keys.items():
            block = made[key].renamed(("second", self.position))
            found[name] = block.transpose() if turned else block
        return found


def _plain(block: Any) -> JacobianBlock | None:
    assert block is None or isinstance(block, JacobianBlock)
    return block


def is_floating(dtype: Any) -> bool:
    return jax.dtypes.issubdtype(dtype, np.floating)


def _averaged(block: JacobianBlock) -> JacobianBlock:
    """The mean of a block and its transpose."""
    half = JacobianBlock.of(identity(block.parts[0].structure.out_shape, 0.5))
    found = compose(half, add(block, block.transpose(), False), False)
    assert found is not None
    return found


@dataclass(frozen=True, eq=False)
class NestedHessian:
    """The derivatives of any function, as a program of its flat arguments: the mirrored Jacobian of its Jacobian.

    Attributes:
        pipeline: the function, its arguments and its Jacobian. Its order is that of the inner elimination.
    """

    pipeline: Pipeline

    def __call__(self, *args: Any) -> Found:
        inner = replace(self.pipeline, sparse=False, with_value=True)
        program, request = replace(inner.program, backend="xla"), inner.request

        def jacobian(*args: Any) -> tuple[Any, Any]:
            outputs, blocks = program(*args)
            return blocks, (outputs, blocks)

        how = Request(tuple(range(len(args))), True, request.holomorphic, request.allow_int)
        outer = Pipeline(jacobian, args, {}, how, sparse=self.pipeline.sparse)
        aux, rows = replace(outer.program, backend="xla")(*args)
        outputs, blocks = tree_unflatten(outer.traced.aux_tree, aux)
        size = len(args)
        matrices = [rows[start : start + size] for start in range(0, len(rows), size)]
        return outputs, blocks, [self._mirrored(matrix, args) for matrix in matrices]

    def _mirrored(self, matrix: list[list[Any]], args: Sequence[Any]) -> list[list[Any]]:
        """The blocks of one output. Blocks below the diagonal are the transposes of those above."""
        ranks = [np.ndim(argument) for argument in args]
        sizes = [prod(np.shape(argument)) for argument in args]

        def entry(row: int, column: int) -> Any:
            above, below = matrix[min(row, column)][max(row, column)], matrix[row][column]
            if above.dtype != below.dtype or not jax.dtypes.issubdtype(above.dtype, np.inexact):
                return below
            if isinstance(above, JacobianBlock):
                return _mirrored_block(above, row, column) if len(above.shape) == ranks[row] + ranks[column] else below
            if row == column:
                return mirrored_array(above, sizes[row])
            return above if row < column else turned_array(above, ranks[column], ranks[row])

        return [[entry(row, column) for column in range(len(args))] for row in range(len(args))]


def _mirrored_block(block: JacobianBlock, row: int, column: int) -> JacobianBlock:
    if row == column:
        return mirrored(block) if is_symmetric(block.structure) else _averaged(block)
    return block if row < column else block.transpose()


def mirrored_array(x: jax.Array, size: int) -> jax.Array:
    """Square matrices in the last axes, with their upper triangle mirrored below the diagonal."""
    if size == 0:
        return x
    return jnp.reshape(chosen_halves(jnp.reshape(x, (-1, size, size)), (0, 2, 1)), x.shape)


def turned_array(x: jax.Array, rank: int, other: int) -> jax.Array:
    """``x`` with two groups of trailing axes exchanged: the last ``other`` axes and the ``rank`` axes before them."""
    first = x.ndim - rank - other
    middle, last = range(first, first + rank), range(first + rank, x.ndim)
    return jnp.transpose(x, (*range(first), *last, *middle))


def typed(found: Found, args: Sequence[Any]) -> Found:
    """Derivatives with the dtypes and weak types of the arguments, as in JAX: a gradient is a cotangent."""
    outputs, gradients, matrices = found
    slopes = [[_typed(x, argument) for x, argument in zip(row, args, strict=True)] for row in gradients]
    curved = [
        [[_typed(x, argument) for x in row] for row, argument in zip(rows, args, strict=True)] for rows in matrices
    ]
    return outputs, slopes, curved


def _typed(x: Any, argument: Any) -> Any:
    aval = jax.typeof(argument)
    if not (is_floating(aval.dtype) and is_floating(x.dtype)):
        return x
    if not isinstance(x, JacobianBlock):
        return _jax.typed_as(lax.convert_element_type(x, aval.dtype), aval)
    return x if x.dtype == aval.dtype else x.mapped(lambda part: part, aval.dtype)


def hessian_program(pipeline: Pipeline) -> SymmetricHessian | NestedHessian:
    """The program that computes the derivatives of a function up to second order, from flat arguments."""
    symmetric = SymmetricHessian(pipeline)
    return symmetric if symmetric.is_possible else NestedHessian(pipeline)
