"""Runs a plan: evaluates the function and its local blocks, then contracts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import _jax
from ._jax import JaxprEqn, Var
from .block import JacobianBlock, settled
from .branches import Branches
from .bundles import Passing, Pick, apart, picked
from .choosing import choose
from .derive import Derivation, LocalBlocks
from .edge_block import EdgeBlock, blocks_of, bundled, edge_block, perform
from .loop import Way
from .passing import LoopBlock, pull, push, run_forward
from .plan import Drop, Edge, Instruction, Plan
from .structure import zero

Blocks = dict[Edge, EdgeBlock]


def evaluate_locally(
    derivation: Derivation, args: Sequence[Any], backend: str = "auto", plan: Plan | None = None
) -> tuple[list[Any], Blocks]:
    """The outputs of the program, and the local blocks by edge. Steps of loops run on the given backend.

    Loops that the plan passes backward run once, for their values and for the data that the backward pass needs.
    """
    values, blocks = evaluate_all(derivation, args, backend, plan)
    return _jax.read_all(values, derivation.traced.program.outputs), blocks


def evaluate_all(
    derivation: Derivation, args: Sequence[Any], backend: str = "auto", plan: Plan | None = None
) -> tuple[dict[Var, Any], Blocks]:
    """Like `evaluate_locally`, but with the values of all variables."""
    backward = {} if plan is None else {edge: way for edge, way in plan.loops() if _stores_steps(way)}
    program = derivation.traced.program
    values = program.environment(args)
    blocks: Blocks = {}
    for position, eqn in enumerate(program.equations):
        local, loop = derivation.local.get(position), derivation.loops.get(position)
        ran = None
        if loop is not None:
            blocks[loop.edge] = block = LoopBlock(loop.loop, _jax.read_all(values, eqn.invars), backend)
            if loop.edge in backward:
                blocks[loop.edge] = ran = run_forward(block, backward[loop.edge], evaluate_locally)
        if ran is not None:
            results = ran.results
        elif local is None:
            results = _jax.evaluate(eqn, _jax.read_all(values, eqn.invars))
        else:
            results, found = _with_blocks(local, eqn, values, backend)
            for key, block in found.items():
                if local.edges.get(key) in derivation.graph.edges:
                    blocks[local.edges[key]] = block.renamed(position)
        values.update(zip(eqn.outvars, results, strict=True))
    return values, blocks


def _stores_steps(passing: Passing) -> bool:
    return not passing.forward and isinstance(passing.how, Way)


def _with_blocks(local: LocalBlocks, eqn: JaxprEqn, values: dict[Var, Any], backend: str) -> tuple[list[Any], Any]:
    """The results of an equation, and its blocks by (result, active operand)."""
    operands = [values[var] for var in local.variables]
    if isinstance(local.partials, Branches):
        (index,) = _jax.read_all(values, eqn.invars[:1])
        return choose(local.partials, index, operands, evaluate_locally, eliminate, backend)
    # Partials cached from another function are attributed to the line of this equation.
    computed = local.partials.program.run(operands, eqn.source_info)
    # A coefficient may itself be an argument, and so a Python number.
    arrays = [x if isinstance(x, jax.Array) else jnp.asarray(x) for x in computed[len(eqn.outvars) :]]
    return computed[: len(eqn.outvars)], local.partials.blocks(arrays)


def eliminate(plan: Plan, local: Blocks) -> Blocks:
    """Run a plan on the local blocks and return the blocks of the Jacobian."""
    known = zip(plan.operands, plan.structures, strict=False)
    values = {n: local[edge] if edge in local else edge_block(structure) for n, (edge, structure) in enumerate(known)}
    done: dict[Any, Any] = {}
    for step in plan.code:
        if isinstance(step, Drop):
            # Eliminated blocks are not needed any more; outside of jit, deleting them frees memory.
            for value in step.values:
                del values[value]
        else:
            take = values.pop if step.operation.is_sum else values.__getitem__
            values[step.result] = (
                _performed(step, values, done)
                if step.together
                else perform(step.operation, take(step.left), take(step.right))
            )
    return {edge: values[value] for edge, value in plan.outputs.items()}


def _performed(step: Instruction, values: Mapping[int, EdgeBlock], done: dict[Any, Any]) -> EdgeBlock:
    """One of several products with a loop. The first of them computes all."""
    operation = step.operation
    assert isinstance(operation, Pick)
    passing = operation.passing
    loop = step.left if passing.forward else step.right
    if (loop, passing.forward) not in done:
        edges = [blocks_of(values[number]) for number in step.together]
        joined = {apart(key, n, passing.forward): b for n, edge in enumerate(edges) for key, b in edge.items()}
        way = push if passing.forward else pull
        done[loop, passing.forward] = way(passing, values[loop], joined, evaluate_locally, eliminate)
    number = step.together.index(step.right if passing.forward else step.left)
    return bundled(picked(done[loop, passing.forward], number, passing.forward))


@dataclass(frozen=True, eq=False)
class Accumulation:
    """A derivative program: maps flat arguments to the outputs and to the Jacobian by flat output and flat input.

    The Jacobian consists of blocks if ``sparse``, otherwise of dense arrays. Outputs before number ``first`` are left
    out, because a kernel would compute and store them even if nothing reads them. Steps of loops run on ``backend``.
    """

    derivation: Derivation
    plan: Plan
    sparse: bool = False
    first: int = 0
    backend: str = "auto"

    def __call__(self, *args: Any) -> tuple[list[Any], list[list[Any]]]:
        outputs, local = evaluate_locally(self.derivation, args, self.backend, self.plan)
        blocks = _result_blocks(self.derivation, eliminate(self.plan, local))
        atoms = self.derivation.traced.program.outputs
        # As in `jax.jacfwd`, a derivative has a weak type if its output has.
        result = [
            [block if self.sparse else _jax.typed_like(block.todense(), atom) for block in row]
            for atom, row in zip(atoms, blocks, strict=False)
        ]
        return [_jax.typed_like(x, atom) for x, atom in zip(outputs, atoms, strict=True)][self.first :], result


def _result_blocks(derivation: Derivation, found: Mapping[Edge, EdgeBlock]) -> list[list[JacobianBlock]]:
    """The blocks of the Jacobian by flat output and flat input, with the dtype and the complex form of the output."""
    rows = []
    graph, traced = derivation.graph, derivation.traced
    for atom, vertex in zip(traced.program.outputs[: traced.out_count], graph.outputs, strict=True):
        row = []
        for number, argument in zip(graph.inputs, traced.args, strict=True):
            block = None if vertex is None else found.get((vertex, number))
            assert block is None or isinstance(block, JacobianBlock)
            row.append(finished(block, atom.aval, argument, traced.holomorphic))
        rows.append(row)
    return rows


def finished(block: JacobianBlock | None, output: Any, argument: Any, holomorphic: bool = False) -> JacobianBlock:
    """A block of the Jacobian with the dtype and the complex form of the output; a zero block for None."""
    dtype, inp_shape = output.dtype, np.shape(argument)
    if block is None:
        # As in `jax.jacrev`, the derivative with respect to an integer is a zero of the integer's dtype.
        given = jnp.result_type(argument)
        kind = dtype if jax.dtypes.issubdtype(given, np.inexact) else given
        return JacobianBlock.of(zero(output.shape, inp_shape), None, kind)
    block = settled(block)
    if not jax.dtypes.issubdtype(dtype, np.complexfloating):
        return block.mapped(lambda part: part, dtype)
    pairs = jnp.moveaxis(block.todense(), len(output.shape), 0)
    if holomorphic:
        # The derivative along the real axis is the derivative in every direction.
        pairs = pairs[..., 0]
    dense = lax.complex(*(pairs[n].astype(jnp.finfo(dtype).dtype) for n in (0, 1)))
    labels = [("axis", n) for n in range(dense.ndim)]
    rank = len(output.shape)
    return JacobianBlock.labelled(labels[:rank], labels[rank:], output.shape, inp_shape, dense, labels)
