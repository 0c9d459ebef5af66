"""Threads of a GPU that share the steps of a loop. The same code runs on this machine, with one call per thread."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from graphax import _jax
from graphax.backend import _Flat
from graphax.hessian_modes import ThreadHessianPasses
from graphax.modes import FORWARD, REVERSE, ThreadPasses
from graphax.native.sharing import shared_loop, work_of_a_thread
from graphax.native.unroll import unroll
from graphax.pipeline import Pipeline
from graphax.trace import Request

from ..comparing import array, assert_same
from .warps import on_warps


def long_function(x, y):
    """A function from two arrays to three, with so many steps that its passes are a loop."""
    for step in range(30):
        x = jnp.sin(x) * y[step % 3] + 0.1 * jnp.roll(x, 1)
    return x, jnp.outer(y, x[:2]), x.sum()


def passes_of(function, argnums, name, args):
    traced = Pipeline(function, args, {}, Request(argnums)).traced
    return ThreadPasses(traced, 0, name)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [FORWARD, REVERSE])
@pytest.mark.parametrize("batch", [1, 3, 9])
def test_a_thread_for_each_pass(batch, name, dtype):
    """Rows and columns of several arrays, in warps whose threads belong to several points, and in last warps."""
    args = [x.astype(dtype) for x in (array(batch, 5, seed=1), array(batch, 3, seed=2))]
    passes = lambda *args: passes_of(long_function, (0, 1), name, args)
    shared = on_warps(lambda *args: passes(*args)(*args), args, (True, True), shared_loop)
    outputs, rows = jax.vmap(lambda x, y, found: passes(x, y).finished(found))(*args, shared)
    tolerance = 1e-4 if dtype == np.float32 else 1e-11
    assert_same(outputs, list(jax.vmap(long_function)(*args)), tolerance)
    assert_same(rows, [list(row) for row in jax.vmap(jax.jacfwd(long_function, (0, 1)))(*args)], tolerance)


@pytest.mark.parametrize("batch", [1, 7])
def test_hessians_by_threads(batch):
    function = lambda x, y: jnp.sum(long_function(x, y)[0] ** 2)
    args = [array(batch, 5, seed=1), array(batch, 3, seed=2)]
    passes = lambda *args: ThreadHessianPasses(Pipeline(function, args, {}, Request((0, 1))).traced)
    shared = on_warps(lambda *args: passes(*args)(*args), args, (True, True), shared_loop)
    _, (gradient,), (rows,) = jax.vmap(lambda x, y, found: passes(x, y).finished(found))(*args, shared)
    assert_same(gradient, list(jax.vmap(jax.grad(function, (0, 1)))(*args)), 1e-10)
    assert_same(rows, [list(row) for row in jax.vmap(jax.hessian(function, (0, 1)))(*args)], 1e-10)


def mapped(x, w):
    """Independent steps whose results go to two arrays, one of them transposed, and a result outside the loop."""
    rows = lax.map(lambda row: jnp.tanh(row * jnp.arange(50.0) + x.sum()), w)
    return rows, rows[:, :3].T, jnp.cumsum(x)


def test_a_loop_of_the_function_itself():
    x, w = array(5, 4, seed=3), array(6, 50, seed=4)
    keep_one = lambda x, w: [mapped(x, w)[0], mapped(x, w)[2]]
    got = on_warps(keep_one, [x, w], (True, False), shared_loop)
    assert_same(got, jax.vmap(keep_one, (0, None))(x, w), 1e-12)


def statements(function, *args):
    return unroll(_Flat.of(lambda *args: jax.tree.leaves(function(*args)), args).program)


def carried(x):
    return lax.scan(lambda c, row: (c * jnp.sin(row).sum(), c + row), jnp.ones(()), jnp.outer(x, jnp.arange(40.0)))[1]


def read_again(x):
    rows = lax.map(lambda row: jnp.sin(row * jnp.arange(50.0)), x)
    return jnp.cumsum(rows, axis=0)


@pytest.mark.parametrize("function", [jnp.sin, carried, read_again])
def test_loops_that_cannot_be_shared(function):
    """There is no loop, its steps depend on each other, or its results are read again."""
    assert shared_loop(statements(function, array(6))) is None


def test_the_work_of_a_thread():
    function = lambda x: lax.map(lambda row: jnp.sin(row * jnp.arange(50.0)), x)
    program = statements(function, array(6))
    loop = shared_loop(program)
    assert loop.length == 6
    together, alone = work_of_a_thread(program, loop), work_of_a_thread(program, None)
    assert (together.threads, alone.threads) == (6, 1)
    assert together.code == alone.code
    assert alone.executed / 6.5 < together.executed < alone.executed / 4
    assert (alone.stored, together.stored) == (300, 50)


@pytest.mark.parametrize(("axes", "expected"), [((), 1), ((4,), 4), ((4, 3), 12)])
def test_points_are_counted_through_nested_maps(axes, expected):
    seen = []

    def function(x):
        seen.append(_jax.points_of([x]))
        return x

    for _ in axes:
        function = jax.vmap(function)
    function(jnp.ones((*axes, 2)))
    assert seen == [expected]
