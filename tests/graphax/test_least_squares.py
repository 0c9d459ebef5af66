import jax
import jax.numpy as jnp
import numpy as np
import pytest

import graphax as gx

from .comparing import array, assert_same


def reprojection(parameters, seen):
    """A point in a camera with distortion."""
    camera, point = parameters["camera"], parameters["point"]
    angle, shift, (focus, first, second) = camera[:3], camera[3:6], camera[6:]
    turned = point + jnp.cross(angle, point) + 0.5 * jnp.cross(angle, jnp.cross(angle, point)) + shift
    flat = turned[:2] / turned[2]
    radius = flat @ flat
    return {"pixel": focus * (1 + radius * (first + radius * second)) * flat - seen, "size": 0.1 * camera[:3]}


POINT = {"camera": 0.1 * array(9, seed=1), "point": array(3, seed=2) + np.array([0, 0, 4.0])}
SEEN = np.array([0.3, -0.2])


def expected(parameters, seen, weights):
    flat, unravel = jax.flatten_util.ravel_pytree(parameters)
    residuals = lambda v: jax.flatten_util.ravel_pytree(reprojection(unravel(v), seen))[0]
    value, jacobian = residuals(flat), jax.jacfwd(residuals)(flat)
    return jacobian.T @ (weights[:, None] * jacobian), jacobian.T @ (weights * value)


WEIGHTS = {
    "none": (None, np.ones(5)),
    "a number": (2.5, np.full(5, 2.5)),
    "arrays": ({"pixel": np.array([1.0, 2.0]), "size": 0.5}, np.array([1, 2, 0.5, 0.5, 0.5])),
}


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("backend", ["auto", "native", "xla"])
def test_normal_equations(name, backend):
    weights, numbers = WEIGHTS[name]
    found = gx.gauss_newton(reprojection, backend=backend)(POINT, SEEN, weights=weights)
    matrix, gradient = expected(POINT, SEEN, numbers)
    assert_same(found.matrix, matrix, 1e-10)
    assert_same(found.gradient, gradient, 1e-10)
    assert_same(found.value, reprojection(POINT, SEEN), 1e-12)
    np.testing.assert_array_equal(found.matrix, found.matrix.T)


def test_mapped_over_points():
    several = jax.tree.map(lambda x: x * (1 + 0.05 * array(7, *x.shape, seed=3)), POINT)
    found = jax.vmap(gx.gauss_newton(reprojection), in_axes=(0, None))(several, SEEN)
    want = jax.vmap(lambda p: expected(p, SEEN, jnp.ones(5)))(several)
    assert_same((found.matrix, found.gradient), want, 1e-9)


def test_steps_lead_to_the_minimum():
    def residuals(x):
        return jnp.stack([10 * (x[1] - x[0] ** 2), 1 - x[0]])

    x = jnp.array([-1.2, 1.0])
    for _ in range(5):
        found = gx.gauss_newton(residuals)(x)
        x = x - jnp.linalg.solve(found.matrix, found.gradient)
    assert_same(x, np.ones(2), 1e-9)


@pytest.mark.parametrize(
    ("weights", "message"),
    [(np.ones(7), "weights must be one number, or arrays"), ({"pixel": 1.0}, "weights must be one number, or arrays")],
)
def test_weights_of_another_shape_are_refused(weights, message):
    with pytest.raises(gx.GraphaxError, match=message):
        gx.gauss_newton(reprojection)(POINT, SEEN, weights=weights)


def test_complex_residuals_are_refused():
    with pytest.raises((gx.GraphaxError, TypeError), match="real"):
        gx.gauss_newton(lambda x: x * 1j)(jnp.ones(2))


OBSERVED = {
    "none": None,
    "a number": 2.5,
    "arrays": {"pixel": 1 + array(6, 2, seed=5) ** 2, "size": np.full((6, 1), 0.5)},
}


@pytest.mark.parametrize("name", OBSERVED)
@pytest.mark.parametrize("backend", ["auto", "native", "xla"])
def test_sums_over_observations(name, backend):
    seen, weights = np.moveaxis(SEEN + array(6, 2, seed=4), 0, 1), OBSERVED[name]
    all_at_once = gx.gauss_newton(lambda p: jax.vmap(lambda s: reprojection(p, s), in_axes=1)(seen))
    found = gx.gauss_newton(reprojection, in_axes=(1,), backend=backend)(POINT, seen, weights=weights)
    assert_same(found, all_at_once(POINT, weights=weights), 1e-10)
    np.testing.assert_array_equal(found.matrix, found.matrix.T)


def test_sums_over_observations_of_many_points():
    several = jax.tree.map(lambda x: x * (1 + 0.05 * array(7, *x.shape, seed=3)), POINT)
    seen, scale = SEEN + array(7, 20, 2, seed=4), 1 + array(7, seed=6) ** 2
    residuals = lambda p, s, scale: jax.tree.map(lambda r: scale * r, reprojection(p, s))
    found = jax.vmap(gx.gauss_newton(residuals, in_axes=(0, None), backend="native"))(several, seen, scale)
    want = jax.vmap(gx.gauss_newton(residuals, in_axes=(0, None), backend="xla"))(several, seen, scale)
    assert_same(found, want, 1e-9)


@pytest.mark.parametrize("in_axes", [(), (None,), (0, 0)])
def test_axes_that_do_not_fit_are_refused(in_axes):
    with pytest.raises(gx.GraphaxError, match="at least one axis"):
        gx.gauss_newton(reprojection, in_axes=in_axes)(POINT, SEEN)
