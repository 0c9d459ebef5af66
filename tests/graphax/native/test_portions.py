"""Warps of a GPU that compute portions of the results. The same code runs on this machine, with one call per thread."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings

import graphax as gx
from graphax import _jax
from graphax.errors import NativeError
from graphax.gpu_times import LONGEST_CODE, ThreadWork
from graphax.native.portions import Portions, divided, part, portions
from graphax.native.statements import ELSEWHERE
from graphax.native.unroll import unroll

from ..comparing import array, assert_same
from ..programs import programs
from .warps import on_warps


def statements(function, *args):
    return unroll(_jax.open_program(lambda *args: jax.tree.leaves(function(*args)), args)[0])


def way(number):
    """The ``number``-th way to divide a program."""

    def divide(program):
        found = list(divided(program))[number]
        return Portions(tuple(part(program, each.elements) for each in found), ThreadWork(1, 1, 1, 1))

    return divide


def tables(x, y):
    """Different constants in different portions, a quotient, truth values, and entries at computed indices."""
    first, second = jnp.linspace(1.0, 2.0, 40), jnp.cos(jnp.arange(36.0))
    number = jnp.int32(jnp.abs(x[0]) * 7) % 30
    return first[number] * x, jnp.outer(x, y) / (2 + y), second[number + 1] * y, x[:, None] > y, jnp.zeros((2, 3))


@pytest.mark.parametrize("number", [0, -1])
@pytest.mark.parametrize("batch", [1, 32, 41])
def test_portions_together_store_everything(batch, number):
    args = [array(batch, 5, seed=1), array(batch, 3, seed=2)]
    got = on_warps(tables, args, (True, True), way(number))
    assert_same(got, jax.vmap(tables)(*args), 1e-12)


@pytest.mark.parametrize("number", [0, -1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_jacobians_in_portions(dtype, number):
    function = lambda x: jnp.tanh(x[:, None] * jnp.sin(x) + 1.0).sum(1)
    x = array(33, 6).astype(dtype)
    jacobian = gx.jacve(function, backend="xla")
    got = on_warps(lambda x: [jacobian(x)], [x], [True], way(number))
    assert_same(got, [jax.vmap(jax.jacfwd(function))(x)], 1e-5 if dtype == np.float32 else 1e-12)


@settings(max_examples=8, deadline=None)
@given(programs(steps=4, inputs=2))
def test_random_programs(program):
    points = [np.stack([x, 1.1 * x]) for x in program.arguments()]
    flat = lambda *xs: jax.tree.leaves(program(*xs))

    def last_way(program):
        assume(any(divided(program)))
        return way(-1)(program)

    try:
        got = on_warps(flat, points, [True] * len(points), last_way)
    except NativeError:
        # A program may index by what it computes.
        assume(False)
    assert_same(got, jax.vmap(flat)(*points))


def test_every_element_is_in_one_portion():
    program = statements(tables, array(5), array(3, seed=2))
    for portions_of_way in divided(program):
        found = sorted(element for portion in portions_of_way for element in portion.elements)
        assert found == [(result, n) for result, numbers in enumerate(program.results) for n in range(len(numbers))]


def test_portions_are_shorter_and_what_they_leave_out_costs_nothing():
    function = jax.jacfwd(lambda x: jnp.tanh(x[:, None] * jnp.sin(x) + 1.0).sum(1))
    program = statements(function, array(8))
    found = portions(program, 1)
    assert 1 < len(found.parts) == found.work.warps
    assert found.work.code < len(program.statements)
    assert found.work.code + found.work.others <= LONGEST_CODE
    left_out = [sum(part.statements[n].operation == ELSEWHERE for n in part.results[0]) for part in found.parts]
    assert sum(left_out) == (len(found.parts) - 1) * len(program.results[0])


def test_a_sum_that_everything_depends_on_is_not_divided():
    def function(x):
        for _ in range(300):
            x = jnp.sin(x) * x[0]
        return x * jnp.prod(x)

    assert portions(statements(function, array(3)), 1) is None
