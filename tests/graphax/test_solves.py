"""Linear solves as two vertices: the residual, and the solution."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import graphax as gx

from .comparing import array, assert_same

MATRIX = array(4, 4) + 4 * np.eye(4)


def with_vector(a, b):
    return jnp.linalg.solve(a, b)


def inverse(a, b):
    return jnp.linalg.inv(a) @ b


def newton_step(a, b):
    x = b[:, 0]
    return x - jnp.linalg.solve(a + jnp.diag(x * x), a @ x + x**3)


def stacked(a, b):
    return jnp.linalg.solve(jnp.stack([a, 2 * a + 1]), b)


def by_iterations(a, b):
    return jax.scipy.sparse.linalg.cg(a @ a.T + jnp.eye(4), b[:, 0])[0]


def without_transpose(a, b):
    def solve(product, side):
        return jnp.linalg.solve(jax.jacfwd(product)(side), side)

    return lax.custom_linear_solve(lambda v: a @ v + v * a[0, 0], b[:, 0], solve)


def of_a_tree(a, b):
    """Two solutions that depend on two right-hand sides."""

    def product(v):
        x, y = v
        return a @ x, a.T @ y + b[0, 1] * x

    def solve(_, sides):
        x = jnp.linalg.solve(lax.stop_gradient(a), sides[0])
        return x, jnp.linalg.solve(lax.stop_gradient(a).T, sides[1] - lax.stop_gradient(b)[0, 1] * x)

    return lax.custom_linear_solve(product, (b[:, 0], b[:, 1]), solve)


def in_a_loop(a, b):
    return lax.scan(lambda s, _: (jnp.linalg.solve(a + jnp.diag(s), s + b[:, 0]), s.sum()), b[:, 0], None, length=3)


def in_a_branch(a, b):
    return lax.cond(b[0, 0] > 9, lambda: b, lambda: jnp.linalg.solve(a * b[0, 0], b))


FUNCTIONS = [
    with_vector, inverse, newton_step, stacked, by_iterations, without_transpose, of_a_tree, in_a_loop, in_a_branch,
]  # fmt: skip


@pytest.mark.parametrize("order", ["auto", "fwd", "rev"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_jacobians(function, order):
    args = MATRIX, array(4, 3, seed=1)
    got = jax.jit(gx.jacve(function, (0, 1), order=order))(*args)
    assert_same(got, jax.jacfwd(function, (0, 1))(*args))


@pytest.mark.parametrize("function", [with_vector, inverse, newton_step, stacked, by_iterations, in_a_branch])
def test_derivatives_of_jacobians_pass_through_the_matrix_and_the_solution(function):
    args = MATRIX, array(4, 3, seed=1)
    want = jax.jit(jax.jacfwd(jax.jacfwd(function, (0, 1)), (0, 1)))(*args)
    assert_same(jax.jit(jax.jacfwd(gx.jacve(function, (0, 1), backend="xla"), (0, 1)))(*args), want)
    assert_same(jax.jit(gx.jacve(gx.jacve(function, (0, 1)), (0, 1)))(*args), want)


@pytest.mark.parametrize("order", ["auto", "rev", "markowitz"])
def test_hessians_take_a_solve_as_one_step(order):
    def likelihood(a, b):
        return jnp.sum(b * jnp.linalg.solve(a @ a.T, jnp.sin(b)))

    args = MATRIX, array(4, 3, seed=1)
    got = jax.jit(gx.hessve(likelihood, (0, 1), order=order))(*args)
    assert_same(got, jax.hessian(likelihood, (0, 1))(*args))


def test_an_order_of_the_graph_fits_its_hessian():
    def function(x):
        return jnp.sum(jnp.linalg.solve(MATRIX + jnp.outer(x, x), x) ** 2)

    x = array(4)
    graph = gx.build_graph(function, x)
    order = graph.order(graph.intermediates[::-1])
    assert_same(jax.jit(gx.hessve(function, order=order))(x), jax.hessian(function)(x))


def test_matrices_of_few_parameters_are_multiplied_by_the_solution_first():
    """Composing a block with three axes takes n³ products per parameter, and the residual takes n²."""
    n, parameters = 12, 2

    def function(p):
        return jnp.linalg.solve(array(n, n) + n * np.eye(n) + p[0] * array(n, n, seed=1), array(n) * p[1])

    cost = gx.build_graph(function, array(parameters), simplify=True).cost("auto")
    assert cost.multiplications <= 2 * parameters * n * n


def test_a_solve_by_a_known_matrix_is_one_vertex():
    graph = gx.build_graph(lambda b: 2 * jnp.linalg.solve(MATRIX, jnp.sin(b)), array(4))
    assert [v.name for v in graph.vertices.values()].count("custom_linear_solve") == 1


MANY_SYSTEMS = """
import jax, jax.numpy as jnp, numpy as np, graphax as gx

a, b = 15 * np.eye(30) + np.random.default_rng(0).uniform(size=(30, 30)), np.linspace(0, 1, 300 * 30).reshape(300, 30)
function = lambda b: jnp.linalg.solve(a + jnp.diag(b), b)
found = [jax.jit(jax.vmap(way(function)))(b) for way in (gx.jacve, jax.jacfwd)]
np.testing.assert_allclose(*found, rtol=1e-3, atol=1e-5)
"""


def test_many_systems_end():
    """XLA of JAX 0.10 waits forever for some batches of solves beside each other."""
    subprocess.run([sys.executable, "-c", MANY_SYSTEMS], check=True, timeout=120)
