import jax
import jax.numpy as jnp
import numpy as np
import pytest

import graphax as gx


def symmetric(kind, size, count=64):
    rng = np.random.default_rng(size)
    vectors, _ = np.linalg.qr(rng.normal(size=(count, size, size)))
    values = {
        "random": rng.normal(size=(count, size)),
        "graded": 10.0 ** -rng.uniform(0, 12, (count, size)),
        "nearly equal": 1 + 1e-9 * rng.normal(size=(count, size)),
        "repeated": np.round(rng.normal(size=(count, size))),
        "large": 1e150 * rng.normal(size=(count, size)),
    }[kind]
    a = np.einsum("pij,pj,pkj->pik", vectors, values, vectors)
    return (a + a.transpose(0, 2, 1)) / 2


@pytest.mark.parametrize("kind", ["random", "graded", "nearly equal", "repeated", "large"])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_eigenvalues_and_vectors_are_exact_to_rounding(kind, size):
    a = symmetric(kind, size)
    values, vectors = jax.jit(jax.vmap(gx.kernel(jnp.linalg.eigh, backend="native")))(a)
    scale = np.abs(a).max((1, 2))[:, None, None]
    rounding = 16 * np.finfo(float).eps
    assert (np.abs(a @ vectors - vectors * values[:, None]) <= rounding * scale).all()
    assert (np.abs(np.swapaxes(vectors, 1, 2) @ vectors - np.eye(size)) <= rounding).all()
    assert (np.diff(values) >= 0).all()
    np.testing.assert_allclose(values, np.linalg.eigvalsh(a), atol=(rounding * scale.max(0)).item())


@pytest.mark.parametrize("size", [2, 3])
def test_eigenvalues_are_differentiated(size):
    a = symmetric("random", size, 5)
    function = lambda a: jnp.linalg.eigvalsh(a) ** 2
    got = jax.jit(jax.vmap(gx.jacve(function, backend="native")))(a)
    np.testing.assert_allclose(got, jax.vmap(jax.jacfwd(function))(a), atol=1e-9)


def test_single_precision():
    a = symmetric("random", 3).astype(np.float32)
    values, vectors = jax.jit(jax.vmap(gx.kernel(jnp.linalg.eigh, backend="native")))(a)
    assert values.dtype == vectors.dtype == np.float32
    np.testing.assert_allclose(a @ vectors, vectors * values[:, None], atol=1e-5)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_spreads_to_all_results(bad):
    a = np.diag([bad, 1.0, 2.0])[None]
    for found in jax.jit(jax.vmap(gx.kernel(jnp.linalg.eigh, backend="native")))(a):
        assert np.isnan(found).all()


def test_larger_matrices_are_left_to_lapack():
    a = symmetric("random", 5, 2)
    with pytest.raises(gx.NativeError, match="5 by 5 are left to LAPACK"):
        jax.vmap(gx.kernel(jnp.linalg.eigh, backend="native"))(a)
    np.testing.assert_allclose(jax.vmap(gx.kernel(jnp.linalg.eigvalsh))(a), np.linalg.eigvalsh(a), atol=1e-12)
