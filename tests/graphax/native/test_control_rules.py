import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from graphax import _jax
from graphax.native.unroll import unroll

from ..comparing import array, assert_same
from .running import natively

MATRICES = array(9, 12, 12, seed=1)


def inverse_norm(a):
    return jnp.linalg.solve(a, a[0])


BRANCHES = {
    "first": lambda a, flag: [lax.cond(flag, inverse_norm, lambda a: a[0], a)],
    "second": lambda a, flag: [lax.cond(flag, lambda a: a[1], inverse_norm, a)],
    "number": lambda a, flag: [lax.switch(2 * flag.astype(int) - 1, [inverse_norm, lambda a: a[0]], a)],
    "in a loop": lambda a, flag: [
        lax.fori_loop(0, 3, lambda n, x: lax.cond(flag & (n == 1), lambda x: inverse_norm(a + x), jnp.sin, x), a[0])
    ],
    "constant": lambda a, flag: [
        *lax.cond(flag, lambda a: (inverse_norm(a), jnp.ones(2)), lambda a: (a[0], jnp.zeros(2)), a)
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", BRANCHES)
@pytest.mark.parametrize("flags", ["none", "some", "all"])
def test_long_branches(name, flags):
    taken = {"none": np.zeros(9, bool), "some": np.arange(9) % 4 == 0, "all": np.ones(9, bool)}[flags]
    got, want = jax.jit(jax.vmap(natively(BRANCHES[name])))(MATRICES, taken), jax.vmap(BRANCHES[name])(MATRICES, taken)
    assert_same(got, want, 1e-8)


def test_long_branches_are_loops_of_one_step():
    program = _jax.trace(BRANCHES["first"], MATRICES[0], True)
    found = unroll(program)
    (loop,) = found.loops
    scope = found.statements[loop].attribute.scope
    assert all(s.scope == scope for s in found.statements if s.operation == "div")


def test_indices_that_are_passed_on_from_step_to_step():
    """A derivative carries its constants through a loop. Lists of indices among them stay known."""
    places = np.array([2, 0, 1])

    def function(x):
        def step(carry):
            x, n, at = carry
            return jnp.sin(x)[at], n + 1, jnp.where(n > 5, at, places)

        return [lax.while_loop(lambda carry: carry[1] < 4, step, (x, 0, places))[0]]

    x = array(9, 3)
    assert_same(jax.jit(jax.vmap(natively(function)))(x), jax.vmap(function)(x), 1e-12)


def test_indices_that_change_from_step_to_step():
    def function(x):
        def step(carry):
            x, n, at = carry
            return jnp.sin(x)[at], n + 1, (at + 1) % 3

        return [lax.while_loop(lambda carry: carry[1] < 4, step, (x, 0, np.array([2, 0, 1])))[0]]

    x = array(9, 3)
    assert_same(jax.jit(jax.vmap(natively(function)))(x), jax.vmap(function)(x), 1e-12)
