"""Derivatives carried forward through loops that end by a condition."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import graphax as gx

from .comparing import array, assert_same

POINT, MATRIX = np.array([0.7, 1.4, 0.9, 1.1]), 0.3 * array(4, 4, seed=1)


def newton(a):
    """Square roots by Newton's method. The carry also has an integer and a truth value."""

    def step(carry):
        x, count, _ = carry
        new = x - (x * x - a) / (2 * x)
        return new, count + 1, jnp.max(jnp.abs(new - x)) > 1e-12

    return lax.while_loop(lambda carry: carry[2] & (carry[1] < 40), step, (a + 1.0, 0, True))[0]


def fixed_point(b, matrix=MATRIX):
    """A fixed-point iteration from a constant start."""
    residual = lambda x: jnp.max(jnp.abs(x - jnp.tanh(matrix @ x + b)))
    return lax.while_loop(lambda x: residual(x) > 1e-11, lambda x: jnp.tanh(matrix @ x + b), jnp.zeros(4))


def counted(x):
    return lax.fori_loop(0, jnp.int32(4 * x[0]), lambda n, c: jnp.sin(c) * x[n] + x, x)


def exchanged(x):
    """A loop whose arrays change places in every step."""
    return lax.while_loop(lambda c: c[2] < 3, lambda c: (c[1], jnp.cos(c[0]), c[2] + 1), (x, 2 * x, 0))[:2]


def with_a_loop_inside(x):
    def step(carry):
        a, b = carry
        a = a + lax.scan(lambda d, y: (jnp.sin(d) + y, None), a, jnp.stack([x, 2 * x]))[0] ** 2
        return a, b * a[0]

    return lax.while_loop(lambda carry: carry[0][0] < 3, step, (x, jnp.ones(3)))


def in_a_loop(x):
    return lax.scan(lambda c, y: (newton(c + y), fixed_point(c * y)), x, jnp.stack([x, 2 * x]))


def nested(x):
    inner = lambda y: lax.while_loop(lambda c: jnp.sum(c * c) > 1, lambda c: 0.7 * jnp.sin(c) * x, y)
    return lax.while_loop(lambda c: c[1] < 3, lambda c: (inner(c[0] + x), c[1] + 1), (x * x, 0))[0]


def with_branches(x):
    choice = lambda c: lax.cond(c[0] > 1, lambda v: MATRIX @ v, lambda v: v + x, c)
    return lax.while_loop(lambda c: c[1] < 3, lambda c: (choice(c[0]), c[1] + 1), (x, 0))[0]


def judged_by_an_argument(x):
    return lax.while_loop(lambda c: c[0] < 5 * x[1], lambda c: c + x[0] ** 2, x)


CASES = {
    "newton": (newton, "vi[i|i]"),
    "a fixed point": (fixed_point, "vij[i|j]"),
    "a fixed point of a matrix": (lambda x: fixed_point(x, MATRIX * x[0]) * x, "vij[i|j]"),
    "a loss": (lambda x: jnp.sum(fixed_point(jnp.sin(x)) ** 2), "vi[|i]"),
    "no step": (lambda x: lax.while_loop(lambda c: c[0] > 9, lambda c: MATRIX @ c, jnp.sin(x))[:3], "vij[i|j]"),
    "as often as a value says": (counted, "vij[i|j]"),
    "places exchanged": (exchanged, "vi[i|i]"),
    "in a loop": (in_a_loop, "vi[i|i]"),
    "with a loop inside": (with_a_loop_inside, "vi[i|i]"),
    "nested": (nested, "vi[i|i]"),
    "with branches": (with_branches, "vij[i|j]"),
    "judged by an argument": (judged_by_an_argument, "vij[i|j]"),
    "in a branch": (lambda x: lax.cond(x[0] > 9, jnp.cos, newton, x), "vi[i|i]"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_cases(name):
    function, structure = CASES[name]
    graph = gx.build_graph(function, POINT)
    assert str(graph.plan().results[graph.outputs[0], 0]) == structure
    want = jax.jacfwd(function)(POINT)
    for order in ("fwd", "rev"):
        assert_same(jax.jit(gx.jacve(function, order=order))(POINT), want)
    sparse = gx.jacve(function, sparse=True)(POINT)
    assert_same(jax.tree.map(lambda b: b.todense(), sparse, is_leaf=lambda b: isinstance(b, gx.JacobianBlock)), want)


@pytest.mark.parametrize("name", ["newton", "a fixed point", "as often as a value says", "nested", "in a loop"])
def test_points_end_when_they_like(name):
    function, _ = CASES[name]
    points = np.stack([POINT, POINT[::-1], 0.6 * POINT])
    assert_same(jax.jit(jax.vmap(gx.jacve(function)))(points), jax.vmap(jax.jacfwd(function))(points))
    mapped = jax.vmap(function)
    assert_same(gx.jacve(mapped)(points), jax.jacfwd(mapped)(points))


def test_points_that_have_ended_may_be_singular():
    """Further steps of such a point would divide by zero. JAX selects its earlier value."""
    function = lambda x: lax.while_loop(lambda c: c > 0.5, lambda c: jnp.sqrt(c - 0.5), x)
    points = np.array([0.5, 0.9, 5.0])
    want = jax.vmap(jax.jacfwd(function))(points)
    assert np.all(np.isfinite(want))
    assert_same(jax.vmap(gx.jacve(function))(points), want)
    got, want = (np.diagonal(way(jax.vmap(function))(points)) for way in (gx.jacve, jax.jacfwd))
    np.testing.assert_allclose(got, want)


def test_a_batch_stays_apart():
    points = np.tile(POINT, (20, 1))
    assert gx.jacve(jax.vmap(newton), sparse=True)(points).structure.stored == 80
    assert gx.jacve(jax.vmap(fixed_point), sparse=True)(points).structure.stored == 20 * 4 * 4


@pytest.mark.parametrize("function", [newton, fixed_point])
def test_second_derivatives(function):
    want = jax.jacfwd(jax.jacfwd(function))(POINT)
    for outer in (gx.jacve, jax.jacfwd):
        assert_same(jax.jit(outer(gx.jacve(function)))(POINT), want)


def test_reverse_mode_is_refused_as_in_jax():
    total = lambda way: lambda x: jnp.sum(way(newton)(x))
    messages = []
    for way in (gx.jacve, jax.jacfwd):
        with pytest.raises(ValueError, match="Reverse-mode differentiation does not work") as error:
            jax.grad(total(way))(POINT)
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_few_inputs_are_carried_where_there_are_few():
    function = lambda s: fixed_point(s * jnp.arange(4.0))
    few = gx.build_graph(function, 0.5)
    assert few.cost("fwd").multiplications < few.cost("rev").multiplications
    assert_same(gx.jacve(function)(0.5), jax.jacfwd(function)(0.5))


@pytest.mark.parametrize("order", ["fwd", "rev"])
def test_explain_says_that_it_is_carried_forward(order):
    text = str(gx.explain(fixed_point, POINT, order=order))
    assert "forward  any (10 counted)" in text


def test_complex_numbers_fall_back():
    function = lambda x: jnp.abs(lax.while_loop(lambda c: jnp.abs(c[0]) < 4, lambda c: c * c + x, x + 1j))
    assert_same(gx.jacve(function)(POINT), jax.jacfwd(function)(POINT))
