"""Loops, branches and solves keep entries apart that they do not mix."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import graphax as gx

from .comparing import array, assert_same


def recurrence(x):
    return lax.scan(lambda carry, y: (jnp.sin(carry) * y, carry * y), x[0] + 1.0, x)


def counted_loop(x):
    return lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) + x * i, x)


def doubled_until_large(x):
    return lax.while_loop(lambda c: jnp.max(jnp.abs(c)) < 10, lambda c: 2 * c, x)


def two_carries(x):
    def step(carry, _):
        a, b = carry
        return (b, jnp.cos(a)), a

    return lax.scan(step, (x, 2.0 * x), None, length=4)


def linear_system(x):
    return jnp.linalg.solve(jnp.outer(x, x) + 2 * jnp.eye(x.size), x)


CASES = {
    "scan over scalars": (recurrence, (4,), ["vi[|i]", "vij[i|j]"]),
    "scan over a batch": (jax.vmap(recurrence), (3, 4), ["vij[i|i,j]", "vijk[i,j|i,k]"]),
    "scan of vectors": (recurrence, (4, 3), ["vij[i|j,i]", "vijk[i,j|k,j]"]),
    "scan with two carries": (two_carries, (3,), ["vi[i|i]", "vi[i|i]", "vij[i,j|j]"]),
    "scan in reverse": (lambda x: lax.scan(lambda c, y: (c * y, c), 1.0, x, reverse=True)[1], (3,), ["vij[i|j]"]),
    "map": (lambda x: lax.map(lambda row: jnp.outer(row, row), x), (3, 2), ["vijkl[i,j,k|i,l]"]),
    "loop with a counter": (counted_loop, (3, 2), ["vij[i,j|i,j]"]),
    "while": (doubled_until_large, (3,), ["vi[i|i]"]),
    "while over a batch": (jax.vmap(doubled_until_large), (4, 2), ["vij[i,j|i,j]"]),
    "cond": (lambda x: lax.cond(x[0] > 9, jnp.sin, lambda y: 2 * y, x), (3,), ["vi[i|i]"]),
    "cond of unlike branches": (lambda x: lax.cond(x[0] > 9, lambda y: y[::-1], jnp.cos, x), (3,), ["vij[i|j]"]),
    "cond with a closed-over value": (lambda x: lax.cond(True, lambda y: y * x, lambda y: y, x), (3,), ["vi[i|i]"]),
    "solve": (linear_system, (3,), ["vij[i|j]"]),
    "solve for a batch": (jax.vmap(linear_system), (4, 3), ["vijk[i,j|i,k]"]),
    "inverses": (lambda x: jnp.linalg.inv(x + 3 * jnp.eye(2)), (4, 2, 2), ["vijklm[i,j,k|i,l,m]"]),
    "associative scan": (lambda x: lax.associative_scan(jnp.multiply, x), (5, 2), ["vijk[i,j|k@4:-1,j]"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_pattern(name):
    function, shape, structures = CASES[name]
    x = array(*shape)
    graph = gx.build_graph(function, x)
    found = [str(graph.plan().results[output, 0]) for output in graph.outputs]
    assert found == structures
    assert_same(gx.jacve(function)(x), jax.jacfwd(function)(x))


def test_reverse_only_functions_inside_a_loop():
    @jax.custom_vjp
    def cube(x):
        return x**3

    cube.defvjp(lambda x: (x**3, x), lambda x, ct: (3 * x**2 * ct,))

    def function(x):
        return lax.scan(lambda c, y: (cube(c) * y, c), x[0], x)

    x = array(3)
    assert_same(gx.jacve(function)(x), jax.jacrev(function)(x))


def test_a_scalar_of_many_steps_is_differentiated_backwards():
    """Forward, the loop would be applied to 40,000 tangents at once; backward, to one."""

    def function(x):
        return lax.scan(lambda c, y: (jnp.sin(c + y), None), 0.0, x)[0]

    x = array(40_000)
    jaxpr = str(jax.make_jaxpr(gx.jacve(function))(x))
    assert "40000,40000" not in jaxpr
    assert_same(gx.jacve(function)(x), jax.grad(function)(x))


def test_values_that_a_pattern_repeats_are_read_once():
    """In a solve with a matrix that depends on a sum of the input, the values do not vary along all labels."""

    def function(x):
        scale = 2 + jnp.sum(x)
        return lax.custom_linear_solve(lambda v: scale * v, jnp.sin(x), lambda _, v: v / scale, symmetric=True)

    x = array(3)
    assert_same(gx.jacve(function)(x), jax.jacfwd(function)(x))


def test_an_axis_of_one_beside_one_of_two_digits():
    """A loop of one step over flattened arrays has as many axes as digits, but they are not the same."""
    x = array(2, 2, 3)
    function = lambda x: lax.map(lambda c: c.ravel(), x, batch_size=2)
    for backend in ("xla", "native"):
        assert_same(jax.jit(gx.jacve(function, backend=backend))(x), jax.jacfwd(function)(x))
