"""Comparing Jacobians with those of JAX."""

import jax
import numpy as np


def assert_same(got, want, tolerance=1e-9):
    """Same tree, shapes, dtypes and values."""
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(
            np.asarray(a, np.complex128), np.asarray(b, np.complex128), rtol=tolerance, atol=tolerance
        )


def array(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1.0, 1.0, shape)
