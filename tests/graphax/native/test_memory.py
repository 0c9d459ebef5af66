import jax
import jax.numpy as jnp
import numpy as np
import pytest

from .running import natively


@pytest.mark.parametrize("points", [1, 2, 3, 7, 16, 37])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.bool_])
def test_neighbouring_elements_are_those_of_each_point(points, dtype):
    """This holds for any number of elements, and for any subset of them that is used."""
    rng, most = np.random.default_rng(points), 2 if dtype == np.bool_ else 99
    operands = [rng.integers(0, most, (points, size)).astype(dtype) for size in (1, 2, 3, 70, 9)]

    def shuffled(*arrays):
        return [*(jnp.flip(x) for x in arrays), arrays[-1][jnp.array([8, 2])], arrays[2][1:]]

    got, want = (jax.jit(jax.vmap(way(shuffled)))(*operands) for way in (natively, lambda f: f))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


def test_elements_in_loops_are_those_of_each_step():
    x = np.random.default_rng(0).normal(size=(19, 40, 3))
    sums = lambda x: [jax.lax.scan(lambda c, row: (c + row, c * row[0]), jnp.zeros(3), x)]
    for a, b in zip(*map(jax.tree.leaves, (jax.jit(jax.vmap(natively(sums)))(x), jax.vmap(sums)(x))), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
