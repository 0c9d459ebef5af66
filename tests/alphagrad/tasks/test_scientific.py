"""The tasks from SciPy's fields: their Jacobians, and known values of the mathematics behind them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import linalg, signal, special

from alphagrad.tasks import MIDDLE, SCIENTIFIC, TASKS, UNSEEN, get, scientific_functions as functions

from ...graphax.comparing import assert_same
from .jacobians import by_elimination_and_by_jax


@pytest.mark.parametrize("task", SCIENTIFIC.values(), ids=SCIENTIFIC)
def test_the_jacobian_is_that_of_jax(task):
    got, want = by_elimination_and_by_jax(task.function, task.arguments(), task.argnums, jax.jacfwd)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(want))
    scale = max(float(jnp.max(jnp.abs(leaf))) for leaf in jax.tree.leaves(want))
    assert_same(jax.tree.map(lambda leaf: leaf / scale, got), jax.tree.map(lambda leaf: leaf / scale, want), 1e-11)


def test_names_are_new_and_found():
    assert len(SCIENTIFIC) >= 30
    assert SCIENTIFIC.keys().isdisjoint(TASKS | UNSEEN | MIDDLE)
    assert get("lorenz") is SCIENTIFIC["Lorenz"]


def arguments(name):
    return SCIENTIFIC[name].arguments()


def test_the_gradient_of_rosenbrock_is_its_gradient():
    (x,) = arguments("RosenbrockGradient")
    want = jax.grad(lambda x: jnp.sum((x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))(x)
    np.testing.assert_allclose(functions.rosenbrock_gradient(x), want, rtol=1e-12)


def test_filters_are_those_of_scipy():
    samples, first, second = arguments("BiquadCascade")
    want = samples
    for b0, b1, b2, a1, a2 in (first, second):
        want = signal.lfilter([b0, b1, b2], [1.0, a1, a2], want)
    np.testing.assert_allclose(functions.biquad_cascade(samples, first, second), want, rtol=1e-12)


def test_eigenvalues_are_those_of_scipy():
    (a, b, c), (d, e, f) = arguments("SymmetricEigenvalues")
    want = linalg.eigvalsh([[a, d, e], [d, b, f], [e, f, c]])
    got = functions.symmetric_eigenvalues(np.array([a, b, c]), np.array([d, e, f]))
    np.testing.assert_allclose(sorted(map(float, got)), want, rtol=1e-10)


def test_special_functions_are_those_of_scipy():
    k, angle = arguments("EllipticIntegrals")
    whole, part = functions.elliptic_integrals(jnp.asarray(k), jnp.asarray(angle))
    assert float(whole) == pytest.approx(special.ellipk(k**2), rel=1e-10)
    assert float(part) == pytest.approx(special.ellipkinc(angle, k**2), rel=1e-6)
    assert float(functions.stirling_log_beta(1.7, 2.4)) == pytest.approx(special.betaln(1.7, 2.4), rel=1e-5)


def test_kepler_s_equation_holds():
    x, y = functions.kepler_position(1.1, 0.4, 2.0)
    angle = np.arctan2(float(y) / (1 - 0.16) ** 0.5, float(x) + 0.8)
    assert angle - 0.4 * np.sin(angle) == pytest.approx(1.1, rel=1e-10)


def test_gram_schmidt_is_orthonormal():
    rows = np.stack(functions.gram_schmidt(*arguments("GramSchmidt")))
    np.testing.assert_allclose(rows @ rows.T, np.eye(3), atol=1e-12)


def test_a_process_has_the_likelihood_of_a_normal_distribution():
    x, y, length, noise = arguments("GaussianProcess")
    kernel = np.exp(-0.5 * ((x[:, None] - x) / length) ** 2) + noise * np.eye(4)
    want = -0.5 * y @ np.linalg.solve(kernel, y) - 0.5 * np.linalg.slogdet(kernel)[1]
    assert float(functions.gaussian_process(x, y, length, noise)) == pytest.approx(want, rel=1e-10)
