"""Operations of JAX, computed by NumPy, because values known at trace time need neither a device nor a compiler."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from . import _jax
from ._jax import Program
from .indexing import OUTSIDE, places_of_gather, places_of_scatter, places_of_slice

# Arrays of more elements than this are left to XLA.
_LARGEST = 1 << 18


def known_results(program: Program, operands: Sequence[Any]) -> list[np.ndarray] | None:
    """The results of a program at known operands, exact up to rounding; None if XLA has to compute some operation."""
    values = {var: np.asarray(value) for var, value in program.environment(operands).items()}
    for eqn in program.equations:
        fold = _fold_of(eqn)
        if fold is None:
            return None
        with np.errstate(all="ignore"):
            results = computed(fold, eqn, [np.asarray(x) for x in _jax.read_all(values, eqn.invars)])
        for var, value in zip(eqn.outvars, results, strict=True):
            values[var] = np.broadcast_to(value, _jax.shape(var)).astype(_jax.dtype(var))
    return [np.asarray(x) for x in _jax.read_all(values, program.outputs)]


def _fold_of(eqn: _jax.JaxprEqn) -> Callable | None:
    """A function that computes an equation with NumPy, up to rounding; None if there is none."""
    name, kinds = eqn.primitive.name, {_jax.dtype(atom).kind for atom in (*eqn.invars, *eqn.outvars)}
    large = any(prod(_jax.shape(var)) > _LARGEST for var in eqn.outvars)
    if eqn.effects or large or is_saturating(eqn) or not kinds <= set("iubf"):
        return None
    known = INTEGER_ARITHMETIC if "f" not in kinds else REAL_ARITHMETIC
    return MOVES.get(name) or _OF_MATRICES.get(name) or known.get(name)


def computed(fold: Callable, eqn: _jax.JaxprEqn, operands: Sequence[np.ndarray]) -> list[Any]:
    """The results of an equation."""
    result = eqn.outvars[0]
    found = fold(*operands, **eqn.params | {"shape": _jax.shape(result), "dtype": _jax.dtype(result)}, eqn=eqn)
    return found if isinstance(found, list) else [found]


def is_saturating(eqn: _jax.JaxprEqn) -> bool:
    """Whether an equation converts numbers to integers that may be out of range, where NumPy would wrap around."""
    if eqn.primitive.name != "convert_element_type" or _jax.dtype(eqn.outvars[0]).kind not in "iu":
        return False
    return _jax.dtype(eqn.invars[0]).kind not in "iub"


def _elementwise(function: Callable) -> Callable:
    return lambda *operands, **_: function(*operands)


def _reduced(function: Callable) -> Callable:
    return lambda value, axes, **_: function(value, axis=tuple(axes))


def _chosen(which: Any, cases: list[Any]) -> Any:
    return np.where(which, cases[1], cases[0]) if which.dtype == bool else np.choose(which, cases)


def _quotient(value: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Quotients rounded toward zero, as in XLA. All bits are set where the divisor is zero."""
    with np.errstate(all="ignore"):
        floor = value // by
        up = (floor < 0) & (floor * by != value) if value.dtype.kind == "i" else False
        return np.where(by == 0, ~np.zeros_like(value), floor + np.asarray(up, value.dtype))


def _remainder(value: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Remainders of these quotients. Where the divisor is zero, the remainder is the value."""
    with np.errstate(all="ignore"):
        return np.where(by == 0, value, np.fmod(value, by))


INTEGER_ARITHMETIC: dict[str, Callable] = {
    "add": _elementwise(np.add),
    "sub": _elementwise(np.subtract),
    "mul": _elementwise(np.multiply),
    "neg": _elementwise(np.negative),
    "max": _elementwise(np.maximum),
    "min": _elementwise(np.minimum),
    "div": lambda value, by, **_: _quotient(value, by),
    "rem": lambda value, by, **_: _remainder(value, by),
    "and": _elementwise(np.bitwise_and),
    "or": _elementwise(np.bitwise_or),
    "not": _elementwise(np.invert),
    "lt": _elementwise(np.less),
    "le": _elementwise(np.less_equal),
    "gt": _elementwise(np.greater),
    "ge": _elementwise(np.greater_equal),
    "lt_to": _elementwise(np.less),
    "le_to": _elementwise(np.less_equal),
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

MOVES: dict[str, Callable] = {
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
    # If no index can be outside, there is no fill value.
    filler = value.dtype.type(eqn.params["fill_value"] or 0)
    return np.where(places == OUTSIDE, filler, value.ravel()[places] if value.size else filler)


REAL_ARITHMETIC: dict[str, Callable] = {
    name: INTEGER_ARITHMETIC[name]
    for name in (
        "add", "sub", "mul", "neg", "max", "min", "lt", "le", "gt", "ge", "eq", "ne", "abs", "integer_pow",
        "reduce_sum", "reduce_max", "reduce_min", "cumsum", "clamp", "iota",
    )
} | {
    "add_any": _elementwise(np.add),
    "div": _elementwise(np.true_divide),
    "square": _elementwise(np.square),
    "sqrt": _elementwise(np.sqrt),
    "pow": _elementwise(np.power),
    "exp": _elementwise(np.exp),
    "log": _elementwise(np.log),
    "log2": _elementwise(np.log2),
    "sin": _elementwise(np.sin),
    "cos": _elementwise(np.cos),
    "tan": _elementwise(np.tan),
    "tanh": _elementwise(np.tanh),
}  # fmt: skip


def _padded(value: np.ndarray, filler: np.ndarray, margins: Sequence[tuple[int, int, int]]) -> np.ndarray:
    """Entries with margins before, after and between them along each axis. Negative margins cut entries off."""
    for axis, (before, after, between) in enumerate(margins):
        length = value.shape[axis]
        at = before + (between + 1) * np.arange(length)
        size = before + length + max(length - 1, 0) * between + after
        inside = (at >= 0) & (at < size)
        wide = np.full((*value.shape[:axis], size, *value.shape[axis + 1 :]), filler, value.dtype)
        here = (slice(None),) * axis
        wide[(*here, at[inside])] = value[(*here, inside)]
        value = wide
    return value


def _contracted(left: np.ndarray, right: np.ndarray, numbers: Any) -> np.ndarray:
    """A product of arrays with the dimension numbers of `jax.lax.dot_general`."""
    (left_summed, right_summed), (left_kept, right_kept) = numbers
    labels, others = list(range(left.ndim)), list(range(left.ndim, left.ndim + right.ndim))
    for one, other in zip((*left_summed, *left_kept), (*right_summed, *right_kept), strict=True):
        others[other] = labels[one]
    out = [
        *left_kept,
        *(n for n in labels if n not in (*left_summed, *left_kept)),
        *(n for n in others if n >= left.ndim),
    ]
    return np.einsum(left, labels, right, others, out, optimize=True)


def _scattered(value: np.ndarray, indices: np.ndarray, updates: np.ndarray, eqn: _jax.JaxprEqn) -> np.ndarray:
    places, result = places_of_scatter(eqn, value.shape, indices, updates.shape), value.flatten()
    inside = places != OUTSIDE
    if eqn.primitive.name == "scatter":
        result[places[inside]] = updates[inside]
    else:
        np.add.at(result, places[inside], updates[inside])
    return result.reshape(value.shape)


_OF_MATRICES: dict[str, Callable] = {
    "copy": _elementwise(np.copy),
    "split": lambda value, sizes, axis, **_: np.split(value, np.cumsum(sizes)[:-1], axis),
    "pad": lambda value, filler, padding_config, **_: _padded(value, filler, padding_config),
    # The sums have the type of the result, which may be wider.
    "dot_general": lambda left, right, dimension_numbers, dtype, **_: _contracted(
        left.astype(dtype), right.astype(dtype), dimension_numbers
    ),
    "scatter": lambda value, indices, updates, eqn, **_: _scattered(value, indices, updates, eqn),
    "scatter-add": lambda value, indices, updates, eqn, **_: _scattered(value, indices, updates, eqn),
    "graphax_nothing": lambda dtype, **_: np.zeros((), dtype),
}
