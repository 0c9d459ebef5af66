"""The only module that knows how JAX writes programs down.

It uses `jax.extend` and public API; `tests/graphax/test_jax.py` pins what is assumed of them, so that a change in
JAX fails there first.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.extend import core, source_info_util
from jax.extend.core import ClosedJaxpr, JaxprEqn, Literal, Var

# Calls whose body stands for itself: differentiating the body is differentiating the call.
_INLINED = frozenset({"jit", "pjit", "closed_call", "core_call", "remat", "remat2", "checkpoint"})

# The linear map of a custom_vjp function, which can be transposed and nothing else.
_TRANSPOSE_ONLY = "custom_lin"

Atom = Var | Literal


@dataclass(frozen=True, eq=False)
class Program:
    """Straight-line code: equations between variables, with nested calls inlined."""

    inputs: tuple[Var, ...]
    constants: dict[Var, Any]
    equations: tuple[JaxprEqn, ...]
    outputs: tuple[Atom, ...]

    def __call__(self, *args: Any) -> list[Any]:
        values = self.environment(args)
        run(self.equations, values)
        return read_all(values, self.outputs)

    def environment(self, args: Sequence[Any]) -> dict[Var, Any]:
        return self.constants | dict(zip(self.inputs, args, strict=True))


def trace(function: Callable, *args: Any) -> Program:
    """The program of a function from arrays to a flat list of arrays."""
    return inlined(jax.make_jaxpr(function)(*args))


def inlined(closed: ClosedJaxpr) -> Program:
    """The program of a jaxpr."""
    jaxpr = closed.jaxpr
    constants = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    equations: list[JaxprEqn] = []
    names: dict[Var, Atom] = {}
    _inline(jaxpr.eqns, names, equations, constants)
    outputs = tuple(_renamed(atom, names) for atom in jaxpr.outvars)
    return Program(tuple(jaxpr.invars), constants, tuple(equations), outputs)


def _inline(body: Iterable[JaxprEqn], names: dict[Var, Atom], equations: list[JaxprEqn], constants: dict) -> None:
    for eqn in body:
        invars = [_renamed(atom, names) for atom in eqn.invars]
        inner = _body(eqn)
        if inner is None:
            # A body that is called twice must not define its variables twice.
            outvars = [Var(var.aval) for var in eqn.outvars]
            names.update(zip(eqn.outvars, outvars, strict=True))
            equations.append(eqn.replace(invars=invars, outvars=outvars))
            continue
        constants.update(zip(inner.jaxpr.constvars, inner.consts, strict=True))
        scope = dict(zip(inner.jaxpr.invars, invars, strict=True))
        _inline(inner.jaxpr.eqns, scope, equations, constants)
        names.update((var, _renamed(atom, scope)) for var, atom in zip(eqn.outvars, inner.jaxpr.outvars, strict=True))


def _renamed(atom: Atom, names: dict[Var, Atom]) -> Atom:
    return atom if isinstance(atom, Literal) else names.get(atom, atom)


def _body(eqn: JaxprEqn) -> ClosedJaxpr | None:
    if eqn.primitive.name not in _INLINED:
        return None
    body = next(eqn.params[key] for key in ("jaxpr", "call_jaxpr") if key in eqn.params)
    return body if isinstance(body, ClosedJaxpr) else ClosedJaxpr(body, ())


def evaluate(eqn: JaxprEqn, operands: Sequence[Any]) -> list[Any]:
    """Run one equation."""
    params = eqn.primitive.get_bind_params(eqn.params)
    with source_info_util.user_context(eqn.source_info.traceback), eqn.ctx.manager:
        results = eqn.primitive.bind(*operands, **params)
    return list(results) if eqn.primitive.multiple_results else [results]


def run(equations: Iterable[JaxprEqn], values: dict[Var, Any]) -> None:
    """Run equations, reading from and adding to ``values``."""
    for eqn in equations:
        values.update(zip(eqn.outvars, evaluate(eqn, read_all(values, eqn.invars)), strict=True))


def read_all(values: dict[Var, Any], atoms: Iterable[Atom]) -> list[Any]:
    return [atom.val if isinstance(atom, Literal) else values[atom] for atom in atoms]


def needed(equations: Sequence[JaxprEqn], outputs: Iterable[Atom]) -> tuple[JaxprEqn, ...]:
    """The equations that ``outputs`` depend on, and those that have an effect."""
    wanted = {atom for atom in outputs if isinstance(atom, Var)}
    kept = []
    for eqn in reversed(equations):
        if eqn.effects or any(var in wanted for var in eqn.outvars):
            kept.append(eqn)
            wanted.update(atom for atom in eqn.invars if isinstance(atom, Var))
    return tuple(reversed(kept))


def only_transposable(equations: Iterable[JaxprEqn]) -> bool:
    """True if a linear map contains, at any depth, the derivative of a custom_vjp function."""
    return any(eqn.primitive.name == _TRANSPOSE_ONLY for eqn in _all_equations(equations))


def _all_equations(equations: Iterable[JaxprEqn]) -> Iterator[JaxprEqn]:
    for eqn in equations:
        yield eqn
        for inner in core.jaxprs_in_params(eqn.params):
            yield from _all_equations(inner.eqns)


def source_line(source_info: Any) -> str:
    """Where in the user's code an equation comes from, as ``file:line:column (function)``."""
    return source_info_util.summarize(source_info)


def placeholders(avals: Iterable[Any]) -> list[jax.ShapeDtypeStruct]:
    """Arguments to trace a function with."""
    return [jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type) for aval in avals]


def shape(atom: Atom) -> tuple[int, ...]:
    return tuple(atom.aval.shape)  # type: ignore[attr-defined]


def dtype(atom: Atom) -> Any:
    return atom.aval.dtype  # type: ignore[attr-defined]


def has_function(eqn: JaxprEqn) -> bool:
    """True if an equation carries a function, as custom derivatives do: made anew at each trace, and perhaps closing
    over tracers of an outer one, so nothing derived from it may be kept."""
    values = [value for value in eqn.params.values() if not isinstance(value, type)]
    return any(callable(value) or hasattr(value, "call_wrapped") for value in values)


def scan_counts(params: dict[str, Any]) -> tuple[int, int]:
    """How many operands of a scan are constants and how many are carried."""
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    constants, carry, _ = params["ft_in"].unpack()
    return len(constants), len(carry)


def is_differentiable(aval: Any) -> bool:
    return jax.dtypes.issubdtype(getattr(aval, "dtype", np.dtype(bool)), np.inexact)


def is_complex(aval: Any) -> bool:
    return jax.dtypes.issubdtype(getattr(aval, "dtype", np.dtype(bool)), np.complexfloating)
