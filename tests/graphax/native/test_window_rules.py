"""Convolutions and sliding windows in kernels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import graphax as gx

from ..comparing import array, assert_same
from .running import natively

TOLERANCE = {np.float32: 1e-5, np.float64: 1e-12}
# The shapes of images and kernels, and further arguments.
CONVOLUTIONS = {
    "plain": ((1, 2, 5, 4), (3, 2, 2, 3), {"window_strides": (1, 1), "padding": "VALID"}),
    "padded": ((2, 1, 5, 4), (2, 1, 3, 2), {"window_strides": (2, 1), "padding": ((2, 1), (0, 3))}),
    "cut off": ((1, 1, 6, 5), (1, 1, 2, 2), {"window_strides": (1, 1), "padding": ((-1, 0), (1, -2))}),
    "dilated": ((1, 2, 4, 5), (2, 2, 2, 2), {
        "window_strides": (1, 2), "padding": ((1, 2), (1, 1)), "lhs_dilation": (2, 1), "rhs_dilation": (1, 3)}),
    "in groups": ((2, 4, 5), (6, 2, 3), {"window_strides": (2,), "padding": "SAME", "feature_group_count": 2}),
    "other axes": ((2, 5, 4, 3), (2, 3, 3, 2), {
        "window_strides": (1, 1), "padding": "SAME", "dimension_numbers": ("NHWC", "HWIO", "NCHW")}),
    "long": ((1, 3, 12), (9, 3, 8), {"window_strides": (1,), "padding": "SAME"}),
    "all padding": ((1, 1, 2), (1, 1, 2), {"window_strides": (1,), "padding": ((4, 4),)}),
    "nothing": ((1, 1, 2), (1, 1, 3), {"window_strides": (1,), "padding": "VALID"}),
}  # fmt: skip


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name, dtype):
    *shapes, rest = CONVOLUTIONS[name]
    x, k = (array(9, *shape, seed=n).astype(dtype) for n, shape in enumerate(shapes))
    function = lambda x, k: [lax.conv_general_dilated(x, k, **rest)]
    assert_same(jax.jit(jax.vmap(natively(function)))(x, k), jax.vmap(function)(x, k), TOLERANCE[dtype])


@pytest.mark.parametrize("function", [jnp.convolve, lambda x, y: jnp.correlate(x, y, mode="same"), jnp.polymul])
def test_derivatives_of_convolutions(function):
    x, y = array(9, 7), array(9, 4, seed=1)
    got = jax.jit(jax.vmap(gx.jacve(function, argnums=(0, 1), backend="native")))(x, y)
    assert_same(got, jax.vmap(jax.jacfwd(function, (0, 1)))(x, y))


def test_windows_in_the_padding_give_numbers():
    """They are zeros, and zero times infinity is NaN."""
    kernel = np.ones((1, 1, 2))
    function = lambda x: [lax.conv_general_dilated(x, kernel, (1,), ((4, 4),)) * jnp.inf]
    x = np.ones((3, 1, 1, 2))
    np.testing.assert_array_equal(jax.jit(jax.vmap(natively(function)))(x)[0], jax.vmap(function)(x)[0])


WINDOWS = {
    "plain": ((3, 2), (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1)),
    "padded": ((3, 2), (2, 1), ((1, 2), (0, 1)), (1, 1), (1, 1)),
    "dilated": ((2, 3), (1, 2), ((1, 0), (2, 2)), (2, 1), (2, 2)),
}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("operation", "start"), [(lax.add, 0.0), (lax.max, -np.inf), (lax.min, np.inf)])
@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name, operation, start, dtype):
    sizes, strides, padding, base, window = WINDOWS[name]
    x = np.random.default_rng(0).choice([np.nan, np.inf, 0.0, 1.5, -2.0, 0.3], (9, 7, 5), p=[0.05, 0.05] + [0.225] * 4)
    function = lambda x: [lax.reduce_window(x, dtype(start), operation, sizes, strides, padding, base, window)]
    x = x.astype(dtype)
    assert_same(jax.jit(jax.vmap(natively(function)))(x), jax.vmap(function)(x), TOLERANCE[dtype])


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x, k: lax.conv_general_dilated(x, k, (1,), "SAME", batch_group_count=2), "batches in groups"),
        (lambda x, k: lax.conv_general_dilated(x[:, :2], k, (1,), "SAME", preferred_element_type=np.float64), "types"),
        (lambda x, k: lax.reduce_window(x.astype(np.int32), 0, lax.add, (1, 1, 2), (1, 1, 1), "SAME"), "whole numbers"),
        (lambda x, k: lax.reduce_window(x, np.float32(0), lax.add, (1, 1, 9), (1, 1, 1), "VALID"), "without entries"),
    ],
)
def test_what_is_left_to_xla(function, reason):
    x, k = np.ones((3, 2, 2, 5), np.float32), np.ones((3, 2, 2, 3), np.float32)
    with pytest.raises(gx.NativeError, match=reason):
        jax.jit(jax.vmap(natively(lambda x, k: [function(x, k)])))(x, k)
