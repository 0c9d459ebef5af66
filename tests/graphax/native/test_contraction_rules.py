"""Sums of products in kernels: short ones written out, long ones as loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from jax import lax

import graphax as gx
from graphax import _jax
from graphax.native import contraction_rules
from graphax.native.unroll import unroll

from ..comparing import array, assert_same
from .running import natively
from .warps import on_warps

# Dimension numbers, and the shapes of both operands.
CASES = {
    "matrix by matrix": ((((1,), (0,)), ((), ())), (11, 13), (13, 17)),
    "in other axes": ((((0,), (1,)), ((), ())), (13, 11), (17, 13)),
    "long rows": ((((1,), (0,)), ((), ())), (3, 400), (400, 5)),
    "matrix by vector": ((((1,), (0,)), ((), ())), (45, 33), (33,)),
    "one number": ((((0,), (0,)), ((), ())), (1_500,), (1_500,)),
    "shared axes": ((((2,), (1,)), ((0,), (2,))), (5, 7, 6), (9, 6, 5)),
    "shared axes and long rows": ((((2,), (1,)), ((0,), (2,))), (3, 40, 6), (30, 6, 3)),
    "two contracted": ((((0, 2), (1, 0)), ((), ())), (4, 9, 5), (5, 4, 11)),
    "no contracted": ((((), ()), ((), ())), (40,), (50,)),
    "in loops of loops": ((((1,), (0,)), ((), ())), (37, 41), (41, 43)),
    "nothing to sum": ((((1,), (0,)), ((), ())), (30, 0), (0, 50)),
    "no rows": ((((1,), (0,)), ((), ())), (0, 30), (30, 50)),
}


def _product(name):
    numbers, first, second = CASES[name]
    operands = [array(*shape, seed=n).astype(np.float32) for n, shape in enumerate((first, second))]
    return lambda a, b: [lax.dot_general(a, b, numbers)], operands


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    "computed", [pytest.param(False, id="given"), pytest.param(True, id="computed", marks=pytest.mark.slow)]
)
def test_equal_to_xla(name, computed):
    product, operands = _product(name)

    def function(a, b):
        return product(jnp.sin(a), b * b) if computed else product(a, b)

    assert_same(natively(function)(*operands), function(*operands), 1e-5)


@pytest.mark.parametrize("mapped", [(0, None), (None, 0), (0, 0)])
def test_many_points(mapped):
    def function(a, b):
        return [jnp.tanh(a @ b) @ a, (a @ b).T]

    batched = [np.stack([x, 2 * x, -x]) if axis == 0 else x
               for x, axis in zip((array(24, 18, seed=1), array(18, 24, seed=2)), mapped, strict=True)]  # fmt: skip
    args = [x.astype(np.float32) for x in batched]
    got = jax.jit(jax.vmap(gx.kernel(function, backend="native"), mapped))(*args)
    assert_same(got, jax.vmap(function, mapped)(*args), 1e-5)


@pytest.mark.parametrize("batch", [1, 33])
def test_on_threads_of_a_gpu(batch):
    def function(a, b):
        return [jnp.sin(a @ b) * 2]

    args = [array(batch, 6, 20, seed=1).astype(np.float32), array(20, 15, seed=2).astype(np.float32)]
    assert_same(on_warps(function, args, (True, False)), jax.vmap(function, (0, None))(*args), 1e-5)


def _statements(function, *args):
    program, _ = _jax.open_program(function, args)
    return unroll(program)


def test_long_contractions_are_short_code():
    short = _statements(lambda a, b: [a @ b], array(8, 8), array(8, 8))
    long = _statements(lambda a, b: [a @ b], array(40, 40), array(40, 40))
    assert not short.loops
    assert short.operations == 8 * 8 * (8 + 7)
    assert len(long.loops) == 2
    # One row is a loop over its columns.
    assert long.operations < 200
    assert long.executed >= 40 * 40 * (40 + 39)


def test_entries_that_a_block_lacks_are_not_multiplied():
    """The product of two diagonal blocks, most of whose entries are known zeros, stays short."""

    def function(x):
        return jnp.sin(x) * jnp.roll(x, 1)

    x = array(32, seed=3)

    def blocks(x):
        return [gx.jacve(function, backend="xla")(x) @ gx.jacve(function, backend="xla")(x)]

    assert _statements(blocks, x).operations < 32 * 32
    assert_same(natively(blocks)(x), blocks(x), 1e-12)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64, jnp.int32])
def test_results_of_a_wider_type(dtype):
    a, b = (jnp.arange(n * m, dtype=jnp.float32).reshape(n, m) for n, m in ((30, 20), (20, 10)))
    a, b = (x.astype(jnp.int32) if dtype == jnp.int32 else x for x in (a, b))

    def function(a, b):
        return [lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type=dtype)]

    assert_same(natively(function)(a, b), function(a, b), 1e-5)


MIXED = [(jnp.int32, jnp.float32), (jnp.float32, jnp.int64), (jnp.bool_, jnp.float64), (jnp.float32, jnp.float64)]


@pytest.mark.parametrize("written_out", [1, 1_000])
@pytest.mark.parametrize(("first", "second"), MIXED)
@pytest.mark.parametrize("turned", [False, True])
def test_operands_of_two_types(monkeypatch, written_out, first, second, turned):
    """For example, JAX multiplies a matrix of truth values by a matrix of numbers without converting it."""
    monkeypatch.setattr(contraction_rules, "_WRITTEN_OUT", written_out)
    a, b = (jnp.asarray(3 * array(5, 5, seed=n)).astype(dtype) for n, dtype in enumerate((first, second)))
    operands = (b, a) if turned else (a, b)
    assert_same(natively(lambda a, b: [a @ b])(*operands), [operands[0] @ operands[1]], 1e-6)


@pytest.mark.parametrize("written_out", [1, 1_000])
@pytest.mark.parametrize("mapped", [False, True])
def test_truth_values(monkeypatch, written_out, mapped):
    """The sum of two true values is true."""
    monkeypatch.setattr(contraction_rules, "_WRITTEN_OUT", written_out)

    def function(x):
        above = x[:, None] > x
        return jnp.sum(above @ above) * x * jnp.dot(x > 0, x < 1)

    x = array(4, 6, seed=4) if mapped else array(6, seed=4)
    ours, theirs = gx.jacve(function, backend="native"), jax.jacfwd(function)
    ours, theirs = (jax.vmap(ours), jax.vmap(theirs)) if mapped else (ours, theirs)
    assert_same(jax.jit(ours)(x), theirs(x), 1e-12)


def test_constants_are_tables():
    weights = array(30, 40, seed=5)
    kernel = gx.kernel(lambda x: weights @ x, backend="native")
    x = array(40, 2, seed=6)
    assert_same(kernel(x), weights @ x, 1e-12)


sizes = st.integers(1, 12)


@pytest.mark.slow
@given(st.tuples(sizes, sizes, sizes, st.integers(1, 3)), st.sampled_from([1, 4, 60, 300]))
@settings(deadline=None, max_examples=25)
def test_of_any_size(shape, written_out):
    """The sums are the same for every length at which loops begin."""
    rows, terms, columns, shared = shape
    a, b = array(shared, rows, terms, seed=rows), array(shared, terms, columns, seed=columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contraction_rules, "_WRITTEN_OUT", written_out)
        got = natively(lambda a, b: [jnp.cos(a) @ b])(a, b)
    assert_same(got, [jnp.cos(a) @ b], 1e-12)


@pytest.mark.parametrize("order", ["fwd", "rev"])
def test_jacobians_of_networks(order):
    weights = [array(24, 10, seed=1), array(24, 24, seed=2), array(6, 24, seed=3)]

    def network(x):
        for w in weights:
            x = jnp.tanh(w @ x / 5)
        return x

    points = array(9, 10, seed=4)
    got = jax.jit(jax.vmap(gx.jacve(network, order=order, backend="native")))(points)
    assert_same(got, jax.vmap(jax.jacfwd(network))(points), 1e-12)
