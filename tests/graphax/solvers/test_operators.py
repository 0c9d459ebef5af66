import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np
import pytest

import graphax as gx
from graphax.solvers import BlockLinearOperator

from ..comparing import assert_same

X = np.linspace(1, 2, 6)
FUNCTIONS = {
    "diagonal": (lambda x: x**2, X.reshape(2, 3), lx.Diagonal),
    "tridiagonal": (lambda x: 3 * x * x + jnp.pad(x[1:], (0, 1)) + jnp.pad(x[:-1] ** 2, (1, 0)), X, lx.Tridiagonal),
    "lower": (lambda x: 2 * x + jnp.pad(x[:-2] ** 2, (2, 0)), X, lx.Triangular),
    "upper": (lambda x: 2 * x + jnp.pad(x[2:] ** 2, (0, 2)), X, lx.Triangular),
    "dense": (lambda x: jnp.sin(x) * x.sum() + x, X, lx.LU),
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in ("upper", "lower") else []) for name in FUNCTIONS]
)
def test_blocks_as_operators(name):
    function, x, solver = FUNCTIONS[name]
    operator = BlockLinearOperator(gx.jacve(function, sparse=True)(x))
    dense = jax.jacfwd(function)(x).reshape(6, 6)
    assert isinstance(lx.AutoLinearSolver(well_posed=None).select_solver(operator), solver)
    assert_same(operator.as_matrix(), dense, 1e-12)
    assert_same(operator.T.as_matrix(), dense.T, 1e-12)
    assert_same(operator.mv(x).ravel(), dense @ x.ravel(), 1e-12)
    assert_same(lx.diagonal(operator), jnp.diagonal(dense), 1e-12)
    assert_same(jax.jit(lambda o: lx.conj(o).as_matrix())(operator), dense, 1e-12)
    solution = lx.linear_solve(operator, jnp.ones_like(x)).value
    assert_same(solution.ravel(), jnp.linalg.solve(dense, jnp.ones(6)), 1e-9)


@pytest.mark.parametrize("name", ["tridiagonal", "dense"])
def test_solves_are_differentiated(name):
    function, x, _ = FUNCTIONS[name]

    def ours(x):
        return lx.linear_solve(BlockLinearOperator(gx.jacve(function, sparse=True)(x)), jnp.ones(6)).value.sum()

    want = jax.grad(lambda x: jnp.linalg.solve(jax.jacfwd(function)(x), jnp.ones(6)).sum())(x)
    assert_same(jax.jit(jax.grad(ours))(x), want, 1e-9)


def test_blocks_that_are_not_square():
    operator = BlockLinearOperator(gx.jacve(lambda x: x[:2] * x[2], sparse=True)(X[:4]))
    assert (operator.out_size(), operator.in_size()) == (2, 4)
    assert not lx.is_diagonal(operator)


def test_tags_say_what_cannot_be_seen():
    function, x, _ = FUNCTIONS["dense"]
    block = gx.jacve(function, sparse=True)(x)
    operator = BlockLinearOperator(block, lx.positive_semidefinite_tag)
    assert lx.is_positive_semidefinite(operator)
    assert lx.is_symmetric(operator.T)
    assert not lx.is_symmetric(BlockLinearOperator(block))


def test_other_things_are_refused():
    with pytest.raises(TypeError, match="takes a JacobianBlock, but got ndarray"):
        BlockLinearOperator(np.eye(2))
