"""The places of known indices, compared with the entries that JAX reads and writes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from graphax import _jax
from graphax.indexing import OUTSIDE, places_of_gather, places_of_scatter, places_of_slice

TABLE = np.arange(60).reshape(3, 4, 5)
GATHERS = {
    "rows": lambda x: x[jnp.array([2, 0, -1])],
    "pairs": lambda x: x[jnp.array([[2], [0]]), :, jnp.array([[1, 3]])],
    "clipped": lambda x: x.at[:, jnp.array([7, -9])].get(mode="clip"),
    "filled": lambda x: x.at[jnp.array([5, 1]), jnp.array([0, 9])].get(mode="fill", fill_value=-1),
    "windows": lambda x: jax.vmap(lambda s: jax.lax.dynamic_slice(x, (s, 0, s), (2, 4, 2)))(jnp.array([0, 1, 9])),
    "side by side": lambda x: jax.vmap(lambda row, n: row[n])(x, jnp.array([3, 0, 2])),
}


def equation(function, name):
    """The first equation of a program with this primitive, its operands and its result."""
    program = _jax.trace(lambda x: [function(x)], TABLE)
    values = program.environment([jnp.asarray(TABLE)])
    _jax.run(program.equations, values)
    found = next(eqn for eqn in program.equations if eqn.primitive.name == name)
    return found, [np.asarray(x) for x in _jax.read_all(values, found.invars)], values[found.outvars[0]]


@pytest.mark.parametrize("function", GATHERS.values(), ids=GATHERS)
def test_gathers_read_what_jax_reads(function):
    eqn, (source, indices), result = equation(function, "gather")
    places = places_of_gather(eqn, source.shape, indices)
    np.testing.assert_array_equal(np.append(source.ravel(), -1)[places], result)


SCATTERS = {
    "rows": lambda x: x.at[jnp.array([2, 0])].set(-7),
    "columns": lambda x: x.at[:, jnp.array([3, 1])].set(-7),
    "dropped": lambda x: x.at[jnp.array([1, 8]), jnp.array([0, 2])].set(-7, mode="drop"),
    "clipped": lambda x: x.at[jnp.array([8]), 1].set(-7, mode="clip"),
    "side by side": lambda x: jax.vmap(lambda row, n: row.at[n].set(-7))(x, jnp.array([3, 0, 2])),
}


@pytest.mark.parametrize("function", SCATTERS.values(), ids=SCATTERS)
def test_scatters_write_where_jax_writes(function):
    eqn, (source, indices, updates), result = equation(function, "scatter")
    places = places_of_scatter(eqn, source.shape, indices, updates.shape)
    written = source.flatten()
    written[places[places != OUTSIDE]] = -7
    np.testing.assert_array_equal(written.reshape(source.shape), result)


@pytest.mark.parametrize("starts", [(0, 0, 0), (1, 2, 3), (-4, 9, 1)])
def test_slices_are_moved_inside(starts):
    places = places_of_slice(TABLE.shape, starts, (2, 3, 2))
    np.testing.assert_array_equal(TABLE.ravel()[places], jax.lax.dynamic_slice(TABLE, starts, (2, 3, 2)))
