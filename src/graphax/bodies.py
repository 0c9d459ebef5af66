"""The programs inside an equation, each as a program of all operands of the equation."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
from jax import lax

from . import _jax
from ._jax import JaxprEqn, Program, Var


def while_programs(eqn: JaxprEqn) -> tuple[int, Program, Program]:
    """The number of constants of a while loop, and its body and condition as programs of all operands."""
    first, second = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    body, condition = _jax.inlined(eqn.params["body_jaxpr"]), _jax.inlined(eqn.params["cond_jaxpr"])
    # The body and the condition each read their own constants.
    inputs = (*condition.inputs[:first], *body.inputs)
    carried = (*condition.inputs[:first], *body.inputs[:second], *condition.inputs[first:])
    body, condition = replace(body, inputs=inputs), replace(condition, inputs=carried)
    return first + second, *(_of_lanes(body, condition) if _jax.shape(condition.outputs[0]) else (body, condition))


def _of_lanes(body: Program, condition: Program) -> tuple[Program, Program]:
    """The body and the condition of a while loop mapped over points. Points that have ended stay unchanged."""

    def step(*operands: Any) -> list[Any]:
        (going,), new = condition(*operands), body(*operands)
        old = operands[len(operands) - len(new) :]
        wheres = [lax.broadcast_in_dim(going, value.shape, range(going.ndim)) for value in new]
        return [lax.select(*each) for each in zip(wheres, new, old, strict=True)]

    avals = [var.aval for var in body.inputs]
    return _jax.trace(step, *avals), _jax.trace(lambda *operands: [jnp.any(condition(*operands)[0])], *avals)


def branch_programs(eqn: JaxprEqn, variables: Sequence[Var]) -> list[Program]:
    """The branches of a `cond` as programs of its distinct operands. Literal operands become constants."""

    def program(branch: Program) -> Program:
        def function(*values: Any) -> list[Any]:
            return branch.run(_jax.read_all(dict(zip(variables, values, strict=True)), eqn.invars[1:]))

        return _jax.trace(function, *(var.aval for var in variables))

    return [program(_jax.inlined(closed)) for closed in eqn.params["branches"]]
