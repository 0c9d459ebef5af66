import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from graphax import _jax
from graphax.by_numpy import known_results

from .comparing import array

FUNCTIONS = {
    "arithmetic": lambda x: (x + 2.0) * -x / (x**2 - 3.0) + jnp.square(x) + abs(x) + x**-3,
    "elementary": lambda x: jnp.sin(x) + jnp.exp(jnp.cos(x)) * jnp.tanh(x) + jnp.log(jnp.sqrt(x + 3.0)) + jnp.tan(x),
    "powers": lambda x: (x + 2.0) ** 1.5 + (x + 2.0) ** x,
    "choices": lambda x: jnp.where(x > 0.5, jnp.maximum(x, 0.7), jnp.clip(x, -0.1, 0.2)) * (x != 0.5),
    "reductions": lambda x: jnp.stack([x.sum(1), x.max(1), x.min(1)]) + jnp.cumsum(x, 0)[1].mean(),
    "products": lambda x: (x @ x.T) @ jnp.einsum("bij,bkj->bik", x[None], x[None] + 1.0)[0],
    "moves": lambda x: jnp.flip(x.T.reshape(2, -1), 1)[:, 1::2].T[..., None] + lax.split(x, (1, 2), 0)[1][0, 0],
    "padding": lambda x: lax.pad(x, 7.0, [(1, -1, 2), (-1, 2, 1)]),
    "gathers": lambda x: x[np.array([2, 0, 2]), np.array([1, 3, 0])] + x[:, 1],
    "scatters": lambda x: x.at[np.array([0, 2, 0]), 1].add(x[:, 0]).at[1, np.array([3, 0])].set(5.0),
    "outside": lambda x: (
        x.at[np.array([9, 1])].add(1.0, mode="drop").at[np.array([7])].get(mode="fill", fill_value=3.0)
    ),
    "identities": lambda x: jnp.eye(4, dtype=x.dtype) * jnp.arange(4) + jnp.full((), 2, x.dtype),
    "infinities": lambda x: jnp.stack([x / 0.0, 0.0 * x / 0.0, jnp.maximum(x, jnp.nan)]),
}


def program(function, *args):
    return _jax.trace(lambda *a: [function(*a)], *args)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers_are_those_of_jax(name, dtype):
    with jax.enable_x64(dtype == np.float64):
        x = jnp.asarray(array(3, 4), dtype)
        (got,), want = known_results(program(FUNCTIONS[name], x), [x]), FUNCTIONS[name](x)
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(got, want, rtol=100 * np.finfo(dtype).eps, atol=10 * np.finfo(dtype).eps)


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda x: lax.erf(x), id="operation that NumPy lacks"),
        pytest.param(lambda x: (1e30 * x).astype(np.int32), id="numbers out of range"),
        pytest.param(lambda x: lax.complex(x, x), id="complex numbers"),
        pytest.param(lambda x: jnp.outer(jnp.full(1 << 10, x[0, 0]), jnp.ones(1 << 10)).sum(), id="large arrays"),
        pytest.param(lambda x: lax.fori_loop(0, 3, lambda _, x: 2 * x, x), id="loop"),
    ],
)
def test_other_operations_are_left_to_xla(function):
    x = array(3, 4)
    assert known_results(program(function, x), [x]) is None


def test_effects_are_left_to_xla():
    def function(x):
        jax.debug.callback(lambda: None)
        return 2 * x

    assert known_results(program(function, array(3)), [array(3)]) is None


def test_products_are_summed_in_the_type_of_the_result():
    def function(x):
        return lax.dot_general(x, x, (((1,), (1,)), ((), ())), preferred_element_type=np.int32)

    x = np.full((2, 3), 100, np.int8)
    (got,) = known_results(program(function, x), [x])
    assert (got.dtype, got.tolist()) == (np.int32, [[30_000, 30_000], [30_000, 30_000]])
