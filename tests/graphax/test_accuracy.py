import jax
import jax.numpy as jnp
import numpy as np
import pytest

import graphax as gx
from graphax import GraphaxError
from graphax.accuracy import relative_error


def single(*values):
    return tuple(np.asarray(value, np.float32) for value in values)


@pytest.mark.parametrize("order", ["auto", "fwd", "rev", [2, 1, 3]])
def test_the_error_of_an_order_is_reported(order):
    def f(w, x):
        return jnp.tanh(w @ x) * jnp.sin(x[0])

    args = single(np.linspace(-1, 1, 12).reshape(3, 4), np.linspace(0.5, 1, 4))
    if isinstance(order, list):
        order = list(gx.build_graph(f, *args, argnums=(0, 1)).intermediates)[::-1]
    found = gx.explain(f, *args, order=order, argnums=(0, 1), accuracy=True)
    assert 0 <= found.accuracy.order < 1e-5
    assert 0 <= found.accuracy.reverse < 1e-5
    assert "Rounding at this point, in float32" in str(found)


def test_what_rounds_badly_has_a_larger_error():
    exact = gx.explain(jnp.square, *single(3.0), accuracy=True).accuracy
    # XLA would simplify the sum with a known number.
    rounded = gx.explain(lambda x, y: jnp.exp(x) * ((x + y) - y), *single(0.1, 1e6), accuracy=True).accuracy
    assert exact.order == 0
    assert rounded.order > 1e-3


def test_auxiliary_data_and_keywords_pass():
    def f(x, *, scale):
        return jnp.sin(x) * scale, {"scale": scale}

    found = gx.explain(f, *single([0.1, 0.2]), has_aux=True, accuracy=True, scale=np.float32(2))
    assert found.accuracy.order < 1e-6


def test_infinite_entries_are_no_error():
    found = gx.explain(lambda x: 1 / x + x * x, *single([0.0, 2.0]), accuracy=True)
    assert np.isfinite(found.accuracy.order)


def test_it_is_only_computed_on_request():
    found = gx.explain(jnp.sin, *single(1.0))
    assert found.accuracy is None
    assert "Rounding" not in str(found)


@pytest.mark.parametrize("args", [(np.float64(1.0),), (jax.ShapeDtypeStruct((), jnp.float32),)])
def test_only_numbers_in_single_precision_can_be_compared(args):
    with pytest.raises(GraphaxError, match="must be numbers in float32"):
        gx.explain(jnp.sin, *args, accuracy=True)


@pytest.mark.parametrize(
    ("got", "exact", "error"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([1.0, 2.5], [1.0, 2.0], 0.25),
        ([0.5], [0.0], 0.5),
        ([np.nan], [1.0], np.inf),
        ([7.0, 1.0], [np.inf, 1.0], np.inf),
        ([np.inf, 1.0], [np.inf, 1.0], 0.0),
        ([-np.inf], [np.inf], np.inf),
        ([np.nan, 1.5], [np.nan, 1.0], 0.5),
        ([], [], 0.0),
    ],
)
def test_relative_errors(got, exact, error):
    assert relative_error([np.zeros(1), np.array(got)], [np.zeros(1), np.array(exact)]) == error
