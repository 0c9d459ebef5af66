"""The local second derivatives of one equation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax

from . import _jax
from ._jax import JaxprEqn, Var
from .block import JacobianBlock
from .derive import Derivation, derive_body
from .execute import eliminate, evaluate_locally
from .linear_map import Pair
from .partials import EquationKey
from .plan import Edge, Plan
from .rule import remembered
from .structure import Structure
from .terms import AnyStructure, Terms

_CACHE_SIZE = 4096


@dataclass(frozen=True, eq=False)
class Curvature:
    """The second derivatives of an equation, weighted with the adjoints of its results.

    They are the Jacobian of the gradient of the equation with respect to its active operands. The gradient is a program
    of few equations, which is eliminated like any other.

    Attributes:
        derivation: the derivation of the gradient. Its inputs are the operands of the equation, then the adjoints of
            its results.
        plan: the plan of the Jacobian of the gradient.
        edges: per pair of active operands, the first not after the second, the edge of their block in the plan.
        results: the variables whose adjoints are the inputs.
    """

    derivation: Derivation
    plan: Plan
    edges: dict[Pair, Edge]
    results: tuple[Var, ...]

    @property
    def structures(self) -> dict[Pair, AnyStructure]:
        found = self.plan.results
        return {key: known for key, edge in self.edges.items() if isinstance(known := found[edge], (Structure, Terms))}

    def blocks(self, operands: Sequence[Any], adjoints: Sequence[Any]) -> dict[Pair, JacobianBlock]:
        _, local = evaluate_locally(self.derivation, [*operands, *adjoints], "xla", self.plan)
        found = eliminate(self.plan, local)
        return {key: block for key, edge in self.edges.items() if isinstance(block := found[edge], JacobianBlock)}


def equation_curvature(
    eqn: JaxprEqn, variables: Sequence[Var], active: Sequence[Var], reached: tuple[int, ...], whole: bool
) -> Curvature:
    """The second derivatives with respect to ``active`` operands, for the results that adjoints reach."""
    key = EquationKey.of(eqn, variables, active, whole)
    return _derived(key, reached) if _jax.has_function(eqn) else _remembered(key, reached)


@remembered(_CACHE_SIZE)
def _remembered(key: EquationKey, reached: tuple[int, ...]) -> Curvature:
    return _derived(key, reached)


def _derived(key: EquationKey, reached: tuple[int, ...]) -> Curvature:
    results = tuple(key.eqn.outvars[n] for n in reached)
    avals = [_jax.tangent_placeholder(var.aval, _jax.shape(var), _jax.dtype(var)) for var in results]

    def gradient(known: Sequence[Any], adjoints: Sequence[Any]) -> Any:
        def local(*active: Any) -> list[Any]:
            found = key.local(known)(*active)[1]
            return [found[n] for n in reached]

        return jax.vjp(local, *key.inputs(known))[1](list(adjoints))

    program = _jax.trace(gradient, key.avals, avals)
    derivation = derive_body(program, key.active, [True] * len(program.outputs), True, key.whole)
    graph = derivation.graph
    plan = graph.plan("auto", whole=key.whole)
    edges = {
        (o, i): (output, graph.inputs[index])
        for o, output in enumerate(graph.outputs)
        for i, index in enumerate(key.active)
        if output is not None and o <= i and (output, graph.inputs[index]) in plan.outputs
    }
    return Curvature(derivation, plan, edges, results)
