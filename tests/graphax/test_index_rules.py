"""Entries picked, placed and moved by indices that are known only at run time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import graphax as gx

X, MATRIX, WIDE = (np.random.default_rng(0).random(shape) for shape in ((7,), (5, 3), (4, 6)))
MANY = np.array([3, 0, 0, 6, 2])
ONCE = np.array([3, 0, 1, 6, 2])
OUTSIDE = np.array([-1, 3, -7, 9, -12])
TABLE = np.arange(12).reshape(4, 3) % 6
ORDER = np.array([4, 1, 0, 6, 5, 2, 3])

# A function of an array and indices, its arguments, and the number of values that its Jacobian stores.
CASES = {
    "taken": (lambda x, i: jnp.sin(x)[i] * 2, X, MANY, 5),
    "taken first": (lambda x, i: jnp.sin(x[i]), X, MANY, 5),
    "differences": (lambda x, i: jnp.sin(x[i] - x[i[::-1]]), X, MANY, 10),
    "a graph": (lambda x, i: jnp.zeros(7).at[i].add(jnp.sin(x[i] - x[i[::-1]])), X, MANY, 10),
    "rows": (lambda x, i: jnp.cos(x[i]).sum(-1), MATRIX, MANY % 5, 15),
    "a table of indices": (lambda x, i: jnp.cos(x[i]) * 3, MATRIX, np.array([[0, 4, 1], [2, 2, 3]]), 18),
    "outside": (lambda x, i: jnp.sin(x[i]), X, OUTSIDE, 5),
    "filled": (lambda x, i: jnp.sin(x).at[i].get(mode="fill", fill_value=0.0), X, OUTSIDE, 5),
    "clipped": (lambda x, i: jnp.sin(x).at[i].get(mode="clip"), X, OUTSIDE, 5),
    "dropped": (lambda x, i: jnp.zeros(7).at[i].add(x[:5] ** 2, mode="drop"), X, OUTSIDE, 5),
    "subtracted": (lambda x, i: jnp.zeros(7).at[i].subtract(x[:5] ** 2, mode="drop"), X, OUTSIDE, 5),
    "set": (lambda x, i: (x**2).at[i].set(jnp.sin(x[:5])), X, ONCE, 12),
    "set twice": (lambda x, i: (x**2).at[i].set(jnp.sin(x[:5])), X, MANY, 12),
    "one": (lambda x, i: jnp.sin(x)[i] * x, X, np.int32(4), 14),
    "one outside": (lambda x, i: jnp.sin(x)[i] * x, X, np.int32(40), 14),
    "a slice": (lambda x, i: jnp.exp(lax.dynamic_slice(x**2, (i,), (3,))), X, np.int32(4), 3),
    "a slice moved inside": (lambda x, i: lax.dynamic_slice_in_dim(x**2, i, 2, 0), MATRIX, np.int8(9), 6),
    "a slice updated": (lambda x, i: lax.dynamic_update_slice(x**2, jnp.sin(x[:3]), (i,)), X, np.int32(4), 10),
    "along an axis": (lambda x, i: jnp.take_along_axis(jnp.sin(x), i, 1) ** 2, WIDE, TABLE, 12),
    "mapped": (lambda x, i: jax.vmap(lambda row, j: jnp.exp(row)[j])(x, i), WIDE, np.array([5, 0, 0, 3]), 4),
    "segments": (lambda x, i: jax.ops.segment_sum(jnp.sin(x), i, 4), X, ORDER % 4, 7),
    "twice": (lambda x, i: jnp.sin(x[i])[i[:3] % 5], X, MANY, 3),
    "of two arrays": (lambda x, i: jnp.concatenate([x**2, jnp.sin(x)])[i], X, np.array([3, 10, 13, 0, 10]), 10),
    "of a padded array": (lambda x, i: jnp.pad(x**2, 2)[i], X, np.array([3, 10, 1, 0, 10]), 5),
    "of an array turned about": (lambda x, i: jnp.sin(x)[::-1][i], X, MANY, 5),
    "of a permuted array": (lambda x, i: jnp.sin(x)[ORDER][i][np.array([2, 2, 0])], X, MANY, 3),
    "of a flattened array": (lambda x, i: jnp.sin(x).reshape(-1)[i], MATRIX, np.array([3, 10, 13, 0, 10]), 5),
    "of a folded array": (lambda x, i: jnp.sin(x).reshape(2, 12)[i], WIDE, np.array([1, 0, 1]), 36),
    "sorted": (lambda x, i: jnp.sort(jnp.sin(9 * x)) * i, X, np.int32(2), 7),
    "rows sorted": (lambda x, i: jnp.sort(jnp.sin(9 * x), -1) * i, WIDE, np.int32(2), 24),
    "the largest": (lambda x, i: (x * x)[jnp.argmax(x)] * i, X, np.int32(2), 1),
    "before a matrix": (lambda x, i: jnp.arange(15.0).reshape(3, 5) @ jnp.sin(x)[i], X, MANY, 15),
    "summed": (lambda x, i: (x[i] ** 2).sum(), X, MANY, 5),
    "windows": (lambda x, i: jax.vmap(lambda k: lax.dynamic_slice(jnp.sin(x), (k,), (3,)))(i), X, MANY, 15),
    "masked": (lambda x, i: jnp.where(x > 0.5, jnp.sqrt(x - 0.5), 0.0)[i], X, MANY, 5),
    "masked and added": (
        lambda x, i: jnp.zeros(4).at[i].add(jnp.where(x > 0.5, jnp.sqrt(x - 0.5), 0.0)),
        X,
        ORDER % 4,
        7,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_indices_that_are_known_only_at_run_time(name):
    function, x, indices, _ = CASES[name]
    indices = jnp.asarray(indices)
    want = jax.jit(jax.jacfwd(function))(x, indices)
    for order in ("fwd", "rev", "markowitz"):
        np.testing.assert_allclose(jax.jit(gx.jacve(function, order=order))(x, indices), want, atol=1e-12)


@pytest.mark.parametrize("index", [9, -9, [9], [9, -9], [[9], [-9]], [9, 2]])
@pytest.mark.parametrize("x", [X, MATRIX], ids=["vector", "matrix"])
@pytest.mark.parametrize("order", ["fwd", "rev"])
def test_known_indices_outside_of_the_array(index, x, order):
    index = np.array(index)
    function = lambda x: (
        jnp.sin(x).at[index].get(mode="fill", fill_value=0.5),
        jnp.sin(x).at[index].set(x.sum(), mode="drop"),
        jnp.sin(x).at[index].add(x[0] ** 2, mode="drop"),
    )
    for got, want in zip(gx.jacve(function, order=order)(x), jax.jacfwd(function)(x), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_one_number_for_each_entry_that_is_picked(name):
    function, x, indices, stored = CASES[name]
    block = gx.jacve(function, sparse=True)(x, jnp.asarray(indices))
    assert block.structure.stored <= stored
    want = np.asarray(jax.jit(jax.jacfwd(function))(x, indices))
    flat = want.reshape(-1, x.size)
    np.testing.assert_allclose(block.to_bcoo().todense(), want, atol=1e-12)
    np.testing.assert_allclose(block.to_scipy().toarray(), flat, atol=1e-12)
    np.testing.assert_allclose(np.ravel(block.apply(x)), flat @ x.ravel(), atol=1e-12)
    np.testing.assert_allclose(block.transpose().todense().reshape(flat.T.shape), flat.T, atol=1e-12)
    rows, columns = block.indices()
    entries = np.zeros(flat.shape)
    entries[rows, columns] = block.data
    np.testing.assert_allclose(entries, flat, atol=1e-12)


@pytest.mark.parametrize("name", ["a graph", "outside", "one", "a slice updated", "of two arrays", "masked and added"])
def test_each_point_of_a_batch_has_its_own_indices(name):
    function, x, indices, _ = CASES[name]
    rng = np.random.default_rng(1)
    points, moved = rng.random((3, *x.shape)), np.stack([indices, (indices + 1) % 4, indices * 0])
    got = jax.jit(jax.vmap(gx.jacve(function)))(points, moved)
    np.testing.assert_allclose(got, jax.vmap(jax.jacfwd(function))(points, moved), atol=1e-12)


def test_indices_of_a_large_graph_are_not_multiplied_out():
    edges = jnp.asarray(np.random.default_rng(0).integers(0, 100_000, (2, 150_000)))

    def injections(angles, edges):
        flow = jnp.sin(angles[edges[0]] - angles[edges[1]])
        return jnp.zeros(100_000).at[edges[0]].add(flow).at[edges[1]].add(-flow)

    angles = jnp.asarray(np.random.default_rng(1).random(100_000))
    block = jax.jit(gx.jacve(injections, sparse=True))(angles, edges)
    assert block.structure.stored == 4 * 150_000
    _, want = jax.jvp(lambda x: injections(x, edges), (angles,), (angles,))
    np.testing.assert_allclose(block.apply(angles), want, atol=1e-10)
