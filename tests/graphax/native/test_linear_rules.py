"""Small linear systems in kernels, compared with LAPACK."""

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
import pytest
from jax import lax

import graphax as gx
from graphax import _jax
from graphax.errors import NativeError
from graphax.native.unroll import unroll

from ..comparing import array, assert_same
from .running import natively


def definite(a):
    return a @ a.T + 0.1 * jnp.eye(len(a))


# Functions of a square matrix and a vector.
CASES = {
    "solve": lambda a, b: [jnp.linalg.solve(a, b)],
    "several right-hand sides": lambda a, b: [jnp.linalg.solve(a, jnp.outer(b, b[:2]))],
    "factors": lambda a, b: list(lax.linalg.lu(a)),
    "inverse": lambda a, b: [jnp.linalg.inv(a)],
    "determinant": lambda a, b: [jnp.linalg.det(a), *jnp.linalg.slogdet(a)],
    "Cholesky": lambda a, b: [jnp.linalg.cholesky(definite(a))],
    "by Cholesky": lambda a, b: [jsl.cho_solve(jsl.cho_factor(definite(a)), b)],
    "definite": lambda a, b: [jsl.solve(definite(a), b, assume_a="pos")],
    "QR": lambda a, b: list(jnp.linalg.qr(a)),
    "triangular": lambda a, b: [
        jsl.solve_triangular(a + 4 * jnp.eye(len(a)), b, lower=True),
        jsl.solve_triangular(a + 4 * jnp.eye(len(a)), b, trans=1),
        jsl.solve_triangular(a, b, lower=True, unit_diagonal=True),
    ],
    "from the right": lambda a, b: [
        lax.linalg.triangular_solve(a + 4 * jnp.eye(len(a)), jnp.outer(b[:2], b), left_side=False, lower=True)
    ],
    "factors that are solved with": lambda a, b: [
        jsl.lu_solve(jsl.lu_factor(a), b),
        jsl.lu_solve(jsl.lu_factor(a), b, trans=1),
        *jsl.lu(a),
    ],
    "backward": lambda a, b: list(jax.vjp(jnp.linalg.solve, a, b)[1](b)),
    "backward through factors": lambda a, b: [jax.jacrev(lambda a: jsl.lu_solve(jsl.lu_factor(a), b))(a)],
    "three diagonals": lambda a, b: [lax.linalg.tridiagonal_solve(a[0], b, a[-1], a.T)],
    "stacks": lambda a, b: [jnp.linalg.solve(jnp.stack([a, a.T, 2 * a]), jnp.stack([b, -b, b])[..., None])],
    "derivatives": lambda a, b: [jax.jacfwd(jnp.linalg.solve)(a, b), jax.jacrev(jnp.linalg.solve, 1)(a, b)],
    "second derivatives": lambda a, b: [jax.hessian(lambda v: jnp.sum(jnp.linalg.solve(a + jnp.outer(v, v), v)))(b)],
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_equal_to_lapack(name, size):
    if size > 3 and "derivatives" in name:
        pytest.skip("long to compile")
    a, b = array(9, size, size, seed=1), array(9, size, seed=2)
    function = CASES[name]
    if name in ("several right-hand sides", "from the right") and size == 1:
        pytest.skip("two of one")
    assert_same(jax.jit(jax.vmap(natively(function)))(a, b), jax.jit(jax.vmap(function))(a, b), 1e-7)


@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5)])
def test_qr_of_other_shapes(mode, shape):
    function = lambda a: list(jnp.linalg.qr(a, mode=mode))
    a = array(7, *shape, seed=3)
    a[1, :, 0] = 0
    a[2] = 0
    assert_same(jax.jit(jax.vmap(natively(function)))(a), jax.vmap(function)(a), 1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_qr_of_numbers_whose_squares_overflow_or_vanish(dtype):
    function, limits = lambda a: list(jnp.linalg.qr(a)), np.finfo(dtype)
    for scale in (limits.max / 100, limits.tiny * 1e6):
        a = (array(7, 4, 3, seed=3) * scale).astype(dtype)
        (q, r), (want_q, want_r) = jax.jit(jax.vmap(natively(function)))(a), jax.vmap(function)(a)
        np.testing.assert_allclose(q, want_q, atol=20 * limits.eps)
        np.testing.assert_allclose(r / scale, want_r / scale, atol=20 * limits.eps)


def test_exponential():
    a = array(5, 3, 3, seed=4) * np.array([0.01, 0.1, 1, 5, 20])[:, None, None]
    assert_same(jax.jit(jax.vmap(natively(lambda a: [jsl.expm(a)])))(a), [jax.vmap(jsl.expm)(a)], 1e-8)


@pytest.mark.parametrize("right", [np.array([1.0, 2.0, 3.0]), np.zeros(3)])
def test_singular_systems_have_the_same_answers(right):
    matrices = np.stack([
        np.zeros((3, 3)), [[1, 2, 3], [2, 4, 6], [1, 1, 1]], np.full((3, 3), np.nan), np.eye(3),
        np.where(np.eye(3), np.inf, 0),
    ])  # fmt: skip
    solve = lambda a: [jnp.linalg.solve(a, right)]
    got, want = jax.jit(jax.vmap(natively(solve)))(matrices)[0], jax.vmap(solve)(matrices)[0]
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(want))
    np.testing.assert_allclose(np.where(np.isfinite(got), got, 0), np.where(np.isfinite(want), want, 0), atol=1e-12)


def test_what_is_not_definite_has_no_factor():
    matrices = np.stack([np.eye(3), -np.eye(3), np.full((3, 3), np.nan), np.zeros((3, 3))])
    factor = lambda a: [jnp.linalg.cholesky(a)]
    assert_same(jax.jit(jax.vmap(natively(factor)))(matrices), jax.vmap(factor)(matrices), 1e-12)


@pytest.mark.parametrize("place", [(0, 0), (1, 1), (2, 0), (2, 2)])
@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_factors_of_nan_are_those_of_lapack(place, value):
    a = np.stack([np.eye(3) + 0.1] * 4)
    a[2:, *place] = value
    factor = lambda a: [lax.linalg.cholesky(a, symmetrize_input=False)]
    assert_same(jax.jit(jax.vmap(natively(factor)))(a), jax.vmap(factor)(a), 1e-12)


@pytest.mark.parametrize("places", [[(1, 0)], [(1, 2)], [(1, 0), (0, 1), (2, 0)], [(0, 1), (1, 1), (2, 1)]])
def test_three_diagonals_without_pivots_have_the_same_answers(places):
    """Rows with a zero on the diagonal are exchanged, if there is another row."""
    diagonals = np.stack([array(3, 4, seed=9)] * 3)
    diagonals[:, 1] += 2
    for place in places:
        diagonals[1:, *place] = 0
    solve = lambda d: [lax.linalg.tridiagonal_solve(*d, jnp.ones((4, 1)))]
    assert_same(jax.jit(jax.vmap(natively(solve)))(diagonals), jax.vmap(solve)(diagonals), 1e-12)


@pytest.mark.parametrize("shape", [(0, 0), (3, 0), (0, 3), (2, 0, 0), (0, 2, 2)])
def test_nothing_is_factored(shape):
    a = np.zeros((2, *shape))
    functions = [lambda a: list(jnp.linalg.qr(a)), lambda a: list(lax.linalg.lu(a))]
    if shape[-1] == shape[-2]:
        functions += [lambda a: [jnp.linalg.cholesky(a), jnp.linalg.inv(a), jnp.linalg.det(a)]]
    for function in functions:
        assert_same(jax.jit(jax.vmap(natively(function)))(a), jax.vmap(function)(a))


def test_no_points_and_other_shapes():
    solve = gx.kernel(jnp.linalg.solve, backend="native")
    assert jax.jit(jax.vmap(solve))(np.zeros((0, 3, 3)), np.zeros((0, 3))).shape == (0, 3)
    for a, b in ((np.ones((2, 3)), np.ones(2)), (np.ones((2, 2)), np.ones(3))):
        with pytest.raises((ValueError, TypeError)) as ours:
            solve(a, b)
        with pytest.raises((ValueError, TypeError)) as theirs:
            jnp.linalg.solve(a, b)
        assert type(ours.value) is type(theirs.value)


def test_solves_know_the_steps_of_their_factors():
    """Neither factors nor right-hand sides are permuted by index, and no permutation is sorted."""
    for function in (CASES["solve"], lambda a, b: [jax.vjp(jnp.linalg.solve, a, b)[1](b)[1]]):
        statements = unroll(_jax.open_program(function, (np.eye(4), np.ones(4)))[0]).statements
        assert sum(s.operation == "select" for s in statements) < 100


@pytest.mark.parametrize("kind", ["random", "graded", "nearly singular"])
def test_residuals_are_those_of_lapack(kind):
    a, b = array(400, 6, 6, seed=5), array(400, 6, seed=6)
    if kind == "graded":
        a *= 10.0 ** -np.arange(6)[:, None]
    if kind == "nearly singular":
        a[:, -1] = a[:, 0] + 1e-9 * a[:, -1]
    errors = []
    for solve in (jnp.linalg.solve, gx.kernel(jnp.linalg.solve, backend="native")):
        x = np.asarray(jax.jit(jax.vmap(solve))(a, b))
        missing = np.abs(np.einsum("pij,pj->pi", a, x) - b).max(1)
        errors.append(np.mean(missing / (np.abs(a).sum(2).max(1) * np.abs(x).max(1))))
    assert errors[1] < 4 * errors[0]


def test_larger_systems_are_kernels_on_request():
    a, b = array(3, 14, 14, seed=7), array(3, 14, seed=8)
    assert_same(
        jax.jit(jax.vmap(gx.kernel(jnp.linalg.solve, backend="native")))(a, b),
        jnp.linalg.solve(a, b[..., None])[..., 0],
        1e-8,
    )
    with pytest.raises(NativeError, match="left to LAPACK"):
        jax.jit(gx.kernel(jnp.linalg.solve, backend="native"))(np.eye(40), np.ones(40))
    assert_same(jax.jit(gx.kernel(jnp.linalg.solve))(np.eye(40), np.ones(40)), np.ones(40), 1e-12)
