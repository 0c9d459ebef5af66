import jax
import jax.numpy as jnp
import numpy as np
import pytest

import graphax as gx
from graphax.native.inverses import INVERSE, share_inverses
from graphax.native.statements import StatementBuilder, Statements

from .running import mapped


def statements_of(builder, results):
    scalar = (), np.dtype(np.float64)
    return Statements(tuple(builder.statements), (scalar,) * 3, (scalar,) * len(results), tuple((n,) for n in results))


def operations(program):
    return [s.operation for s in program.statements if s.operation not in ("input", "constant")]


@pytest.fixture
def builder():
    return StatementBuilder()


def test_one_division_for_each_divisor(builder):
    x, y, z = (builder.input(n, 0, np.float64) for n in range(3))
    one = builder.constant(1, np.float64)
    results = [builder.apply("div", *pair) for pair in ((x, z), (y, z), (one, z), (x, y))]
    program = share_inverses(statements_of(builder, results))
    assert operations(program) == [INVERSE, "mul", "mul", "div"]
    inverse = program.results[2][0]
    assert program.statements[inverse].operation == INVERSE
    assert all(inverse in program.statements[program.results[n][0]].operands for n in (0, 1))


def test_whole_numbers_are_divided(builder):
    i, j, k = (builder.input(n, 0, np.int32) for n in range(3))
    results = [builder.apply("div", i, k), builder.apply("div", j, k)]
    assert operations(share_inverses(statements_of(builder, results))) == ["div", "div"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_divisors_of_all_sizes(dtype):
    """The inverse of the largest numbers is denormal and flushed to zero, but quotients by them are not zero."""
    limits = np.finfo(dtype)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, limits.max, -limits.max, limits.tiny, 1.5, -3.0, 1e-20]
    x, z = (a.ravel().astype(dtype) for a in np.meshgrid(special, special))
    y = np.full_like(x, 0.7)
    function = lambda x, y, z: [x / z, y / z, 1 / z]
    with np.errstate(all="ignore"):
        exact = function(*(a.astype(np.longdouble) for a in (x, y, z)))
        expected = [np.where(np.abs(e) < limits.tiny, 0 * e, e).astype(dtype) for e in exact]
    for got, want in zip(mapped(function, x, y, z), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=2 * limits.eps)
        np.testing.assert_array_equal(np.signbit(got[~np.isnan(want)]), np.signbit(want[~np.isnan(want)]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_two_roundings(dtype):
    rng = np.random.default_rng(0)
    x, y, z = (rng.normal(size=4099).astype(dtype) for _ in range(3))
    got = mapped(lambda x, y, z: [x / z, y / z], x, y, z)
    for found, dividend in zip(got, (x, y), strict=True):
        quotient = dividend.astype(np.longdouble) / z.astype(np.longdouble)
        assert np.max(np.abs(found - quotient) / np.spacing(np.abs(quotient).astype(dtype))) < 2


@pytest.mark.parametrize(
    "jump",
    [jnp.floor, jnp.ceil, jnp.round, lambda q: (q >= 1) * 1.0, lambda q: q.astype(int) * 1.0, lambda q: q % 1],
    ids=["floor", "ceil", "round", "comparison", "conversion", "remainder"],
)
def test_jumps_look_at_quotients(jump):
    """41 * (1 / 41) is below one in float32."""
    whole = np.arange(1, 200, dtype=np.float32)
    got = mapped(lambda x, y, z: [jump(x / z), y / z, 1 / z], whole, whole + 1, whole)[0]
    np.testing.assert_array_equal(got, jump(jnp.ones_like(whole)))


# A jump, and the function of the quotient of x and h that it depends on.
JUMPS = {
    "mod": lambda x, h, q: jnp.mod(x, h),
    "floor of abs": lambda x, h, q: jnp.floor(jnp.abs(q)) * x,
    "floor of a multiple": lambda x, h, q: jnp.floor(2 * x / h) * x,
    "comparison of a difference": lambda x, h, q: jnp.where(q - 1 >= 0, x, h * h),
    "sign of a difference": lambda x, h, q: jnp.sign(q - 1) * x,
    "abs of a difference": lambda x, h, q: jnp.abs(q - 1),
    "conversion": lambda x, h, q: q.astype(int) * x,
    "floor of a root": lambda x, h, q: jnp.floor(jnp.sqrt(q)) * x,
    "round of a chain": lambda x, h, q: jnp.round(-jnp.abs(q * 1.5)) * x,
    "maximum": lambda x, h, q: jnp.maximum(q, 1.0),
}


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("jump", JUMPS)
def test_a_jump_sees_the_quotient_however_indirectly(jump, times):
    """There are other quotients by the same number, and the numbers are multiples of each other."""
    h = jnp.arange(1, 2000, dtype=jnp.float32)
    function = lambda x, h: (JUMPS[jump](x, h, x / h), x * x / h, 3 / h)
    got = jax.jit(jax.vmap(gx.jacve(function, (0, 1), backend="native")))(times * h, h)
    want = jax.vmap(jax.jacfwd(function, (0, 1)))(times * h, h)
    for ours, theirs in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_the_sign_of_a_quotient_needs_no_quotient(builder):
    x, y, z = (builder.input(n, 0, np.float64) for n in range(3))
    first, second = builder.apply("div", x, z), builder.apply("div", y, z)
    zero = builder.constant(0, np.float64)
    signs = [builder.apply("sign", first), builder.apply("lt", second, zero)]
    program = share_inverses(statements_of(builder, [first, second, *signs]))
    assert operations(program).count(INVERSE) == 1
    assert "div" not in operations(program)
