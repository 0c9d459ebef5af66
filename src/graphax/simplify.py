"""Rewriting programs before the graph is built.

`fold_constants` never changes which equations there are, so vertex numbers stay those of the traced program.
`simplify` removes equations (dead code, common subexpressions) and so gives new numbers.
"""

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import jax
import numpy as np

from . import _jax
from ._jax import Literal, Program, Var
from .indexing import OUTSIDE, places_of_gather, places_of_slice

# Constant arrays up to this size are looked at before execution; of integers, which may be indices, up to the second.
SMALL, MANY = 4096, 1 << 24
# An array of so many numbers is sparse if one in so many differs from zero.
_FEWEST, _NONZERO_SHARE = 64, 4


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
        fold = _fold_of(eqn)
        if fold is not None:
            aval = eqn.outvars[0].aval
            how = eqn.params | {"shape": aval.shape, "dtype": aval.dtype}
            value = fold(*[np.asarray(atom.val) for atom in invars if isinstance(atom, Literal)], **how, eqn=eqn)
            value = np.broadcast_to(value, aval.shape).astype(aval.dtype)
            if _worth_knowing(value):
                known[eqn.outvars[0]] = value
    return replace(program, equations=tuple(equations))


def _fold_of(eqn: _jax.JaxprEqn) -> Callable | None:
    """How to compute an equation of literals with NumPy; None if that is not possible, or might round differently."""
    name = eqn.primitive.name
    if name not in _MOVES and name not in _INTEGER_ARITHMETIC:
        return None
    known = all(isinstance(atom, Literal) and prod(_jax.shape(atom)) for atom in eqn.invars)
    if not known or prod(_jax.shape(eqn.outvars[0])) > MANY:
        return None
    operands = [_jax.dtype(atom).kind in "iub" for atom in eqn.invars]
    if name == "convert_element_type":
        # From a number to an integer XLA saturates where NumPy wraps around.
        return _MOVES[name] if all(operands) or _jax.dtype(eqn.outvars[0]).kind not in "iu" else None
    return _MOVES.get(name) or (_INTEGER_ARITHMETIC[name] if all(operands) else None)


def _worth_knowing(value: Any) -> bool:
    if isinstance(value, jax.core.Tracer) or not hasattr(value, "dtype") or value.size > MANY:
        return False
    if jax.dtypes.issubdtype(value.dtype, jax.dtypes.extended):
        return False
    return value.dtype.kind in "iub" or uniform_value(value) is not None or is_sparse(value)


def uniform_value(array: Any) -> float | None:
    """The number that a constant array holds everywhere, if it is known now."""
    if isinstance(array, jax.core.Tracer) or np.size(array) == 0 or np.size(array) > SMALL:
        return None
    numbers = np.asarray(array)
    first = numbers.flat[0]
    if np.iscomplexobj(numbers):
        return None
    return float(first) if np.all(numbers == first) else None


def is_sparse(array: Any) -> bool:
    """Whether most of a constant array of numbers is zero, if that is known now."""
    if isinstance(array, jax.core.Tracer) or not _FEWEST <= np.size(array) <= MANY:
        return False
    numbers = np.asarray(array)
    return numbers.dtype.kind == "f" and bool(_NONZERO_SHARE * np.count_nonzero(numbers) <= numbers.size)


def _elementwise(function: Callable) -> Callable:
    return lambda *operands, **_: function(*operands)


def _reduced(function: Callable) -> Callable:
    return lambda value, axes, **_: function(value, axis=tuple(axes))


def _chosen(which: Any, cases: list[Any]) -> Any:
    return np.where(which, cases[1], cases[0]) if which.dtype == bool else np.choose(which, cases)


_INTEGER_ARITHMETIC: dict[str, Callable] = {
    "add": _elementwise(np.add),
    "sub": _elementwise(np.subtract),
    "mul": _elementwise(np.multiply),
    "neg": _elementwise(np.negative),
    "max": _elementwise(np.maximum),
    "min": _elementwise(np.minimum),
    "rem": _elementwise(np.fmod),
    "and": _elementwise(np.bitwise_and),
    "or": _elementwise(np.bitwise_or),
    "not": _elementwise(np.invert),
    "lt": _elementwise(np.less),
    "le": _elementwise(np.less_equal),
    "gt": _elementwise(np.greater),
    "ge": _elementwise(np.greater_equal),
    "eq": _elementwise(np.equal),
    "ne": _elementwise(np.not_equal),
    "abs": _elementwise(np.abs),
    "sign": _elementwise(np.sign),
    "xor": _elementwise(np.bitwise_xor),
    "integer_pow": lambda value, y, **_: value**y,
    "reduce_sum": _reduced(np.sum),
    "reduce_max": _reduced(np.max),
    "reduce_min": _reduced(np.min),
    "reduce_and": _reduced(np.bitwise_and.reduce),
    "reduce_or": _reduced(np.bitwise_or.reduce),
    "cumsum": lambda value, axis, reverse=False, **_: (
        np.flip(np.cumsum(np.flip(value, axis), axis), axis) if reverse else np.cumsum(value, axis)
    ),
    "clamp": lambda low, value, high, **_: np.clip(value, low, high),
    "iota": lambda shape, dimension, **_: np.indices(shape, sparse=True)[dimension],
}

_MOVES: dict[str, Callable] = {
    "convert_element_type": lambda value, dtype, **_: value.astype(dtype),
    "select_n": lambda which, *cases, shape, **_: _chosen(which, [np.broadcast_to(case, shape) for case in cases]),
    "broadcast_in_dim": lambda value, shape, broadcast_dimensions, **_: np.broadcast_to(
        np.expand_dims(value, [d for d in range(len(shape)) if d not in broadcast_dimensions]), shape
    ),
    "reshape": lambda value, shape, dimensions=None, **_: (
        np.transpose(value, dimensions).reshape(shape) if dimensions is not None else value.reshape(shape)
    ),
    "squeeze": lambda value, shape, **_: value.reshape(shape),
    "concatenate": lambda *parts, dimension, **_: np.concatenate(parts, dimension),
    "stack": lambda *parts, axis, **_: np.stack(parts, axis),
    "transpose": lambda value, permutation, **_: np.transpose(value, permutation),
    "rev": lambda value, dimensions, **_: np.flip(value, dimensions),
    "slice": lambda value, start_indices, limit_indices, strides=None, **_: value[
        tuple(map(slice, start_indices, limit_indices, strides or [1] * value.ndim))
    ],
    "dynamic_slice": lambda value, *starts, slice_sizes, **_: value.ravel()[
        places_of_slice(value.shape, starts, slice_sizes)
    ],
    "gather": lambda value, indices, eqn, **_: _gathered(value, indices, eqn),
}


def _gathered(value: np.ndarray, indices: np.ndarray, eqn: _jax.JaxprEqn) -> np.ndarray:
    places = places_of_gather(eqn, value.shape, indices)
    # Where nothing can be outside, there is no number for it.
    filler = value.dtype.type(eqn.params["fill_value"] or 0)
    return np.where(places == OUTSIDE, filler, value.ravel()[places] if value.size else filler)


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
