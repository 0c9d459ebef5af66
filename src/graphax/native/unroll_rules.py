"""One short rule per primitive: what it does to arrays of statement numbers."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _jax
from ..errors import NativeError
from ..labelled import NOTHING
from .emit import kind_of
from .unroll import RULES, UNSIGNED, Numbers, Unrolling, UnrollRule

_ELEMENTWISE = {
    name: name
    for name in (
        "add", "sub", "mul", "div", "neg", "max", "min", "pow", "atan2", "rem", "and", "or", "xor", "not",
        "eq", "ne", "lt", "le", "gt", "ge", "sin", "cos", "tan", "exp", "exp2", "expm1", "log", "log1p", "tanh", "sinh",
        "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "logistic", "erf", "erfc", "erf_inv", "sqrt",
        "rsqrt", "cbrt", "abs", "sign", "floor", "ceil", "is_finite", "shift_left", "shift_right_logical",
        "shift_right_arithmetic",
    )
} | {"add_any": "add"}  # fmt: skip
_REDUCTIONS: dict[str, tuple[str, Any]] = {
    "reduce_sum": ("add", 0),
    "reduce_prod": ("mul", 1),
    "reduce_max": ("max", -np.inf),
    "reduce_min": ("min", np.inf),
    "reduce_and": ("and", True),
    "reduce_or": ("or", False),
}
_CUMULATIVE = {"cumsum": "add", "cumprod": "mul", "cummax": "max", "cummin": "min"}


def rule(*names: str) -> Callable[[UnrollRule], UnrollRule]:
    def register(function: UnrollRule) -> UnrollRule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register


def rule_of_numbers(*names: str, count: Callable[[Any], int]) -> Callable[[UnrollRule], UnrollRule]:
    """Register a rule that looks at single numbers. An estimate counts ``count`` statements instead."""

    def register(function: UnrollRule) -> UnrollRule:
        return rule(*names)(
            lambda u, eqn, *operands: u.of_numbers(eqn, count(eqn), lambda: function(u, eqn, *operands))
        )

    return register


@rule(NOTHING)
def _nothing(u: Unrolling, eqn: Any) -> Numbers:
    return np.array(u.builder.nothing(eqn.params["dtype"]))


@rule(*_ELEMENTWISE)
def _elementwise(u: Unrolling, eqn: Any, *operands: Numbers) -> Numbers:
    name = eqn.primitive.name
    kind = kind_of(_jax.dtype(eqn.invars[0]))
    if name == "pow" and kind_of(_jax.dtype(eqn.invars[1])) != kind:
        dtype = _jax.dtype(eqn.invars[0])
        operands = (operands[0], u.elements(lambda n: u.builder.convert(n, dtype), operands[1]))
    if name == "pow" and kind not in ("f32", "f64"):
        raise NativeError(f"{name} of numbers of this type is not supported")
    return u.apply(_ELEMENTWISE[name], *operands)


@rule("lt_to", "le_to")
def _total_order(u: Unrolling, eqn: Any, a: Numbers, b: Numbers) -> Numbers:
    """The order used for sorting: negative zeros come before positive ones, and NaN comes last."""
    kind = kind_of(_jax.dtype(eqn.invars[0]))
    relation = eqn.primitive.name[:2]
    if kind not in ("f32", "f64"):
        return u.apply(relation, a, b)
    whole = np.int32 if kind == "f32" else np.int64
    bits = [u.elements(lambda n: u.builder.bitcast(n, whole), x) for x in (a, b)]
    equal = u.apply("and", u.apply("eq", a, b), u.apply(relation, *bits))
    nothing = [u.apply("ne", x, x) for x in (a, b)]
    last = u.apply(
        "and", nothing[1], u.apply("not", nothing[0]) if relation == "lt" else u.apply("eq", nothing[1], nothing[1])
    )
    return u.apply("or", u.apply("or", u.apply("lt", a, b), equal), last)


@rule("square")
def _square(u: Unrolling, eqn: Any, x: Numbers) -> Numbers:
    return u.apply("mul", x, x)


@rule("log2")
def _log2(u: Unrolling, eqn: Any, x: Numbers) -> Numbers:
    # JAX has this primitive since version 0.12, and wrote the same quotient before.
    return u.apply("div", u.apply("log", x), u.constants(np.log(2), _jax.dtype(eqn.invars[0])))


@rule("one_minus_square")
def _one_minus_square(u: Unrolling, eqn: Any, x: Numbers) -> Numbers:
    one = u.constants(1, _jax.dtype(eqn.invars[0]))
    # The product form keeps its precision where the square is close to one.
    return u.apply("mul", u.apply("sub", one, x), u.apply("add", one, x))


@rule("polynomial")
def _polynomial(u: Unrolling, eqn: Any, x: Numbers, *coefficients: Numbers) -> Numbers:
    """A polynomial, with coefficients from the lowest degree to the highest."""
    total = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        total = u.apply("add", u.apply("mul", total, x), coefficient)
    return np.broadcast_to(total, _jax.shape(eqn.outvars[0]))


@rule("integer_pow")
def _integer_pow(u: Unrolling, eqn: Any, x: Numbers) -> Numbers:
    if kind_of(_jax.dtype(eqn.invars[0])) not in ("f32", "f64"):
        raise NativeError("powers of integers are not supported")
    return u.elements(lambda n: u.builder.power(n, eqn.params["y"]), x)


@rule("round")
def _round(u: Unrolling, eqn: Any, x: Numbers) -> Numbers:
    return u.apply("round_to_even" if int(eqn.params["rounding_method"]) == 1 else "round", x)


@rule("reduce_precision")
def _reduce_precision(u: Unrolling, eqn: Any, x: Numbers) -> Numbers:
    """Numbers rounded to fewer bits of mantissa, to even; ±∞ or ±0 beyond the range of fewer bits of exponent."""
    dtype = np.dtype(_jax.dtype(eqn.invars[0]))
    full, whole = np.finfo(dtype), np.dtype(f"i{dtype.itemsize}")
    bits = u.elements(lambda n: u.builder.bitcast(n, whole), x)
    lost = full.nmant - eqn.params["mantissa_bits"]
    if lost > 0:
        odd = u.apply("and", u.apply("shift_right_logical", bits, u.constants(lost, whole)), u.constants(1, whole))
        bias = u.apply("add", odd, u.constants((1 << lost - 1) - 1, whole))
        bits = u.apply("and", u.apply("add", bits, bias), u.constants(-(1 << lost), whole))
    if eqn.params["exponent_bits"] < full.iexp:
        most = (1 << eqn.params["exponent_bits"] - 1) - 1
        exponents = u.constants(((1 << full.iexp) - 1) << full.nmant, whole)
        highest, lowest = ((full.maxexp - 1 + sign * most) << full.nmant for sign in (1, -1))
        exponent, zero = u.apply("and", bits, exponents), u.apply("and", bits, u.constants(np.iinfo(whole).min, whole))
        large = u.apply("gt", exponent, u.constants(highest, whole))
        small = u.apply("le", exponent, u.constants(lowest, whole))
        bits = u.apply("select", large, u.apply("or", zero, exponents), u.apply("select", small, zero, bits))
    rounded = u.elements(lambda n: u.builder.bitcast(n, dtype), bits)
    return u.apply("select", u.apply("ne", x, x), x, rounded)


@rule("bitcast_convert_type")
def _bitcast(u: Unrolling, eqn: Any, x: Numbers) -> Numbers:
    before, after = (np.dtype(_jax.dtype(atom)) for atom in (eqn.invars[0], eqn.outvars[0]))
    if before.itemsize != after.itemsize or bool in (before, after):
        raise NativeError("bits can only be read as numbers of the same size")
    return u.elements(lambda n: u.builder.bitcast(n, after), x)


@rule("convert_element_type")
def _convert(u: Unrolling, eqn: Any, x: Numbers) -> Numbers:
    kinds = [kind_of(_jax.dtype(atom)) for atom in (eqn.invars[0], eqn.outvars[0])]
    if not UNSIGNED.isdisjoint(kinds) and not {"f32", "f64"}.isdisjoint(kinds):
        raise NativeError("unsigned numbers are converted to and from whole numbers only")
    return u.elements(lambda n: u.builder.convert(n, eqn.params["new_dtype"]), x)


@rule("select_n")
def _select_n(u: Unrolling, eqn: Any, which: Numbers, *cases: Numbers) -> Numbers:
    if kind_of(_jax.dtype(eqn.invars[0])) == "i1":
        return u.apply("select", which, cases[-1], cases[0])
    return one_of(u, which, cases, _jax.dtype(eqn.invars[0]))


def one_of(u: Unrolling, which: Numbers, cases: Sequence[Numbers], dtype: Any = np.int32) -> Numbers:
    """Case number ``which``. Numbers that are too large select the last case, and too small ones the first."""
    result = cases[-1]
    for number in range(len(cases) - 2, -1, -1):
        chosen = u.apply("le", which, u.constants(number, dtype))
        result = u.apply("select", chosen, cases[number], result)
    return result


@rule("clamp")
def _clamp(u: Unrolling, eqn: Any, low: Numbers, x: Numbers, high: Numbers) -> Numbers:
    return u.apply("min", u.apply("max", x, low), high)


@rule("copy", "copy_p", "name", "optimization_barrier", "stop_gradient")
def _same(u: Unrolling, eqn: Any, *operands: Numbers) -> Any:
    return list(operands) if eqn.primitive.multiple_results else operands[0]


@rule("device_put")
def _device_put(u: Unrolling, eqn: Any, *operands: Numbers) -> list[Numbers]:
    if any(device is not None for device in eqn.params["devices"]):
        raise NativeError("a kernel runs where its operands are")
    return list(operands)


@rule("iota")
def _iota(u: Unrolling, eqn: Any) -> Numbers:
    shape, dimension = eqn.params["shape"], eqn.params["dimension"]
    along = np.arange(shape[dimension]).reshape([-1 if n == dimension else 1 for n in range(len(shape))])
    return u.constants(np.broadcast_to(along, shape), eqn.params["dtype"])


# Rules that only move elements


@rule("reshape")
def _reshape(u: Unrolling, eqn: Any, x: Numbers) -> Numbers:
    order = eqn.params.get("dimensions")
    return (x if order is None else x.transpose(order)).reshape(eqn.params["new_sizes"])


@rule("transpose")
def _transpose(u: Unrolling, eqn: Any, x: Numbers) -> Numbers:
    return x.transpose(eqn.params["permutation"])


@rule("squeeze", "expand_dims")
def _squeeze(u: Unrolling, eqn: Any, x: Numbers) -> Numbers:
    return x.reshape(_jax.shape(eqn.outvars[0]))


@rule("broadcast_in_dim")
def _broadcast(u: Unrolling, eqn: Any, x: Numbers) -> Numbers:
    shape, dimensions = eqn.params["shape"], eqn.params["broadcast_dimensions"]
    sizes = [1] * len(shape)
    for dimension, size in zip(dimensions, x.shape, strict=True):
        sizes[dimension] = size
    return np.broadcast_to(x.reshape(sizes), shape)


@rule("slice")
def _slice(u: Unrolling, eqn: Any, x: Numbers) -> Numbers:
    params = eqn.params
    strides = params["strides"] or (1,) * x.ndim
    parts = zip(params["start_indices"], params["limit_indices"], strides, strict=True)
    return x[tuple(slice(*part) for part in parts)]


@rule("concatenate")
def _concatenate(u: Unrolling, eqn: Any, *operands: Numbers) -> Numbers:
    return np.concatenate(operands, eqn.params["dimension"])


@rule("stack")
def _stack(u: Unrolling, eqn: Any, *operands: Numbers) -> Numbers:
    return np.stack(operands, eqn.params["axis"])


@rule("unstack")
def _unstack(u: Unrolling, eqn: Any, x: Numbers) -> list[Numbers]:
    return list(np.moveaxis(x, eqn.params["axis"], 0))


@rule("tile")
def _tile(u: Unrolling, eqn: Any, x: Numbers) -> Numbers:
    return np.tile(x, eqn.params["reps"])


@rule("split")
def _split(u: Unrolling, eqn: Any, x: Numbers) -> list[Numbers]:
    return np.split(x, np.cumsum(eqn.params["sizes"])[:-1], eqn.params["axis"])


@rule("rev")
def _rev(u: Unrolling, eqn: Any, x: Numbers) -> Numbers:
    return np.flip(x, eqn.params["dimensions"])


@rule("pad")
def _pad(u: Unrolling, eqn: Any, x: Numbers, filler: Numbers) -> Numbers:
    return padded(x, filler, eqn.params["padding_config"])


def padded(x: Numbers, filler: Numbers, config: Sequence[tuple[int, int, int]]) -> Numbers:
    """An array with fillers before, after and between its entries along each axis. Negative numbers cut off entries."""
    for axis, (low, high, interior) in enumerate(config):
        moved = np.moveaxis(x, axis, 0)
        spread = max(0, len(moved) + (len(moved) - 1) * interior)
        result = np.full((max(low, 0) + spread + max(high, 0), *moved.shape[1:]), filler)
        result[max(low, 0) : max(low, 0) + spread : interior + 1] = moved
        x = np.moveaxis(result[max(-low, 0) : len(result) - max(-high, 0)], 0, axis)
    return x


# Reductions and products


@rule(*_REDUCTIONS)
def _reduction(u: Unrolling, eqn: Any, x: Numbers) -> Numbers:
    operation, start = _REDUCTIONS[eqn.primitive.name]
    return u.reduce(operation, x, eqn.params["axes"], start, _jax.dtype(eqn.outvars[0]))


@rule(*_CUMULATIVE)
def _cumulative(u: Unrolling, eqn: Any, x: Numbers) -> Numbers:
    axis, backward = eqn.params["axis"], eqn.params["reverse"]
    terms = np.moveaxis(x, axis, 0)[:: -1 if backward else 1]
    totals = list(terms[:1])
    for term in terms[1:]:
        totals.append(u.apply(_CUMULATIVE[eqn.primitive.name], totals[-1], term))
    return np.moveaxis(np.array(totals, np.int64).reshape(terms.shape)[:: -1 if backward else 1], 0, axis)


@rule("argmax", "argmin")
def _arg_extreme(u: Unrolling, eqn: Any, x: Numbers) -> Numbers:
    """The first place of the extreme. A NaN counts as the extreme."""
    relation = "gt" if eqn.primitive.name == "argmax" else "lt"
    terms = np.moveaxis(x, eqn.params["axes"][0], 0)
    dtype = _jax.dtype(eqn.outvars[0])
    best, place = terms[0], np.broadcast_to(u.constants(0, dtype), terms.shape[1:])
    for number, term in enumerate(terms[1:], 1):
        ordinary = u.apply("eq", best, best)
        better = u.apply("and", ordinary, u.apply("or", u.apply(relation, term, best), u.apply("ne", term, term)))
        best = u.apply("select", better, term, best)
        place = u.apply("select", better, u.constants(number, dtype), place)
    return place
