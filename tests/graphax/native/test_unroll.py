import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import graphax as gx
from graphax import _jax
from graphax.errors import NativeError
from graphax.native.statements import StatementBuilder
from graphax.native.unroll import Estimate, unroll

from ..comparing import array
from .running import mapped, natively

A, B = array(3, 4, seed=1), array(4, 2, seed=2)
INDEX = np.array([2, 0, 2])

# One line for each rule or group of rules: a function of a 3×4 array.
CASES = {
    "reshape and transpose": lambda x: x.reshape(2, 6).T,
    "broadcast": lambda x: jnp.broadcast_to(x[:, None], (3, 2, 4)),
    "slices": lambda x: x[::2, 1:3],
    "concatenation": lambda x: jnp.concatenate([x, 2 * x[:1]]),
    "stack": lambda x: jnp.stack([x, -x], 1),
    "unstack": lambda x: sum(jnp.unstack(x, axis=1)),
    "tile": lambda x: jnp.tile(x, (2, 3)),
    "split": lambda x: jnp.split(x, [1, 3], axis=1)[1],
    "reversal": lambda x: x[::-1, ::-1],
    "padding": lambda x: lax.pad(x, 1.5, ((1, 2, 1), (-1, 0, 0))),
    "gather": lambda x: x[INDEX, 1:],
    "gather beyond the end": lambda x: x.at[np.array([1, 7])].get(mode="fill"),
    "dynamic slice": lambda x: lax.dynamic_slice(x, (1, 1), (2, 2)),
    "update": lambda x: x.at[1:, 2].set(7.0),
    "sum": lambda x: x.sum(0),
    "product": lambda x: x.prod(),
    "maximum": lambda x: x.max(1),
    "minimum": lambda x: x.min((0, 1)),
    "all and any": lambda x: ((x > 0).any(0) & ~(x > 0.5).all(0)).astype(x.dtype),
    "extremes of truth values": lambda x: (x > 0.5).max(0) ^ (x > 0).min(0) ^ jnp.maximum(x[0] > 0, x[1] > 0.5),
    "argmax": lambda x: jnp.argmax(x, 1),
    "argmin": lambda x: jnp.argmin(x, 0),
    "cumulative sum": lambda x: jnp.cumsum(x, 1),
    "backward cumulative product": lambda x: lax.cumprod(x, 0, reverse=True),
    "matrix product": lambda x: x @ B,
    "batched product": lambda x: jnp.einsum("ij,ijk->ik", x, jnp.stack([B, 2 * B, -B])),
    "outer product": lambda x: jnp.einsum("ij,k->kij", x, B[:, 0]),
    "where": lambda x: jnp.where(x > 0, x, x * x),
    "choice by number": lambda x: lax.select_n((x > 0).astype(jnp.int32) + (x > 0.5), x, 2 * x, 3 * x),
    "clamp": lambda x: jnp.clip(x, -0.3, 0.4),
    "device_put": lambda x: sum(jax.device_put((x, 2 * x))),
    "iota": lambda x: x * lax.broadcasted_iota(x.dtype, (3, 4), 1),
    "conversion": lambda x: x.astype(jnp.float32) * jnp.floor(4 * x).astype(jnp.int32),
    "remainder": lambda x: lax.rem(x, jnp.full_like(x, 0.3)),
    "rounding": lambda x: jnp.round(4 * x) + lax.round(3 * x, lax.RoundingMethod.AWAY_FROM_ZERO),
    "finite": lambda x: jnp.isfinite(1 / (x - x[0, 0])),
    "bits": lambda x: lax.bitcast_convert_type(lax.bitcast_convert_type(x, jnp.uint64) & ~np.uint64(0xFFFF), x.dtype),
    "order of bits": lambda x: lax.bitcast_convert_type(x, jnp.uint64) > lax.bitcast_convert_type(-x, jnp.uint64),
    "derivative of tanh": lambda x: jax.jvp(jnp.tanh, (x,), (x,))[1],
    "derivative of erf": lambda x: jax.jvp(lax.erf, (4 * x,), (x,))[1],
    "whole powers": lambda x: x**3 + x**-2 + x**0,
    "fractional powers": lambda x: jnp.abs(x) ** 0.7,
    "logarithm to base two": lambda x: jnp.log2(jnp.abs(x)) + jnp.log2(8.0) + jnp.log2(x[:1]),
    "custom derivative": lambda x: jax.nn.relu(x) + jax.nn.silu(x),
    "softmax": lambda x: jax.nn.softmax(x, axis=0),
    "condition": lambda x: lax.cond(x[0, 0] > 0, jnp.sin, lambda y: y + 1, x),
    "derivative of a condition": lambda x: jax.linearize(lambda y: lax.cond(y[0, 0] > 0, jnp.sin, jnp.exp, y), x)[1](x),
    "switch": lambda x: lax.switch(jnp.int32(x[0, 0] > 0), [jnp.sin, lambda y: y + 1], x),
    "scan": lambda x: lax.scan(lambda c, row: (c * row, c + row), x[0], x)[1],
    "backward scan": lambda x: lax.scan(lambda c, row: (c + row, c), x[0], x, reverse=True)[0],
    "nothing": lambda x: x[:0].sum(0),
    "sums of which there are none": lambda x: x[:0] @ B,
}


@pytest.mark.parametrize("name", CASES)
def test_rules(name):
    got = jax.jit(jax.vmap(natively(lambda x: [CASES[name](x)])))(np.stack([A, -A, 2 * A]))[0]
    want = jax.vmap(CASES[name])(np.stack([A, -A, 2 * A]))
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def _unrolled(function, *args):
    return unroll(_jax.open_program(function, args)[0])


def test_repetitions_and_dead_code_are_gone():
    def function(x):
        jnp.exp(x)
        return [jnp.sin(x) * x + x * jnp.sin(x), jnp.sin(x)]

    names = [s.operation for s in _unrolled(function, 1.0).statements]
    assert sorted(names) == ["add", "input", "mul", "sin"]


@pytest.mark.parametrize(
    ("function", "args", "reason"),
    [
        (lambda x: [jnp.linalg.svd(x)[1]], (np.eye(3),), "svd float64.3,3. .* no rule for svd"),
        (lambda x: [jnp.linalg.cholesky(x)], (np.eye(33),), "33 by 33 is left to LAPACK"),
        (lambda x: [x.astype(jnp.bfloat16)], (np.ones(2),), "convert_element_type .* numbers of type bfloat16"),
        (lambda x, n: [x[n]], (np.ones(99), 2), "dynamic_slice .* known only at run time, and choose among 99 places"),
        (
            lambda x, n: [x.at[n, n].set(2)],
            (np.ones((4, 3)), np.arange(2)),
            "scatter .* known only at run time, along several axes",
        ),
        (lambda x: [jnp.sin(x[:, None, None] * x[:, None] * x)], (np.ones(60),), "more than 64,000 statements"),
        (lambda x: [lax.scan(lambda c, _: (c, c), x, length=10**6)[1]], (1.0,), "writes more than 131,072 numbers"),
        (lambda x: [lax.sign(x)], (np.ones(3, np.uint32),), "sign of unsigned numbers is not supported"),
        (lambda x: [x.astype(float)], (np.uint32(3),), "converted to and from whole numbers only"),
        (lambda x: [lax.bitcast_convert_type(x, jnp.int32)], (np.ones(3),), "of the same size"),
    ],
)
def test_unsupported_operations_are_named(function, args, reason):
    with pytest.raises(NativeError, match=f"does not support .*{reason}"):
        _unrolled(function, *args)


KEY = jax.random.key(1)


def _keys(x):
    keys = jax.random.split(jax.random.key(3), 3)
    return jax.vmap(lambda key, v: v * jax.random.normal(key))(keys, x)


ODD = {
    "typed keys": _keys,
    "a typed key that is closed over": lambda x: x * jax.random.uniform(KEY, x.shape),
    "product of two scalars": lambda x: jnp.dot(x[0], x[1]) * x,
    "products of rows": lambda x: jnp.prod(jnp.outer(x, x) + x, 1),
    "another order of axes": lambda x: lax.reshape(jnp.outer(x, x * x), (9,), dimensions=(1, 0)),
    "maximum of no integers": lambda x: x * jnp.max(jnp.zeros((0,), int), initial=-3),
    "minimum of no integers": lambda x: x * jnp.min(jnp.zeros((2, 0), np.int32), initial=7, axis=1).sum(),
    "an integer too large": lambda x: x * (x * 3e9).astype(np.int32),
    "an integer too small": lambda x: x * (-3e19 - x).astype(int),
    "a constant integer too large": lambda x: x * (0 * x + 3e9).astype(np.int32),
    "no number": lambda x: x * (x * np.nan).astype(np.int32),
}


@pytest.mark.parametrize(
    "transform", [jax.jit, lambda f: lambda x: jax.jit(jax.vmap(f))(x[None])[0]], ids=["jit", "vmap"]
)
@pytest.mark.parametrize("backend", ["auto", "native"])
@pytest.mark.parametrize("name", ODD)
def test_odd_programs(name, backend, transform):
    x = jnp.arange(1.0, 4.0)
    want = jax.jacfwd(ODD[name])(x)
    try:
        got = transform(gx.jacve(ODD[name], backend=backend))(x)
    except gx.NativeError as error:
        assert backend == "native"
        assert "test_unroll" in str(error)  # noqa: PT017  the line is the user's, whatever was refused
        return
    np.testing.assert_allclose(got, want)


@pytest.mark.parametrize("value", [3e9, -3e9, 2.0**31, 2.0**31 - 1, -(2.0**31), np.inf, -np.inf, np.nan, 1.5, -0.5])
def test_constants_are_converted_as_xla_converts(value):
    function = lambda x: [jnp.where(x > 0, jnp.float64(value), jnp.float64(value)).astype(np.int32)]
    got = mapped(function, np.ones(3))
    with jax.ensure_compile_time_eval():
        want = jnp.asarray(np.float64(value)).astype(np.int32)
    np.testing.assert_array_equal(got[0], np.full(3, want))


def test_too_many_statements_are_noticed_from_shapes(monkeypatch):
    """A large array is refused before any of its elements is processed."""
    monkeypatch.setattr(StatementBuilder, "apply", lambda *_: pytest.fail("a statement was written"))
    with pytest.raises(NativeError, match=r"more than [\d,]+"):
        _unrolled(lambda x: [jnp.sin(x) * jnp.cos(x)], np.ones(200_000, np.float32))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: [jnp.sum(jnp.exp(jnp.broadcast_to(x, (300, 300)))[:9])],
        lambda x: [jnp.exp(jnp.broadcast_to(x, (300, 300)))[7, 8]],
        lambda x: [jnp.zeros((300, 300))[3] * x],
    ],
)
def test_repeated_elements_are_estimated_as_one(function):
    assert _unrolled(function, np.float32(1)).operations <= 2_700


@pytest.mark.parametrize("name", CASES)
def test_estimates_come_from_the_same_rules(name):
    """An estimate is the number of statements, or more if some statements turn out to be equal."""
    program, _ = _jax.open_program(lambda x: [CASES[name](x)], [A])
    estimate = Estimate(10**6)
    results = estimate.run(program, [estimate.loaded(n, var) for n, var in enumerate(program.inputs)])
    # A power, which is a few products, is estimated as one.
    assert unroll(program).operations <= estimate.count + A.size
    assert [result.shape for result in results] == [_jax.shape(atom) for atom in program.outputs]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jnp.searchsorted(jnp.array([-1.0, 0.2, 1.0]), x) * x,
        lambda x: jnp.interp(x, jnp.array([-1.0, 0.2, 1.0]), jnp.array([2.0, 1.0, 3.0])),
        lambda x: jnp.frexp(x)[0] + jnp.ldexp(x, 2),
    ],
)
def test_operations_that_jax_defines_by_others(function):
    points = np.stack([A, -A, 2 * A])
    got, jacobians = jax.jit(jax.vmap(natively(lambda x: [function(x), jax.jacfwd(function)(x)])))(points)
    np.testing.assert_allclose(got, jax.vmap(function)(points), rtol=1e-14)
    np.testing.assert_allclose(jacobians, jax.vmap(jax.jacfwd(function))(points), rtol=1e-14)


def test_primitives_of_other_libraries_are_what_they_do():
    primitive = _jax.Primitive("twice")
    primitive.def_impl(lambda x, *, times: jnp.sin(x) * times)
    primitive.def_abstract_eval(lambda x, *, times: x)
    program = _jax.trace(lambda x: [primitive.bind(x, times=2.0)], np.ones(3))
    assert {s.operation for s in unroll(program).statements} == {"input", "constant", "sin", "mul"}


WHOLE = (np.int32, np.uint32, np.int64, np.uint64)


@pytest.mark.parametrize("shift", [lax.shift_left, lax.shift_right_logical, lax.shift_right_arithmetic])
@pytest.mark.parametrize("dtype", WHOLE)
def test_shifts_by_any_distance(shift, dtype):
    limits = np.iinfo(dtype)
    x = np.random.default_rng(0).integers(limits.min, limits.max, (140, 3), dtype)
    distance = np.arange(-70, 70).astype(dtype)[:, None] * np.ones(3, dtype)
    np.testing.assert_array_equal(mapped(lambda x, y: [shift(x, y)], x, distance)[0], shift(x, distance))


@pytest.mark.parametrize("dtype", WHOLE)
@pytest.mark.parametrize("function", [jnp.maximum, jnp.minimum])
def test_extremes_of_whole_numbers(function, dtype):
    """The largest unsigned numbers have the same bits as negative ones."""
    numbers = np.array([0, 1, 2, np.iinfo(dtype).max, np.iinfo(dtype).min, np.iinfo(dtype).max - 1], dtype)
    x, y = (v.ravel() for v in np.meshgrid(numbers, numbers))
    np.testing.assert_array_equal(mapped(lambda x, y: [function(x, y)], x, y)[0], function(x, y))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_a_choice_by_whole_numbers_of_any_size(dtype):
    which, x = np.arange(9).astype(dtype) % 3, np.arange(1.0, 10.0)
    function = lambda which, x: [lax.select_n(which, x, -x, x * x)]
    np.testing.assert_array_equal(mapped(function, which, x)[0], function(which, x)[0])


@pytest.mark.parametrize("bits", [(5, 10), (8, 7), (8, 23), (11, 52), (4, 3), (11, 30), (2, 0)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_reduced_precision(dtype, bits):
    rng, limits = np.random.default_rng(0), np.finfo(dtype)
    spread = rng.normal(size=2001) * 10.0 ** rng.integers(np.log10(limits.tiny) + 1, np.log10(limits.max) - 1, 2001)
    ties = [1 + 2.0**-8, 1 + 3 * 2.0**-8, 65504.0, 65519.99, 65520.0, 6.1e-5, 5.9e-8]
    x = np.concatenate([spread, ties, [0.0, -0.0, np.inf, -np.inf, np.nan]]).astype(dtype)
    got, want = mapped(lambda x: [lax.reduce_precision(x, *bits)], x)[0], lax.reduce_precision(x, *bits)
    if not bits[1]:
        # Without a mantissa there is no NaN. XLA returns either NaN or infinity, depending on how it compiles.
        assert np.isnan(got[-1])
        got, want = got[:-1], want[:-1]
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


def _divided(x):
    return x.at[6:].divide(jnp.linalg.svd(x.reshape(3, 3), compute_uv=False))


def _gamma(x):
    return jax.scipy.special.gammainc(x, 2.0)


def _in_a_loop(x):
    return lax.scan(lambda c, v: (c + _gamma(v), jnp.linalg.pinv(c * jnp.eye(3))), 1.0, x)


@pytest.mark.parametrize("function", [_divided, _gamma, _in_a_loop, lambda x: jnp.fft.fft(x * x).real])
def test_reasons_name_the_line_of_the_user(function):
    """They never name a line of JAX or graphax, even if the operation is in a library function or a derivative."""
    x = jnp.arange(1.0, 10.0)
    place = r"test_unroll\.py:\d+"
    assert re.search(place, gx.explain(function, x).backend.reason)
    with pytest.raises(NativeError, match=place):
        jax.jit(jax.vmap(gx.jacve(function, backend="native")))(x[None])


def test_primitives_without_a_rule_are_named():
    with pytest.raises(NativeError, match="no rule for igamma"):
        unroll(_jax.trace(lambda x: [lax.igamma(x, x)], np.ones(3)))
