"""Branches are differentiated by elimination, and their structures are joined."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import graphax as gx

from .comparing import array, assert_same

MATRIX, TALL = array(4, 4, seed=1), array(3, 4, seed=2)
POINT = np.array([0.3, -0.8, 0.5, 0.9])


@jax.custom_jvp
def doubled(x):
    return x * x


doubled.defjvp(lambda primals, tangents: (doubled(*primals), 7 * tangents[0]))


@jax.custom_vjp
def cube(x):
    return x**3


cube.defvjp(lambda x: (x**3, x), lambda x, cotangent: (3 * x**2 * cotangent,))


def either(*branches):
    """For each branch, a function that takes that branch."""

    def function(x, number):
        return lax.switch(number + jnp.int32(x[0] > 5), branches, x)

    return function


def recurrence(x):
    return lax.scan(lambda carry, y: (jnp.sin(carry) * y, carry * y), x[0] + 1.0, x)[1]


def by_integers(x):
    return lax.cond(x[1] > 0, lambda v, n: v[n] * v, lambda v, n: v * n, x, jnp.argmax(x))


def several(x):
    return lax.cond(x[0] > 0, lambda a, b: (a * b, a[:2], 1), lambda a, b: (b, b[2:] * a[0], 2), x, x)[:2]


def in_a_loop(x):
    return lax.scan(lambda c, y: (lax.cond(y > 0, jnp.sin, lambda v: MATRIX @ v, c), y * c), x, x)


def two_operands(x, y):
    return lax.cond(x[0] > 0, lambda: TALL @ x + y, lambda: y[::-1] * x[0])


# The branches of a choice, and the structure that holds all of them.
CHOICES = {
    "diagonals": ((jnp.sin, lambda x: 2 * x), "vi[i|i]"),
    "scaled alike": ((lambda x: 3 * x, lambda x: 2 * x), "v[i|i]"),
    "a diagonal or zero": ((jnp.sin, jnp.zeros_like), "vi[i|i]"),
    "a diagonal, dense or zero": ((jnp.sin, lambda x: MATRIX @ x, jnp.zeros_like), "vij[i|j]"),
    "zero or reversed": ((jnp.zeros_like, lambda x: x[::-1]), "v[i|i@3:-1]"),
    "shapes that differ": ((lambda x: TALL @ x, lambda x: x[1:] * 2), "vij[i|j]"),
    "nested": ((lambda x: lax.cond(x[1] > 0, jnp.sin, jnp.cos, x), jnp.exp), "vi[i|i]"),
    "a loop or none": ((recurrence, jnp.sin), "vij[i|j]"),
    "a masked one": ((lambda x: jnp.where(x > 0, x, 0.0), jnp.tanh), "vi[i|i]"),
    "picked by a value": ((lambda x: x[jnp.argmax(x)] * x, jnp.sin), "vij[i|j]"),
    "custom derivatives": ((doubled, cube), "vi[i|i]"),
    "one branch": ((jnp.sin,), "vi[i|i]"),
}


@pytest.mark.parametrize("name", CHOICES)
def test_choices(name):
    branches, structure = CHOICES[name]
    function = either(*branches)
    graph = gx.build_graph(function, POINT, 0)
    assert str(graph.plan().results[graph.outputs[0], 0]) == structure
    for number, branch in enumerate(branches):
        want = (jax.jacrev if cube in branches else jax.jacfwd)(branch)(POINT)
        for order in ("fwd", "rev"):
            assert_same(jax.jit(gx.jacve(function, order=order))(POINT, number), want)
        assert_same(gx.jacve(function, sparse=True)(POINT, number).todense(), want)


CASES = {
    "integers": (by_integers, (POINT,)),
    "several results of one operand": (several, (POINT,)),
    "several operands": (two_operands, (POINT, array(3))),
    "after and before others": (lambda x: jnp.cumsum(several(jnp.exp(x))[0]) * x, (POINT,)),
    "in a loop": (in_a_loop, (POINT,)),
    "nothing of a branch moves": (lambda x: lax.cond(x[0] > 0, lambda v: jnp.ones(3), lambda v: v[:3] * v[1], x),
                                  (POINT,)),
    "a matrix": (lambda m: lax.cond(m[0, 0] > 9, lambda v: v.T @ v, lambda v: v[:2].T @ v[1:], m), (TALL,)),
    "an empty array": (lambda x: lax.cond(x[0] > 0, lambda v: (v[:0], v), lambda v: (v[:0] * 2, -v), x)[1], (POINT,)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("sign", [1, -1])
def test_cases(name, sign):
    function, args = CASES[name]
    numbers, args = tuple(range(len(args))), tuple(sign * arg for arg in args)
    want = jax.jacfwd(function, numbers)(*args)
    for order in ("fwd", "rev", "auto"):
        assert_same(jax.jit(gx.jacve(function, numbers, order=order))(*args), want)


@pytest.mark.parametrize("name", ["a diagonal, dense or zero", "nested", "a loop or none"])
def test_choices_that_differ_from_point_to_point(name):
    function = either(*CHOICES[name][0])
    points, numbers = array(5, 4), np.arange(5) % 3
    want = jax.vmap(jax.jacfwd(function))(points, numbers)
    for backend in ("auto", "xla"):
        assert_same(jax.jit(jax.vmap(gx.jacve(function, backend=backend)))(points, numbers), want)
    mapped = jax.vmap(function)
    assert_same(gx.jacve(mapped)(points, numbers), jax.jacfwd(mapped)(points, numbers))


@pytest.mark.parametrize("number", [1])
def test_second_derivatives(number):
    function = either(jnp.sin, lambda x: MATRIX @ (x * x), lambda x: lax.cond(x[1] > 0, recurrence, jnp.exp, x))
    want = jax.jacfwd(jax.jacfwd(function))(POINT, number)
    for outer in (gx.jacve, jax.jacfwd, jax.jacrev):
        assert_same(jax.jit(outer(gx.jacve(function)))(POINT, number), want)
    assert_same(gx.jacve(jax.jacrev(function))(POINT, number), want)


@pytest.mark.parametrize("backend", ["xla", "native"])
@pytest.mark.parametrize("order", ["fwd", "rev"])
def test_branches_that_are_not_taken_may_be_singular(order, backend):
    """As in `jax.jacfwd`, the derivative of a branch that is not taken has no effect, even if it is not finite."""
    roots = lambda branch: lambda x: lax.cond(x[1] > 0, branch, lambda v: MATRIX @ v, jnp.sqrt(x))
    point = np.array([0.0, 1.0, 2.0, 3.0])
    for branch in (jnp.zeros_like, lambda v: jnp.where(v > 0, v, 0.0)):
        function = roots(branch)
        got, want = gx.jacve(function, order=order, backend=backend)(point), jax.jacfwd(function)(point)
        np.testing.assert_allclose(got, want)
    safe = lambda x: lax.cond(x[0] > 0, jnp.sqrt, lambda v: v * v, x)
    points = np.stack([POINT, -POINT])
    got, want = (jax.vmap(way(safe))(points) for way in (gx.jacve, jax.jacfwd))
    np.testing.assert_allclose(np.diagonal(got, axis1=1, axis2=2), np.diagonal(want, axis1=1, axis2=2))


def test_values_come_with_the_blocks():
    function = lambda x: lax.cond(x[0] > 0, lambda v: jnp.sin(v) * v, jnp.exp, x)
    value, jacobian = gx.value_and_jacve(function)(POINT)
    assert_same((value, jacobian), (function(POINT), jax.jacfwd(function)(POINT)))
    conds = str(jax.make_jaxpr(gx.value_and_jacve(function))(POINT)).count("cond[")
    assert conds == 1


def test_a_batch_stays_apart():
    function = lambda x: lax.cond(
        x[0, 0] > 0, jax.vmap(lambda row: jnp.outer(row, row)), lambda v: v[:, None] * v[:, :, None], x
    )
    block = gx.jacve(function, sparse=True)(array(50, 3))
    assert block.structure.stored <= 50 * 27
    assert_same(block.todense(), jax.jacfwd(function)(array(50, 3)))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: lax.cond(x[0] > 0, lambda v: jnp.real(v * (1 + 2j)), jnp.sin, x),
        lambda x: jnp.abs(lax.cond(x[0] > 0, lambda v: v * (1 + 2j), lambda v: v + 0j, x + 1j)),
        lambda x: lax.cond(x[0] > 0, lambda v: (jax.debug.callback(lambda: None), jnp.sin(v))[1], jnp.cos, x),
    ],
    ids=["complex inside", "complex results", "effects"],
)
def test_fallbacks(function):
    for point in (POINT, -POINT):
        assert_same(gx.jacve(function)(point), jax.jacfwd(function)(point))
