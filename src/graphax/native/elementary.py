"""Elementary functions of vectors, accurate to a few units in the last place in single and double precision.

Signed zeros, infinities, NaN and denormals are treated as in the C library. Nothing branches. Sine, cosine and tangent
of huge arguments are left to the C library, see `Emitter.exact`; a GPU has none, see `device`.
"""

import math
from collections.abc import Sequence

from .coefficients import ATAN, COS, ERF, ERF_INV, ERFC, EXP, LOG, SIN
from .emit import Operand, Value, fma
from .formats import FORMATS, INFINITY

NAN = math.nan


def polynomial(coefficients: Sequence[float], x: Value) -> Value:
    result: Operand = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        result = fma(x, result, coefficient)
    assert isinstance(result, Value)
    return result


def absolute(x: Value) -> Value:
    return x.emitter.call("fabs", x)


def copysign(x: Value, sign: Value) -> Value:
    return x.emitter.call("copysign", x, sign)


def sqrt(x: Value) -> Value:
    return x.emitter.sqrt(x)


def select(condition: Value, a: Operand, b: Operand) -> Value:
    return condition.emitter.select(condition, a, b)


def nearest(x: Value) -> tuple[Value, Value]:
    """The nearest whole number, as a floating-point number and as an integer."""
    magic = FORMATS[x.kind].magic
    shifted = x + magic
    return shifted - magic, shifted.bits() - x.emitter.value(x.kind, magic).bits()


def as_number(whole: Value, kind: str) -> Value:
    """A small integer as a floating-point number."""
    magic = whole.emitter.value(kind, FORMATS[kind].magic)
    return (magic.bits() + whole).as_float() - magic


def scaled(x: Value, power: Value) -> Value:
    """x·2^power, in two steps, because the power itself may be out of range where the result is not."""
    form = FORMATS[x.kind]
    half = power >> 1
    for part in (half, power - half):
        x = x * ((part + form.bias) << form.mantissa).as_float()
    return x


# Exponentials


def _reduced_exp(x: Value, low: Value | None = None) -> tuple[Value, Value]:
    """(expm1(r), n) with x + low = n·ln(2) + r."""
    form = FORMATS[x.kind]
    lowest, highest = form.exp_range
    x = select(x > highest, highest, select(x < lowest, lowest, x))
    number, whole = nearest(x * (1 / math.log(2)))
    r = fma(-number, form.fused_ln2[1], fma(-number, form.fused_ln2[0], x))
    if low is not None:
        r = r + low
    return fma(r * r, polynomial(EXP[x.kind], r), r), whole


def exp(x: Value, low: Value | None = None, shift: int = 0) -> Value:
    """exp(x + low)·2^shift."""
    reduced, whole = _reduced_exp(x, low)
    return scaled(1 + reduced, whole + shift if shift else whole)


def exp2(x: Value) -> Value:
    form = FORMATS[x.kind]
    bound = float(form.bias + form.mantissa + 4)
    x = select(x > bound, bound, select(x < -bound, -bound, x))
    number, whole = nearest(x)
    r = (x - number) * math.log(2)
    return scaled(1 + fma(r * r, polynomial(EXP[x.kind], r), r), whole)


def expm1(x: Value) -> Value:
    form = FORMATS[x.kind]
    lowest = -2.0 * form.mantissa
    bounded = select(x < lowest, lowest, x)
    reduced, whole = _reduced_exp(bounded)
    # (r + (1 - 2^-n))·2^n loses nothing if the sum is small, because n is zero then.
    most = form.bias - 1
    inverse = (form.bias - select(whole > most, most, whole) << form.mantissa).as_float()
    return select(x.equals(0.0), x, scaled(reduced + (1 - inverse), whole))


def logistic(x: Value) -> Value:
    small = exp(-absolute(x))
    positive = 1 / (1 + small)
    return select(x >= 0.0, positive, small * positive)


def tanh(x: Value) -> Value:
    limit = FORMATS[x.kind].saturated
    a = absolute(x)
    grown = expm1(2 * select(a > limit, limit, a))
    return copysign(grown / (grown + 2), x)


def sinh(x: Value) -> Value:
    a = absolute(x)
    grown = expm1(a)
    half = exp(a, shift=-1)
    return copysign(select(a < 1.0, 0.5 * (grown + grown / (grown + 1)), half - 0.25 / half), x)


def cosh(x: Value) -> Value:
    half = exp(absolute(x), shift=-1)
    return half + 0.25 / half


# Logarithms


def _split(x: Value) -> tuple[Value, Value]:
    """(f, n) with x = (1 + f)·2^n and 1 + f between the square roots of 1/2 and 2, for x > 0."""
    form = FORMATS[x.kind]
    denormal = x < form.smallest
    raised = select(denormal, x * 2.0 ** (form.mantissa + 2), x)
    least = x.emitter.value(x.kind, math.sqrt(0.5)).bits()
    moved = raised.bits() + (x.emitter.value(x.kind, 1.0).bits() - least)
    whole = (moved >> form.mantissa) - select(denormal, moved.emitter.value(moved.kind, form.bias + form.mantissa + 2),
                                              form.bias)  # fmt: skip
    f = ((moved & ((1 << form.mantissa) - 1)) + least).as_float() - 1
    return f, as_number(whole, x.kind)


def _log_of(f: Value, number: Value, low: Value | None = None) -> Value:
    """log(1 + f) + number·ln(2) + low."""
    high_ln2, low_ln2 = FORMATS[f.kind].ln2
    half = 0.5 * f * f
    s = f / (2 + f)
    z = s * s
    rest = number * low_ln2 if low is None else fma(number, low_ln2, low)
    rest = fma(s, half + z * polynomial(LOG[f.kind], z), rest)
    return fma(number, high_ln2, f - (half - rest))


def _log_limits(x: Value, result: Value) -> Value:
    result = select(x < INFINITY, result, x)
    return select(x < 0.0, NAN, select(x.equals(0.0), -INFINITY, result))


def log(x: Value) -> Value:
    return _log_limits(x, _log_of(*_split(x)))


def log1p(x: Value) -> Value:
    u = 1 + x
    f, number = _split(u)
    near = number.equals(0.0)
    lost = select(u > 2.0, 1 - (u - x), x - (u - 1)) / u
    result = _log_of(select(near, x, f), number, select(near, 0.0, lost))
    return select(x.equals(0.0), x, _log_limits(u, result))


def asinh(x: Value) -> Value:
    a = absolute(x)
    large = a > 2.0 ** (FORMATS[x.kind].mantissa + 7)
    return copysign(_log1p_doubled(large, a, a + a * a / (1 + sqrt(fma(a, a, 1.0)))), x)


def acosh(x: Value) -> Value:
    t = select(x < 1.0, NAN, x - 1)
    return _log1p_doubled(x > 2.0 ** (FORMATS[x.kind].mantissa + 7), x, t + sqrt(fma(t, t, 2 * t)))


def _log1p_doubled(large: Value, x: Value, otherwise: Value) -> Value:
    """log(2x) if it is large, else log(1 + otherwise)."""
    return log1p(select(large, x, otherwise)) + select(large, x.emitter.value(x.kind, math.log(2)), 0.0)


def atanh(x: Value) -> Value:
    a = absolute(x)
    return copysign(0.5 * log1p(2 * a / (1 - a)), x)


# Powers


def power(x: Value, y: Value) -> Value:
    emitter = x.emitter
    a = absolute(x)
    if x.kind == "f32":
        wide = [emitter.cast("fpext", operand, "f64") for operand in (a, y)]
        magnitude = emitter.cast("fptrunc", exp(wide[1] * log(wide[0])), "f32")
    else:
        magnitude = _accurate_power(a, y)
    whole = emitter.call("trunc", y).equals(y)
    halved = 0.5 * y
    odd = whole & emitter.call("trunc", halved).differs(halved)
    fractional = select(a < INFINITY, NAN, magnitude)
    signed = select(x < 0.0, select(whole, select(odd, -magnitude, magnitude), fractional), magnitude)
    # An odd power of a negative zero keeps its sign.
    signed = select(x.equals(0.0) & odd, copysign(magnitude, x), signed)
    # The logarithm is zero here, but its product with an infinite exponent is not.
    signed = select(x.equals(-1.0) & absolute(y).equals(INFINITY), 1.0, signed)
    return select(y.equals(0.0) | x.equals(1.0), 1.0, signed)


def _accurate_power(a: Value, y: Value) -> Value:
    """a^y for a ≥ 0, by a logarithm of twice the precision."""
    high_ln2, low_ln2 = FORMATS[a.kind].ln2
    f, number = _split(a)
    m = f + 1
    below = m + 1
    s = f / below
    s_low = (fma(-s, below, f) - s * (m - (below - 1))) / below
    z = s * s
    first, second = number * high_ln2, 2 * s
    total = first + second
    rest = (second - (total - first)) + fma(number, low_ln2, fma(s * z, polynomial(LOG[a.kind], z), 2 * s_low))
    high = total + rest
    low = rest - (high - total)
    ordinary = (a > 0.0) & (a < INFINITY)
    high = select(ordinary, high, select(a.equals(0.0), -INFINITY, a))
    product = y * high
    product_low = fma(y, high, -product) + y * low
    return exp(product, select(ordinary & (absolute(product) < 1e4), product_low, 0.0))


def cbrt(x: Value) -> Value:
    a = absolute(x)
    root = exp(log(a) * (1 / 3))
    square = root * root
    root = root - fma(square, root, -a) / (3 * square)
    return select((a > 0.0) & (a < INFINITY), copysign(root, x), x)


# Angles


def _quadrant(x: Value) -> tuple[Value, Value, Value]:
    """(sin r, cos r, q) with |x| = r + q·π/2."""
    emitter, form = x.emitter, FORMATS[x.kind]
    a = absolute(x)
    number, whole = nearest(a * (2 / math.pi))
    r = a
    for part in form.half_pi:
        r = fma(-number, part, r)
    r, whole = emitter.reduced(a, a > form.largest_angle, r, whole)
    z = r * r
    sine = fma(r * z, polynomial(SIN[x.kind], z), r)
    cosine = fma(z * z, polynomial(COS[x.kind], z), fma(z, -0.5, 1.0))
    return sine, cosine, whole


def _negated_if(x: Value, bits: Value) -> Value:
    """x, negated where the second bit of an integer is set."""
    size = 32 if x.kind == "f32" else 64
    # Apply the mask last: processors combine it with the following operation.
    return (x.bits() ^ ((bits << (size - 2)) & -(1 << (size - 1)))).as_float()


def _scalar(name: str, kind: str) -> str:
    return f"{name}f" if kind == "f32" else name


def _with_sign_of(y: Value, x: Value) -> Value:
    """y, negated where x is negative. Unlike with `copysign`, y has a sign of its own."""
    sign = x.bits() ^ absolute(x).bits()
    return (y.bits() ^ sign).as_float()


def sin(x: Value) -> Value:
    if x.emitter.exact:
        return x.emitter.by_lane(_scalar("sin", x.kind), x)
    sine, cosine, whole = _quadrant(x)
    return _with_sign_of(_negated_if(select((whole & 1).equals(0), sine, cosine), whole), x)


def cos(x: Value) -> Value:
    if x.emitter.exact:
        return x.emitter.by_lane(_scalar("cos", x.kind), x)
    sine, cosine, whole = _quadrant(x)
    return _negated_if(select((whole & 1).equals(0), cosine, sine), whole + 1)


def tan(x: Value) -> Value:
    if x.emitter.exact:
        return x.emitter.by_lane(_scalar("tan", x.kind), x)
    sine, cosine, whole = _quadrant(x)
    even = (whole & 1).equals(0)
    return _with_sign_of(select(even, sine, -cosine) / select(even, cosine, sine), x)


def _atan_of(t: Value) -> Value:
    z = t * t
    return fma(t * z, polynomial(ATAN[t.kind], z), t)


def _from_half_turn(parts: tuple[float, float], angle: Value) -> Value:
    return parts[0] - (angle - parts[1])


def atan(x: Value) -> Value:
    a = absolute(x)
    steep = a > 1.0
    angle = _atan_of(select(steep, 1 / a, a))
    return copysign(select(steep, _from_half_turn(FORMATS[x.kind].half_pi[:2], angle), angle), x)


def atan2(y: Value, x: Value) -> Value:
    form = FORMATS[x.kind]
    up, along = absolute(y), absolute(x)
    steep = up > along
    small, large = select(steep, along, up), select(steep, up, along)
    infinite = small.equals(INFINITY) & large.equals(INFINITY)
    nothing = small.equals(0.0) & large.equals(0.0)
    ratio = select(nothing, 0.0, select(infinite, 1.0, small / large))
    angle = _atan_of(ratio)
    angle = select(steep, _from_half_turn(form.half_pi[:2], angle), angle)
    negative = x.bits() < 0
    return copysign(select(negative, _from_half_turn(form.pi, angle), angle), y)


def asin(x: Value) -> Value:
    return atan2(x, sqrt((1 - x) * (1 + x)))


def acos(x: Value) -> Value:
    return atan2(sqrt((1 - x) * (1 + x)), x)


# Error functions


def _small_erf(x: Value) -> Value:
    return fma(x, polynomial(ERF[x.kind], x * x), x)


def _large_erfc(a: Value) -> Value:
    """erfc(a) for a ≥ 0.5."""
    a = select(a > 30.0, 30.0, a)
    square = a * a
    tail = exp(-square, -fma(a, a, -square))
    return tail * polynomial(ERFC[a.kind], (a - 2) / (a + 2)) / (1 + 2 * a)


def erf(x: Value) -> Value:
    a = absolute(x)
    return select(a < 1.0, _small_erf(x), copysign(1 - _large_erfc(a), x))


def erfc(x: Value) -> Value:
    a = absolute(x)
    large = _large_erfc(a)
    return select(a < 0.5, 1 - _small_erf(x), select(x > 0.0, large, 2 - large))


def erf_inv(x: Value) -> Value:
    a = absolute(x)
    # Near one, the square would round away the distance from one, on which the result depends.
    w = -select(a < 0.5, log1p(-x * x), log((1 - a) * (1 + a)))
    root = sqrt(w)
    first, *others = ERF_INV[x.kind]
    result, limit = polynomial(first[2], w - first[1]), first[0]
    for next_limit, shift, coefficients in others:
        result, limit = select(w < limit, result, polynomial(coefficients, root - shift)), next_limit
    return select(a.equals(1.0), x * INFINITY, result * x)
