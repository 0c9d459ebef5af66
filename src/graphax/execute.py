"""Running a plan: evaluate the function and its local blocks, then contract."""

from typing import Any

import jax
import jax.numpy as jnp

from . import _jax
from .block import JacobianBlock, accumulate, multiply
from .graph import ComputationGraph, Derivation, Edge
from .plan import Plan, touched_edges

Values = dict[Edge, Any]


def evaluate_locally(derivation: Derivation) -> tuple[list[Any], Values]:
    """The values of the program's outputs, and the values of the local blocks by edge."""
    program = derivation.traced.program
    values = program.environment(derivation.traced.args)
    blocks: Values = {}
    for position, eqn in enumerate(program.equations):
        local = derivation.local.get(position)
        if local is None:
            results = _jax.evaluate(eqn, _jax.read_all(values, eqn.invars))
        else:
            computed = local.partials.program(*[values[var] for var in local.variables])
            results = computed[: len(eqn.outvars)]
            for key, value in zip(local.partials.valued, computed[len(eqn.outvars) :], strict=True):
                if local.edges.get(key) in derivation.graph.edges:
                    # A coefficient may be an argument itself, and so a Python number.
                    blocks[local.edges[key]] = value if isinstance(value, jax.Array) else jnp.asarray(value)
        values.update(zip(eqn.outvars, results, strict=True))
    return _jax.read_all(values, program.outputs), blocks


def eliminate(graph: ComputationGraph, plan: Plan, local: Values) -> dict[Edge, JacobianBlock]:
    """Contract the local blocks along the plan; what remains are the blocks of the Jacobian."""
    blocks = {edge: JacobianBlock(structure, local.get(edge)) for edge, structure in graph.edges.items()}
    for vertex, steps in plan.by_vertex():
        for step in steps:
            edge = step.target, step.source
            left, right = blocks[step.target, vertex], blocks[vertex, step.source]
            block = JacobianBlock(step.product.structure, multiply(step.product, left, right))
            if step.total is not None:
                block = JacobianBlock(step.total.structure, accumulate(step.total, blocks[edge], block))
            blocks[edge] = block
        # What has been eliminated is not needed any more; outside jit this frees memory.
        for edge in touched_edges(steps):
            del blocks[edge]
    return {edge: blocks[edge] for edge in plan.results}
