import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np
import pytest

import graphax as gx
from graphax import _jax
from graphax.solvers import SmallLeastSquares, SmallLU

from ..comparing import array, assert_same

LIKE = {SmallLU: lx.LU(), SmallLeastSquares: lx.QR()}


def solved(solver, matrix, right, throw=False):
    return lx.linear_solve(lx.MatrixLinearOperator(matrix), right, solver, throw=throw)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize(
    ("kind", "shape"),
    [(SmallLU, (4, 4)), (SmallLU, (13, 13)), (SmallLeastSquares, (5, 3)), (SmallLeastSquares, (3, 5))],
)
def test_it_solves_as_lineax_does(kind, shape, dtype):
    matrices, rights = array(6, *shape).astype(dtype), array(6, shape[0], seed=1).astype(dtype)
    got, want = (jax.vmap(lambda a, b, s=s: solved(s, a, b).value)(matrices, rights) for s in (kind(), LIKE[kind]))
    assert_same(got, want, 2e-3 if dtype == np.float32 else 1e-9)


@pytest.mark.parametrize(
    ("kind", "shape"), [(SmallLU, (3, 3)), (SmallLeastSquares, (3, 3)), (SmallLeastSquares, (4, 3))]
)
@pytest.mark.parametrize("way", [jax.jacfwd, jax.jacrev])
def test_its_derivatives(kind, shape, way):
    args = array(*shape) + 2 * np.eye(*shape), array(shape[0], seed=1)
    got, want = (way(lambda a, b, s=s: solved(s, a, b).value, (0, 1))(*args) for s in (kind(), LIKE[kind]))
    assert_same(got, want, 1e-8)


def test_ill_conditioned_systems_are_not_left_to_the_normal_equations():
    matrix = np.array([[1.0, 1.0], [1e-9, 0.0], [0.0, 1e-9]])
    got = jax.vmap(lambda a: solved(SmallLeastSquares(), a, jnp.array([2.0, 1e-9, 1e-9])).value)(matrix[None])
    np.testing.assert_allclose(got[0], [1.0, 1.0], rtol=1e-6)


@pytest.mark.parametrize("kind", [SmallLU, SmallLeastSquares])
@pytest.mark.parametrize(
    ("matrix", "right", "result"),
    [
        (np.zeros((3, 3)), np.ones(3), lx.RESULTS.singular),
        (np.full((3, 3), np.nan), np.ones(3), lx.RESULTS.singular),
        (np.zeros((3, 3)), np.array([1.0, np.nan, 1.0]), lx.RESULTS.nonfinite_input),
        (np.eye(3), np.ones(3), lx.RESULTS.successful),
    ],
    ids=["singular", "not a number", "bad right side", "identity"],
)
def test_results_are_those_of_lineax(kind, matrix, right, result):
    assert solved(kind(), matrix, right).result == result
    assert solved(LIKE[kind], matrix, right).result == result


def test_what_is_not_square_is_named():
    with pytest.raises(ValueError, match="3 equations for 2 unknowns; use SmallLeastSquares"):
        solved(SmallLU(), np.ones((3, 2)), np.ones(3))


def test_systems_too_large_for_kernels():
    matrix, right = array(70, 70) + 9 * np.eye(70), array(70)
    np.testing.assert_allclose(solved(SmallLU(), matrix, right).value, np.linalg.solve(matrix, right), rtol=1e-9)


def test_operators_that_are_functions_of_pytrees():
    weights = array(2, 3)

    def residual(x, args):
        return {"a": weights @ x["c"] * x["d"], "b": x["c"][0] - args * x["d"]}

    point = {"c": jnp.arange(1.0, 4.0), "d": jnp.array(2.0)}
    operator = lx.JacobianLinearOperator(residual, point, 0.5)
    right = {"a": jnp.ones(2), "b": jnp.array(3.0)}
    got, want = (lx.linear_solve(operator, right, s).value for s in (SmallLeastSquares(), lx.QR()))
    assert_same(got, want, 1e-9)


def test_it_stays_in_the_kernel_around_it():
    def step(matrix, right):
        return right - solved(SmallLU(), matrix, right).value

    program = jax.make_jaxpr(jax.vmap(gx.kernel(step)))(array(5, 3, 3), array(5, 3))
    names = {eqn.primitive.name for eqn in _jax.all_equations(program.jaxpr.eqns)}
    assert names <= {"jit", "pjit", "graphax_kernel"}


def test_solvers_are_pytrees():
    assert eqx.tree_equal(SmallLU(), SmallLU())
    assert hash(SmallLU()) == hash(SmallLU())
    got = eqx.filter_jit(solved)(SmallLU(), np.eye(3), np.ones(3)).value
    np.testing.assert_array_equal(got, np.ones(3))


@pytest.mark.parametrize("wrap", [lambda f: jax.vmap(jax.vmap(f)), lambda f: jax.vmap(jax.jit(jax.vmap(f)))])
def test_nested_maps(wrap):
    matrices, rights = array(2, 3, 4, 4), array(2, 3, 4, seed=1)
    got = wrap(lambda a, b: solved(SmallLU(), a, b).value)(matrices, rights)
    assert_same(got, jnp.linalg.solve(matrices, rights[..., None])[..., 0], 1e-9)
