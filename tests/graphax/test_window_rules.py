"""Convolutions and windows of every kind, with random shapes, compared with JAX, and what they store."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from jax import lax

import graphax as gx
from graphax import rule, terms

from .comparing import array, assert_same

ORDERS = ("fwd", "rev", "markowitz")


def check(function, x, *orders):
    """Check dense and sparse Jacobians in several orders."""
    want = jax.jit(jax.jacfwd(function))(x)
    for order in orders:
        how = {"order": order, "backend": "xla"}
        assert_same(jax.jit(gx.jacve(function, **how))(x), want)
        assert_same(jax.jit(lambda x: gx.jacve(function, sparse=True, **how)(x).todense())(x), want)


@st.composite
def convolutions(draw):
    """Arrays and parameters of a convolution whose result has entries."""
    axes = draw(st.integers(1, 2))
    few = st.integers(1, 3)
    batch_groups, groups = draw(st.sampled_from([(1, 1), (1, 1), (1, 2), (1, 3), (2, 1)]))
    lhs, rhs, how = [], [], []
    for _ in range(axes):
        size, window, stride, base, dilation = draw(st.tuples(st.integers(1, 6), few, few, few, few))
        reach = (window - 1) * dilation + 1 - ((size - 1) * base + 1)
        low = draw(st.integers(-1, 3))
        high = draw(st.integers(max(-1, reach - low), max(-1, reach - low) + 2))
        lhs.append(size)
        rhs.append(window)
        how.append((stride, (low, high), base, dilation))
    strides, padding, bases, dilations = zip(*how, strict=True)
    channels = draw(st.integers(1, 2))
    lhs = (draw(st.integers(1, 2)) * batch_groups, channels * groups, *lhs)
    rhs = (draw(st.integers(1, 2)) * groups * batch_groups, channels, *rhs)
    specs = [tuple(draw(st.permutations(range(axes + 2)))) for _ in range(3)]
    # The axes of each array are in another order.
    shapes = [
        tuple(shape[spec.index(n)] for n in range(axes + 2)) for shape, spec in zip((lhs, rhs), specs, strict=False)
    ]
    params = {
        "window_strides": strides,
        "padding": padding,
        "lhs_dilation": bases,
        "rhs_dilation": dilations,
        "dimension_numbers": lax.ConvDimensionNumbers(*specs),
        "feature_group_count": groups,
        "batch_group_count": batch_groups,
    }
    return *shapes, params


@given(convolutions(), st.booleans(), st.sampled_from(ORDERS))
@settings(max_examples=8, deadline=None)
def test_random_convolutions(drawn, by_kernel, order):
    lhs, rhs, params = drawn
    if by_kernel:
        check(lambda k: jnp.sin(lax.conv_general_dilated(array(*lhs), k, **params)), array(*rhs, seed=1), order)
    else:
        check(lambda x: jnp.sin(lax.conv_general_dilated(x, array(*rhs, seed=1), **params)), array(*lhs), order)


@st.composite
def windows(draw):
    """The shape of an array and the parameters of a reduction over windows of it whose result has entries."""
    few = st.integers(1, 3)
    axes = []
    for _ in range(draw(st.integers(1, 2))):
        size, window, stride, base, dilation = draw(st.tuples(st.integers(1, 6), few, few, few, few))
        short = (window - 1) * dilation - (size - 1) * base
        low = draw(st.integers(0, 2))
        high = draw(st.integers(max(0, short - low), max(0, short - low) + 1))
        axes.append((size, window, stride, (low, high), base, dilation))
    return tuple(zip(*axes, strict=True))


@given(windows(), st.sampled_from(ORDERS))
@settings(max_examples=8, deadline=None)
def test_random_window_sums(drawn, order):
    shape, *how = drawn
    check(lambda x: jnp.sin(lax.reduce_window(x, 0.0, lax.add, *how)), array(*shape), order)


@pytest.mark.slow
@given(windows(), st.sampled_from(["max", "min", "gradient"]), st.sampled_from(ORDERS))
@settings(max_examples=8, deadline=None)
def test_random_choices_over_windows(drawn, kind, order):
    """There are few different numbers, so some are equal. Windows without entries have infinite results."""
    shape, *how = drawn
    if kind == "gradient":
        # JAX differentiates maxima twice only without dilation.
        how = how[:3]
        assume(all(size + sum(margins) >= window for size, window, _, margins, *_ in zip(*drawn, strict=True)))
    start, choice = (np.inf, lax.min) if kind == "min" else (-np.inf, lax.max)
    function = pool = lambda x: jnp.tanh(lax.reduce_window(jnp.cos(x), start, choice, *how))
    if kind == "gradient":
        function = jax.grad(lambda x: jnp.sum(pool(x) ** 2))
    check(function, np.random.default_rng(0).integers(0, 4, shape).astype(float), order)


@pytest.mark.parametrize("order", ORDERS)
def test_entries_that_no_window_chooses_may_have_infinite_derivatives(order):
    function = lambda x: lax.reduce_window(jnp.sqrt(x), -np.inf, lax.max, (3,), (2,), "SAME")
    x = np.array([4.0, 0.0, 1.0, 9.0, 0.0, 1.0])
    assert_same(gx.jacve(function, order=order)(x), jax.jacfwd(function)(x))
    assert_same(gx.jacve(function, order=order, sparse=True)(x).todense(), jax.jacfwd(function)(x))


def filters(kernel):
    return {
        "jnp.convolve": lambda x: jnp.convolve(x, kernel),
        "kernel first": lambda x: jnp.convolve(kernel, x, "same"),
        "jax.scipy": lambda x: jax.scipy.signal.convolve(x, kernel, mode="valid"),
        "lax.conv": lambda x: lax.conv(x[None, None], kernel[None, None], (2,), "SAME")[0, 0],
        "transposed": lambda x: lax.conv_transpose(x[None, :, None], kernel[:, None, None], (2,), "SAME")[0, :, 0],
        "gradient": jax.grad(lambda x: jnp.sum(jnp.convolve(x, kernel) ** 3)),
        "by the kernel": lambda k: jnp.convolve(array(8), k),
    }


@pytest.mark.parametrize("name", filters(None))
def test_filters(name):
    function = filters(array(3))[name]
    check(lambda x: jnp.tanh(function(jnp.sin(x))), array(7, seed=1), *ORDERS)


@pytest.mark.parametrize("mode", ["SAME", "VALID"])
def test_a_convolution_stores_its_kernel_and_a_diagonal_for_each_tap(mode):
    def convolved(x, kernel):
        return lax.conv_general_dilated(x[None, None], kernel[None, None], (1,), mode)[0, 0]

    x, kernel = array(10_000), array(5, seed=1)
    assert gx.jacve(convolved, sparse=True)(x, kernel).structure.stored == 5
    block = gx.jacve(lambda x: jnp.tanh(convolved(x, kernel)), sparse=True)(x)
    assert block.sparsity.nnz == block.structure.stored <= 50_000
    tangent = array(10_000, seed=2)
    want = jax.jvp(lambda x: jnp.tanh(convolved(x, kernel)), (x,), (tangent,))[1]
    np.testing.assert_allclose(block.apply(tangent), want, rtol=1e-12, atol=1e-12)


def test_small_convolutions_store_no_zeros_if_sparse():
    block = gx.jacve(lambda x: jnp.convolve(x, array(3)), sparse=True)(array(9))
    assert (block.structure.stored, block.sparsity.nnz) == (3, 27)


@pytest.mark.parametrize("window", [(4, 4), (3, 6)])
def test_entries_of_long_windows_are_listed(window, monkeypatch):
    monkeypatch.setattr(terms, "MOST_TERMS", 9)
    rule.clear_caches()
    kernel, x = array(2, 1, *window), array(1, 1, 12, 15, seed=1)
    function = lambda x: lax.conv(x, kernel, (1, 1), "SAME")
    block = gx.jacve(function, sparse=True)(x)
    assert len(block.parts) == min(window)
    assert block.structure.stored < block.sparsity.nnz
    check(function, x, "auto")
    check(lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 1, *window), (1, 1, 2, 1), "SAME"), x, "auto")
    rule.clear_caches()


def test_windows_as_long_as_the_axis_are_dense():
    check(lambda x: jnp.convolve(x, array(60), "same"), array(61), "auto")
    total = lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 60), (1, 1), "SAME")
    assert gx.sparsity(total, array(2, 61)).nnz == 2 * 61 * 61
    check(total, array(2, 61), "auto")


def test_taps_of_a_constant_kernel_that_are_zero_are_left_out():
    kernel = np.zeros((1, 1, 9, 9))
    kernel[0, 0, 4, 3:6] = kernel[0, 0, 3:6, 4] = 1.0, -4.0, 1.0
    function = lambda x: lax.conv(x[None, None], kernel, (1, 1), "SAME")
    assert gx.sparsity(function, array(6, 5)).nnz == 30 * 5 - 2 * (6 + 5)
    check(function, array(6, 5), "auto")


@pytest.mark.parametrize("order", ["fwd", "rev"])
def test_windows_of_a_number(order):
    """Without axes there is one window, and what it chooses is the number."""
    check(lambda x: lax.reduce_window(jnp.sin(x), -np.inf, lax.max, (), (), "valid"), array(), order)
