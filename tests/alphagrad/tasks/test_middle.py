"""Functions of middle size: Jacobians are finite at the points of a batch, and equal by kernels and by JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import graphax as gx
from alphagrad.tasks import MIDDLE, TASKS, UNSEEN, get

SHORT = [name for name in MIDDLE if not name.startswith(("InverseDynamics", "ForwardDynamics", "EndEffector"))]


def test_names_are_not_taken():
    assert MIDDLE.keys().isdisjoint(TASKS | UNSEEN)
    assert get("multibody") is MIDDLE["Multibody"]


@pytest.mark.parametrize("name", [*SHORT, pytest.param("InverseDynamics_7", marks=pytest.mark.slow)])
def test_jacobians_are_those_of_jax(name):
    task = MIDDLE[name]
    points = [np.stack([x, 1.01 * x, 0.99 * x]) for x in task.arguments(seed=3)]
    with jax.enable_x64(True):
        got = jax.jit(jax.vmap(gx.jacve(task.function, task.argnums)))(*map(jnp.asarray, points))
        want = jax.jit(jax.vmap(jax.jacfwd(task.function, task.argnums)))(*map(jnp.asarray, points))
    for ours, theirs in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert np.isfinite(theirs).all()
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9 * np.abs(theirs).max())
