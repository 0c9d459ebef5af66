"""The benchmark of divisions finds each way to divide a program by its name. Measuring needs a GPU."""

import divisions
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import ways

from graphax import _jax
from graphax.native import primitive
from graphax.native.portions import Portions
from graphax.native.sharing import SharedLoop
from graphax.native.unroll import unroll


def statements(function):
    return unroll(_jax.open_program(lambda x: [function(x)], [np.linspace(0.1, 0.9, 12)])[0])


def outer(x):
    return jnp.outer(jnp.sin(x), jnp.cos(x))


def mapped(x):
    for _ in range(40):
        x = jnp.sin(x) * x
    return jax.lax.map(lambda y: jnp.tanh(y * x) + sum(jnp.exp(n * x) for n in range(30)), x)


def test_divisions_by_name():
    assert divisions.chosen(divisions.ALONE, statements(outer)) is None
    assert isinstance(divisions.chosen("portions 0", statements(outer)), Portions)
    assert isinstance(divisions.chosen(divisions.LOOP, statements(mapped)), SharedLoop)


@pytest.mark.parametrize("name", [divisions.LOOP, "portions 9"])
def test_impossible_divisions(name):
    with pytest.raises(LookupError):
        divisions.chosen(name, statements(outer))


def test_a_forced_division_ends_with_its_context():
    usual, program = primitive.best_division, statements(outer)
    with divisions.forced("portions 0") as used:
        found = primitive.best_division(program, 64)
    assert used == [(found, program)]
    assert primitive.best_division is usual


def test_only_a_gpu_can_be_measured():
    with pytest.raises(SystemExit, match="none here"):
        divisions.main([])


@pytest.mark.parametrize("name", [ways.KERNEL, ways.XLA, *ways.PASSES])
def test_every_way_is_right_and_has_an_estimate(name):
    x = jnp.linspace(0.1, 0.9, 4)
    function = lambda x: jnp.sin(x) * jnp.sum(jnp.exp(x))
    got = jax.jit(ways.ways(function, 0)[name])(x)
    assert jnp.allclose(got, jax.jacfwd(function)(x))
    assert ways.estimated(function, 0, [x], 64)[name] > 0
