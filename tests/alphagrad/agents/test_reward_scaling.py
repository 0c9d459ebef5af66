"""Scaled rewards can be inverted, and keep their order and their sign."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from alphagrad.agents.reward_scaling import EPSILON, LOGARITHM, ROOT

SCALINGS = {"root": ROOT, "logarithm": LOGARITHM}
relaxed = settings(deadline=None, print_blob=True)
scalings = pytest.mark.parametrize("scaling", SCALINGS.values(), ids=SCALINGS)


@scalings
@given(reward=st.floats(-1e9, 1e9, width=32, allow_subnormal=False))
@relaxed
def test_inverse_in_single_precision(scaling, reward):
    back = scaling.unscale(scaling.scale(jnp.float32(reward)))
    assert back.dtype == jnp.float32
    # The logarithm of 1e9 is 21, and an error of half a unit in its last place is one of 1e-6 in the reward.
    np.testing.assert_allclose(back, np.float32(reward), rtol=1e-5, atol=1e-30)


@scalings
@given(reward=st.floats(-1e12, 1e12, allow_subnormal=False))
@relaxed
def test_inverse_in_double_precision(scaling, reward):
    with jax.enable_x64(True):
        back = scaling.unscale(scaling.scale(jnp.float64(reward)))
        assert back.dtype == jnp.float64
        np.testing.assert_allclose(back, reward, rtol=1e-12, atol=1e-300)


@scalings
@given(scaled=st.floats(-20, 20, allow_subnormal=False))
@relaxed
def test_inverse_from_the_other_side(scaling, scaled):
    with jax.enable_x64(True):
        np.testing.assert_allclose(scaling.scale(scaling.unscale(jnp.float64(scaled))), scaled, rtol=1e-12, atol=1e-300)


@scalings
def test_order_and_sign_are_kept(scaling):
    rewards = jnp.linspace(-1000.0, 1000.0, 2001)
    scaled = scaling.scale(rewards)
    assert np.all(np.diff(scaled) > 0)
    assert np.array_equal(np.sign(scaled), np.sign(rewards))
    np.testing.assert_allclose(scaling.scale(-rewards), -scaled)


def test_the_formulas_are_those_of_the_paper():
    reward = np.array([-99.0, -3.0, 0.0, 8.0])
    root = np.sign(reward) * (np.sqrt(np.abs(reward) + 1) - 1) + EPSILON * reward
    np.testing.assert_allclose(ROOT.scale(reward), root, rtol=1e-6)
    np.testing.assert_allclose(LOGARITHM.scale(reward), np.sign(reward) * np.log(1 + np.abs(reward)), rtol=1e-6)
