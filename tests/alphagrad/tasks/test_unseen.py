"""The tasks of other fields: their Jacobians, and known values of the mathematics behind them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagrad.tasks import UNSEEN
from alphagrad.tasks.biology import hodgkin_huxley
from alphagrad.tasks.estimation import bundle_residual
from alphagrad.tasks.finance import sabr_volatility
from alphagrad.tasks.fluids import hllc_flux_2d
from alphagrad.tasks.mechanics import double_pendulum_step, neo_hookean_stress, orbit_acceleration

from ...graphax.comparing import assert_same
from .jacobians import by_elimination_and_by_jax


@pytest.mark.parametrize("task", UNSEEN.values(), ids=UNSEEN)
def test_the_jacobian_is_that_of_jax(task):
    got, want = by_elimination_and_by_jax(task.function, task.arguments(), task.argnums, jax.jacfwd)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(want))
    scale = max(float(jnp.max(jnp.abs(leaf))) for leaf in jax.tree.leaves(want))
    assert_same(jax.tree.map(lambda leaf: leaf / scale, got), jax.tree.map(lambda leaf: leaf / scale, want), 1e-12)


@pytest.mark.parametrize("task", UNSEEN.values(), ids=UNSEEN)
def test_every_argument_matters(task):
    graph = task.graph()
    sources = {source for _, source in graph.edges}
    assert set(graph.inputs) <= sources
    assert None not in graph.outputs


def test_a_neuron_at_rest_stays_at_rest():
    rates = hodgkin_huxley(-65.0, 0.0529, 0.5961, 0.3177, 0.0)
    np.testing.assert_allclose(rates, 0.0, atol=0.02)


def test_a_pendulum_keeps_its_energy():
    def energy(a, b, p, q):
        kinetic = p**2 + 0.5 * q**2 + p * q * jnp.cos(a - b)
        return kinetic - 9.81 * (2 * jnp.cos(a) + jnp.cos(b))

    state = (1.2, 0.7, 0.4, -0.6)
    assert float(energy(*double_pendulum_step(*state))) == pytest.approx(float(energy(*state)), rel=1e-6)


def test_gravity_is_the_gradient_of_its_potential():
    def potential(x, mu, j2):
        r = jnp.sqrt(jnp.sum(x**2))
        return mu / r * (1 - j2 / r**2 * (1.5 * (x[2] / r) ** 2 - 0.5))

    args = np.array([0.9, 0.6, 0.5]), 1.0, 0.01
    np.testing.assert_allclose(orbit_acceleration(*args), jax.grad(potential)(*args), rtol=1e-12)


def test_no_deformation_no_stress():
    np.testing.assert_allclose(neo_hookean_stress(np.eye(3), 1.0, 5.0), 0.0, atol=1e-15)


def test_the_identity_camera_projects():
    seen = bundle_residual(np.eye(4)[0], np.zeros(3), 2.0, 0.0, 0.0, np.array([1.0, 2.0, -4.0]), np.zeros(2))
    np.testing.assert_allclose(seen, [0.5, 1.0])


def test_sabr_without_volatility_of_volatility_is_log_normal():
    assert float(sabr_volatility(0.03, 0.04, 2.0, 0.2, 1.0, 0.0, 1e-6)) == pytest.approx(0.2, rel=1e-6)


def test_equal_cells_have_the_flux_of_the_cell():
    cell = np.array([1.0, 0.4, 0.2, 2.5])
    p = 0.4 * (2.5 - 0.5 * (0.4**2 + 0.2**2))
    np.testing.assert_allclose(hllc_flux_2d(cell, cell), [0.4, 0.16 + p, 0.08, 0.4 * (2.5 + p)], rtol=1e-12)
