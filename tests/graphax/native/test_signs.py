import jax
import jax.numpy as jnp
import numpy as np
import pytest

import graphax as gx


def symmetric(size, count=20):
    a = np.random.default_rng(size).normal(size=(count, size, size))
    return a + a.transpose(0, 2, 1)


def vectors(a):
    return jnp.linalg.eigh(a)[1]


def exponential(a):
    values, columns = jnp.linalg.eigh(a)
    return (columns * jnp.exp(values)) @ columns.T


EVEN = {
    "values": jnp.linalg.eigvalsh,
    "a function of a matrix": exponential,
    "a square": lambda a: (vectors(a)[:, 0] @ jnp.arange(1.0, len(a) + 1)) ** 2,
    "a fixed sign": lambda a: vectors(a) * jnp.sign(vectors(a)[0]),
    "in a loop": lambda a: jax.lax.fori_loop(0, 90, lambda _, c: a + 0.1 * exponential(-((c + c.T) ** 2)), a),
}
ODD = {
    "vectors": vectors,
    "a product with other numbers": lambda a: vectors(a)[:, 0] @ jnp.arange(1.0, len(a) + 1),
    "a product of two vectors": lambda a: vectors(a)[0, 0] * vectors(a)[0, 1],
    "a sum of both kinds": lambda a: vectors(a)[0, 0] + vectors(a)[0, 0] ** 2,
    "a choice": lambda a: jnp.where(vectors(a)[0, 0] > 0, a[0, 0] ** 2, a[1, 1]),
    "carried": lambda a: jax.lax.fori_loop(0, 90, lambda _, c: 0.5 * c + 0.1 * vectors(a + c + c.T), a),
    "of two steps": lambda a: jax.lax.scan(lambda c, _: (c + a, vectors(c)[0]), a, None, length=90)[1][:2].prod(0),
}


@pytest.mark.parametrize("name", EVEN)
@pytest.mark.parametrize("size", [2, 3])
def test_results_with_any_signs_are_computed_by_a_kernel(name, size):
    a, function = symmetric(size), EVEN[name]
    assert gx.explain(function, a[0]).backend.name == "native"
    got = jax.jit(jax.vmap(gx.jacve(function)))(a)
    np.testing.assert_allclose(got, jax.vmap(jax.jacfwd(function))(a), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("size", [2, 3])
def test_results_that_depend_on_signs_have_those_of_the_function(name, size):
    """Eigenvectors of a kernel had other signs than those of LAPACK, and so had their derivatives."""
    a, function = symmetric(size), ODD[name]
    explanation = gx.explain(function, a[0])
    assert explanation.backend.name.startswith("xla")
    assert "signs of eigenvectors" in explanation.backend.reason
    got = jax.jit(jax.vmap(gx.jacve(function)))(a)
    np.testing.assert_allclose(got, jax.vmap(jax.jacfwd(function))(a), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(jax.vmap(gx.kernel(function))(a), jax.vmap(function)(a), rtol=1e-8, atol=1e-8)
