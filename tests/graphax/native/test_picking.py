import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import graphax as gx

from ..comparing import array, assert_same
from .running import natively

# Functions of a 4×5 array and a whole number.
CASES = {
    "an entry": lambda x, i: [x[0, i]],
    "a row": lambda x, i: [x[i]],
    "a column": lambda x, i: [x[:, i]],
    "two": lambda x, i: [x[i, i + 1]],
    "several": lambda x, i: [x[jnp.stack([i, -i, i + 1])]],
    "a window": lambda x, i: [lax.dynamic_slice(x, (i, 1), (2, 3))],
    "without": lambda x, i: [x.at[i].get(mode="fill", fill_value=-7.0)],
    "clipped": lambda x, i: [x.at[i].get(mode="clip")],
    "an update": lambda x, i: [lax.dynamic_update_slice(x, jnp.ones((2, 2)), (i, i - 1))],
    "unsigned": lambda x, i: [lax.dynamic_slice(x, (abs(i).astype(jnp.uint32), jnp.uint32(1)), (2, 3))],
    "an entry set": lambda x, i: [x.at[i, 1].set(7.0)],
    "a row set": lambda x, i: [x.at[i].set(x[0])],
    "two set": lambda x, i: [x.at[i, i + 1].set(7.0, mode="clip")],
    "of several axes": lambda x, i: [jnp.take(x, jnp.stack([jnp.stack([i, 0 * i]), jnp.stack([i + 1, i])]), axis=1)],
}


@pytest.mark.parametrize("name", CASES)
def test_entries_by_indices_known_only_at_run_time(name):
    x, i = array(9, 4, 5, seed=1), np.arange(-4, 5)
    assert_same(jax.jit(jax.vmap(natively(CASES[name])))(x, i), jax.vmap(CASES[name])(x, i), 1e-12)


@pytest.mark.parametrize("mode", ["promise_in_bounds", "drop"])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, i, mode: x.at[i].add(x[:3] * 2, mode=mode),
        lambda x, i, mode: x.at[:, i].multiply(x[:, 1:4], mode=mode),
        lambda x, i, mode: x.at[i].max(0.3, mode=mode),
        lambda x, i, mode: jax.vmap(lambda row, v: row.at[i].add(v, mode=mode))(x, x[:, :3]),
    ],
)
def test_numbers_are_combined_by_indices_known_only_at_run_time(function, mode):
    x, i = array(9, 4, 5, seed=1), np.random.default_rng(0).integers(-2, 4 if mode[0] == "p" else 7, (9, 3))
    way = lambda x, i: [function(x, i, mode)]
    assert_same(jax.jit(jax.vmap(natively(way)))(x, i), jax.vmap(way)(x, i), 1e-12)


INDEX = np.array([2, 0, 2, 9])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.at[INDEX].add(2.0 * jnp.arange(4.0)[:, None]),
        lambda x: x.at[1:, INDEX[:3]].multiply(x[0, 0]),
        lambda x: x.at[2:].divide(3.0),
        lambda x: jnp.zeros((60, 4, 5)).at[:, 1:].add(x[None, 1:] * jnp.arange(60.0)[:, None, None]),
        lambda x: x.at[INDEX, 1].min(-0.5),
        lambda x: x.at[INDEX, 1].subtract(x[0, 2]),
        lambda x: x.at[0].max(x[1], mode="drop"),
        lambda x: x.at[np.zeros(0, int)].add(1.0),
    ],
)
def test_updates_that_are_combined(function):
    x = array(9, 4, 5, seed=1)
    assert_same(jax.jit(jax.vmap(natively(lambda x: [function(x)])))(x), [jax.vmap(function)(x)], 1e-12)


@pytest.mark.parametrize("function", [jnp.sort, jnp.argsort, lambda x: jnp.sort(x, axis=0), jnp.median])
def test_sorting(function):
    x = np.where(np.random.default_rng(0).random((9, 3, 5)) < 0.1, np.nan, array(9, 3, 5, seed=2).round(1))
    got = jax.jit(jax.vmap(natively(lambda x: [function(x)])))(x)[0]
    np.testing.assert_array_equal(got, jax.vmap(function)(x))


SPECIAL = [np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf, 1.0, 2.0, -3.0]


@pytest.mark.parametrize("keys", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_sorting_by_several_keys(dtype, keys):
    choices = [0, 1, 2] if dtype is np.int32 else SPECIAL
    rng = np.random.default_rng(0)
    arrays = [rng.choice(choices, (9, 3, 5)).astype(dtype), rng.integers(0, 2, (9, 3, 5)), rng.random((9, 3, 5))]
    function = lambda *columns: list(lax.sort(columns, dimension=1, num_keys=keys))
    got, want = jax.jit(jax.vmap(natively(function)))(*arrays), jax.vmap(function)(*arrays)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("count", [1, 3, 5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_largest_entries(dtype, count):
    """Entries follow JAX's total order, in which zeros and NaN have signs. The first of equal entries comes first."""
    choices = [0, 1, 2, -3] if dtype is np.int32 else SPECIAL
    x = np.random.default_rng(0).choice(choices, (43, 3, 5)).astype(dtype)
    function = lambda x: list(lax.top_k(x, count))
    got, want = jax.jit(jax.vmap(natively(function)))(x), jax.vmap(function)(x)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(np.signbit(a), np.signbit(b))


def test_derivatives_of_sorting_are_kernels():
    x = array(9, 5, seed=2)
    for function in (jnp.sort, jnp.median, lambda x: jnp.quantile(x, 0.3), lambda x: lax.top_k(x, 2)[0]):
        got = jax.jit(jax.vmap(gx.jacve(function, backend="native")))(x)
        assert_same(got, jax.vmap(jax.jacfwd(function))(x))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32])
def test_whole_numbers_are_divided_as_by_xla(dtype):
    """This includes division by zero, and quotients that are too large."""
    numbers = np.array([0, 1, -1, 2, 3, -3, 7, -7, np.iinfo(np.int32).min, np.iinfo(np.int32).max]).astype(dtype)
    x, y = (v.ravel() for v in np.meshgrid(numbers, numbers))
    function = lambda x, y: [lax.div(x, y), lax.rem(x, y)]
    for got, want in zip(jax.jit(jax.vmap(natively(function)))(x, y), function(x, y), strict=True):
        np.testing.assert_array_equal(got, want)


def test_pivots_as_a_permutation():
    pivots = np.array([[2, 3, 2, 3], [0, 1, 2, 3], [3, 3, 3, 3], [1, 2, 3, 3]], np.int32)

    def permutation(pivots):
        return [lax.linalg.lu_pivots_to_permutation(pivots, 4)]

    assert_same(jax.jit(jax.vmap(natively(permutation)))(pivots), jax.vmap(permutation)(pivots), 0)


@pytest.mark.parametrize(
    ("update", "dtype"),
    [(name, dtype) for name in ("add", "subtract", "multiply", "min", "max", "set") for dtype in (np.int32, np.float64)]
    + [("min", bool), ("max", bool)],
)
def test_updates_by_indices_known_only_at_run_time(update, dtype):
    """Truth values are combined by logical operations."""
    x, numbers = (array(9, 4, seed=n).round(1) * 10 for n in (1, 2))
    x, numbers = ((v > 0 if dtype is bool else v).astype(dtype) for v in (x, numbers))
    indices = np.random.default_rng(3).integers(-1, 5, (9, 4))
    function = lambda x, i, u: getattr(x.at[i], update)(u)
    got = jax.jit(jax.vmap(natively(lambda *args: [function(*args)])))(x, indices, numbers)[0]
    np.testing.assert_array_equal(got, jax.vmap(function)(x, indices, numbers))
