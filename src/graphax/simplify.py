"""Rewriting programs before the graph is built.

`fold_constants` never changes which equations there are, so vertex numbers stay those of the traced program.
`simplify` removes equations (dead code, common subexpressions) and so gives new numbers.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from . import _jax
from ._jax import Literal, Program, Var
from .rule import uniform_value

# Indices and masks up to this size are computed at trace time; so are numbers, whatever the shape they fill.
_SMALL = 4096


def fold_constants(program: Program) -> Program:
    """Write what is known at trace time into the equations as literals: numbers, and small integer arrays.

    Done with NumPy, on no device, so that rules can see constant factors and constant indices.
    """
    known = {var: value for var, value in program.constants.items() if _worth_knowing(value)}
    known = {var: np.asarray(value) for var, value in known.items()}
    equations = []
    for eqn in program.equations:
        invars = [Literal(known[a], a.aval) if isinstance(a, Var) and a in known else a for a in eqn.invars]
        eqn = eqn.replace(invars=invars)
        equations.append(eqn)
        fold = _FOLDS.get(eqn.primitive.name)
        if fold and all(isinstance(atom, Literal) for atom in invars) and eqn.outvars[0].aval.size <= _SMALL:
            aval = eqn.outvars[0].aval
            how = eqn.params | {"shape": aval.shape, "dtype": aval.dtype}
            value = fold(*[np.asarray(atom.val) for atom in invars if isinstance(atom, Literal)], **how)
            value = np.broadcast_to(value, aval.shape).astype(aval.dtype)
            if _worth_knowing(value):
                known[eqn.outvars[0]] = value
    return replace(program, equations=tuple(equations))


def _worth_knowing(value: Any) -> bool:
    if isinstance(value, jax.core.Tracer) or not hasattr(value, "dtype") or value.size > _SMALL:
        return False
    if jax.dtypes.issubdtype(value.dtype, jax.dtypes.extended):
        return False
    return value.dtype.kind in "iub" or uniform_value(value) is not None


def _elementwise(function: Callable) -> Callable:
    return lambda *operands, **_: function(*operands)


_FOLDS: dict[str, Callable] = {
    "add": _elementwise(np.add),
    "sub": _elementwise(np.subtract),
    "mul": _elementwise(np.multiply),
    "neg": _elementwise(np.negative),
    "max": _elementwise(np.maximum),
    "min": _elementwise(np.minimum),
    "lt": _elementwise(np.less),
    "le": _elementwise(np.less_equal),
    "gt": _elementwise(np.greater),
    "ge": _elementwise(np.greater_equal),
    "eq": _elementwise(np.equal),
    "ne": _elementwise(np.not_equal),
    "select_n": lambda which, *cases, shape, **_: np.choose(which, [np.broadcast_to(case, shape) for case in cases]),
    "clamp": lambda low, value, high, **_: np.clip(value, low, high),
    "convert_element_type": lambda value, dtype, **_: value.astype(dtype),
    "broadcast_in_dim": lambda value, shape, broadcast_dimensions, **_: np.broadcast_to(
        np.expand_dims(value, [d for d in range(len(shape)) if d not in broadcast_dimensions]), shape
    ),
    "reshape": lambda value, shape, **_: value.reshape(shape),
    "squeeze": lambda value, shape, **_: value.reshape(shape),
    "concatenate": lambda *parts, dimension, **_: np.concatenate(parts, dimension),
    "iota": lambda shape, dimension, **_: np.indices(shape, sparse=True)[dimension],
}


def simplify(program: Program) -> Program:
    """The program without dead code and with each subexpression computed once."""
    names: dict[Var, Any] = {}
    seen: dict[Any, list[Var]] = {}
    equations = []
    for eqn in _jax.needed(program.equations, program.outputs):
        invars = [names.get(atom, atom) if isinstance(atom, Var) else atom for atom in eqn.invars]
        key = _expression(eqn, invars)
        if key is not None and key in seen:
            names.update(zip(eqn.outvars, seen[key], strict=True))
            continue
        if key is not None:
            seen[key] = list(eqn.outvars)
        equations.append(eqn.replace(invars=invars))
    outputs = tuple(names.get(atom, atom) if isinstance(atom, Var) else atom for atom in program.outputs)
    return replace(program, equations=tuple(equations), outputs=outputs)


def _expression(eqn: _jax.JaxprEqn, invars: list[Any]) -> Any:
    """What an equation computes, hashable; None if it has effects or cannot be compared."""
    if eqn.effects:
        return None
    operands = [(atom.aval, np.asarray(atom.val).tobytes()) if isinstance(atom, Literal) else atom for atom in invars]
    key = (eqn.primitive, tuple(sorted(eqn.params.items())), tuple(operands))
    try:
        hash(key)
    except TypeError:
        return None
    return key
