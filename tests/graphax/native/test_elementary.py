import math
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from jax import lax

from .running import mapped, ulps

LONG = np.longdouble
COUNT = 4001
INF, NAN = np.inf, np.nan


def _by_element(function):
    return lambda x: np.array([function(float(v)) for v in x])


@dataclass(frozen=True)
class Case:
    """A function, its reference in higher precision, and the intervals to test."""

    function: Callable
    reference: Callable
    intervals: tuple[tuple[float, float], ...]
    tolerance: float = 3.0


CASES = {
    "sin": Case(jnp.sin, np.sin, ((-3.5, 3.5), (-1e-3, 1e-3), (-3e4, 3e4))),
    "cos": Case(jnp.cos, np.cos, ((-3.5, 3.5), (-3e4, 3e4))),
    "tan": Case(jnp.tan, np.tan, ((-3.5, 3.5), (-3e4, 3e4)), 4),
    "exp": Case(jnp.exp, np.exp, ((-87, 88), (-1, 1))),
    "exp2": Case(jnp.exp2, np.exp2, ((-125, 127), (-1, 1))),
    "expm1": Case(jnp.expm1, np.expm1, ((-90, 88), (-1, 1), (-1e-5, 1e-5))),
    "log": Case(jnp.log, np.log, ((1e-30, 1e-3), (0.1, 3), (0.99, 1.01), (1, 1e30))),
    "log1p": Case(jnp.log1p, np.log1p, ((-0.99, 0.5), (-1e-5, 1e-5), (0, 10), (0, 1e20))),
    "tanh": Case(jnp.tanh, np.tanh, ((-12, 12), (-0.1, 0.1))),
    "sinh": Case(jnp.sinh, np.sinh, ((-80, 80), (-2, 2), (-1e-3, 1e-3))),
    "cosh": Case(jnp.cosh, np.cosh, ((-80, 80), (-2, 2))),
    "asinh": Case(jnp.arcsinh, np.arcsinh, ((-3, 3), (-1e-3, 1e-3), (0, 1e15)), 4),
    "acosh": Case(jnp.arccosh, np.arccosh, ((1, 3), (1, 1.01), (1, 1e15)), 4),
    "atanh": Case(jnp.arctanh, np.arctanh, ((-0.999, 0.999), (-1e-3, 1e-3)), 4),
    "asin": Case(jnp.arcsin, np.arcsin, ((-1, 1), (-1e-3, 1e-3)), 4),
    "acos": Case(jnp.arccos, np.arccos, ((-1, 1), (0.99, 1)), 4),
    "atan": Case(jnp.arctan, np.arctan, ((-2, 2), (-1e-3, 1e-3), (-1e5, 1e5))),
    "logistic": Case(jax.nn.sigmoid, lambda x: 1 / (1 + np.exp(-x)), ((-80, 80), (-2, 2)), 4),
    "sqrt": Case(jnp.sqrt, np.sqrt, ((0, 1e30),), 0.51),
    "rsqrt": Case(lax.rsqrt, lambda x: 1 / np.sqrt(x), ((1e-10, 1e10),)),
    "cbrt": Case(jnp.cbrt, np.cbrt, ((-1e10, 1e10), (-1, 1))),
    "floor": Case(jnp.floor, np.floor, ((-10, 10),), 0),
    "ceil": Case(jnp.ceil, np.ceil, ((-10, 10),), 0),
    "round": Case(jnp.round, np.round, ((-10, 10),), 0),
    "reciprocal square": Case(lambda x: x**-2, lambda x: x**-2, ((0.1, 10),)),
    "seventh power": Case(lambda x: x**7, lambda x: x**7, ((-3, 3),), 6),
}


def _points(case, dtype, seed=0):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.uniform(*interval, COUNT) for interval in case.intervals]).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CASES)
def test_accurate_to_a_few_units_in_the_last_place(name, dtype):
    case = CASES[name]
    points = _points(case, dtype)
    (got,) = mapped(lambda x: [case.function(x)], points)
    assert got.dtype == dtype
    worst = ulps(got, case.reference(points.astype(LONG)))
    assert worst.max() <= case.tolerance, (points[worst.argmax()], worst.max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_error_functions(name, dtype):
    points = np.random.default_rng(0).uniform(-4, 9, 2 * COUNT).astype(dtype)
    (got,) = mapped(lambda x: [getattr(lax, name)(x)], points)
    want = _by_element(getattr(math, name))(points)
    assert ulps(got, want).max() <= (5 if dtype == np.float32 else 8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inverse_error_function(dtype):
    near = 1 - np.geomspace(np.finfo(dtype).eps, 0.1, COUNT)
    x = np.concatenate([np.linspace(-1, 1, COUNT)[1:-1], np.geomspace(1e-30, 0.1, COUNT), near, -near]).astype(dtype)
    (got,) = mapped(lambda x: [lax.erf_inv(x)], x)
    assert ulps(got, scipy.special.erfinv(x.astype(float)).astype(LONG)).max() <= 6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inverse_error_function_of_zeros_infinities_and_nan(dtype):
    points = np.array(SPECIAL, dtype)
    (got,) = mapped(lambda x: [lax.erf_inv(x)], points)
    _same_specials(got, np.asarray(lax.erf_inv(points)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_power(dtype):
    rng = np.random.default_rng(0)
    x, y = np.exp(rng.uniform(-8, 8, COUNT)).astype(dtype), rng.uniform(-9, 9, COUNT).astype(dtype)
    (got,) = mapped(lambda x, y: [x**y], x, y)
    assert ulps(got, x.astype(LONG) ** y.astype(LONG)).max() <= 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_angle_of_a_point(dtype):
    y, x = np.random.default_rng(0).normal(size=(2, COUNT)).astype(dtype)
    (got,) = mapped(lambda y, x: [jnp.arctan2(y, x)], y, x)
    assert ulps(got, np.arctan2(y.astype(LONG), x.astype(LONG))).max() <= 3


SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 1e30, -1e30, INF, -INF, NAN, 70.0, -70.0, 1e-5, -1e-5)
UNARY = {
    "sin": jnp.sin, "cos": jnp.cos, "tan": jnp.tan, "exp": jnp.exp, "exp2": jnp.exp2, "expm1": jnp.expm1,
    "log": jnp.log, "log1p": jnp.log1p, "tanh": jnp.tanh, "sinh": jnp.sinh, "cosh": jnp.cosh, "asinh": jnp.arcsinh,
    "acosh": jnp.arccosh, "atanh": jnp.arctanh, "asin": jnp.arcsin, "acos": jnp.arccos, "atan": jnp.arctan,
    "sqrt": jnp.sqrt, "cbrt": jnp.cbrt, "abs": jnp.abs, "floor": jnp.floor, "ceil": jnp.ceil,
}  # fmt: skip
IN_NUMPY = {name: name.replace("a", "arc", 1) for name in ("asinh", "acosh", "atanh", "asin", "acos", "atan")}


def _same_specials(got, want):
    """Check that both are zero, infinite or NaN at the same places, with the same signs."""
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(want))
    np.testing.assert_array_equal(got == 0, want == 0)
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got)[known], np.signbit(want)[known])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", UNARY)
def test_zeros_infinities_and_nan(name, dtype):
    points = np.array(SPECIAL, dtype)
    with np.errstate(all="ignore"):
        want = getattr(np, IN_NUMPY.get(name, name))(points)
    (got,) = mapped(lambda x: [UNARY[name](x)], points)
    _same_specials(got, want)
    known = np.isfinite(want)
    np.testing.assert_allclose(got[known], want[known], rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["arctan2", "power", "maximum", "minimum", "divide", "multiply", "subtract"])
def test_pairs_of_zeros_infinities_and_nan(name, dtype):
    x, y = (np.array(side, dtype).ravel() for side in np.meshgrid(SPECIAL, SPECIAL))
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x, y)
    (got,) = mapped(lambda x, y: [getattr(jnp, name)(x, y)], x, y)
    if name in ("maximum", "minimum"):
        # NumPy does not distinguish signed zeros.
        np.testing.assert_array_equal(got, want)
    else:
        _same_specials(got, want)
    known = np.isfinite(want)
    np.testing.assert_allclose(got[known], want[known], rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_huge_angles(name, dtype):
    # One huge angle among small ones makes the kernel compute the whole block by the slow code.
    points = np.array([1e5, 3e9, -7e18, 1e30, 0.5, -2.0, 5e4, 123456.789] * 5 + [0.25], dtype)
    (got,) = mapped(lambda x: [UNARY[name](x)], points)
    want = _by_element(getattr(math, name))(points)
    assert ulps(got, want).max() <= 4


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_denormals_are_at_most_taken_for_zero(dtype):
    tiny = np.finfo(dtype).tiny
    points = np.array([tiny / 4, -tiny / 8, tiny, 2 * tiny, 0.0] * 4, dtype)

    def function(x):
        return [x * 2, x + x, jnp.abs(x), jnp.sqrt(jnp.abs(x)), jnp.sin(x), jnp.exp(x), x / 2, jnp.sign(x)]

    got = mapped(function, points)
    want = jax.jit(jax.vmap(function))(jnp.asarray(points))
    for ours, theirs in zip(got, want, strict=True):
        # A kernel inherits the mode of XLA's threads, which may flush denormals to zero. Nothing else may be lost.
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=tiny)
