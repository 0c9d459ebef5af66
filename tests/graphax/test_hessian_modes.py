"""Hessians by passes through the gradient, one after another in the loop of a kernel."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import graphax as gx
from graphax import hessian_modes
from graphax.estimates import is_long_for_second
from graphax.hessian_modes import HessianPasses, passes_of
from graphax.pipeline import Pipeline
from graphax.trace import Request

from .comparing import array, assert_same


def chain(x):
    """Many operations on few numbers, all of which depend on each other."""
    for n in range(30):
        x = 0.4 * jnp.sin(x + n) + 0.3 * jnp.roll(x, 1) * jnp.cos(jnp.roll(x, 2))
    return jnp.sum(x * x)


def several(x, scale):
    return jnp.sum(jnp.tanh(x["a"] * scale) ** 2) * jnp.prod(x["b"]), {"norm": jnp.sum(x["a"])}


X = {"a": array(2, 3, seed=1), "b": array(2, seed=2) + 2}


def pipeline(function, args, request=None, **how):
    return Pipeline(function, args, {}, request or Request(0), **how)


def test_passes_are_a_program_of_all_derivatives():
    asked = pipeline(several, (X, array() + 1), Request((0, 1), True))
    outputs, gradient, rows = HessianPasses(asked.traced)(*asked.traced.args)
    value, aux = several(X, array() + 1)
    assert_same(outputs, [value, aux["norm"]])
    want = jax.grad(several, (0, 1), has_aux=True)(X, array() + 1)[0]
    assert_same(gradient[0], jax.tree.leaves(want))
    hessian = jax.hessian(lambda *args: several(*args)[0], (0, 1))(X, array() + 1)
    assert_same([block for row in rows[0] for block in row], jax.tree.leaves(hessian))


@pytest.mark.slow
@pytest.mark.parametrize("batch", [None, 3])
@pytest.mark.parametrize("way", ["hessve", "value_grad_hess"])
def test_long_functions_are_passed_through_in_a_loop(monkeypatch, batch, way):
    asked = pipeline(chain, (array(4),))
    assert hessian_modes.is_passed_first(passes_of(asked))
    monkeypatch.setattr("graphax.hessian.SymmetricHessian.__call__", lambda *_: pytest.fail("it was eliminated"))
    points = array(4) if batch is None else array(batch, 4)
    ours, theirs = getattr(gx, way)(chain), jax.hessian(chain)
    if way == "value_grad_hess":
        theirs = lambda x: (chain(x), jax.grad(chain)(x), jax.hessian(chain)(x))
    if batch is not None:
        ours, theirs = jax.vmap(ours), jax.vmap(theirs)
    got = jax.jit(ours)(points)
    assert_same(got, theirs(points))
    hessian = jax.tree.leaves(got)[-1]
    assert (np.asarray(hessian) == np.swapaxes(hessian, -1, -2)).all()


@pytest.mark.parametrize("how", [{"asked": "rev"}, {"sparse": True}])
def test_requested_orders_are_eliminated(how):
    assert passes_of(pipeline(chain, (array(4),), **how)) is None


@pytest.mark.parametrize(
    ("function", "x"),
    [(chain, array(1)), (lambda x: x * chain(x), array(3)), (lambda x: chain(x).astype(jnp.float32), array(3))],
    ids=["one pass", "several results", "two types"],
)
def test_functions_without_passes(function, x):
    assert passes_of(pipeline(function, (x,))) is None
    assert_same(jax.jit(gx.hessve(function))(x), jax.hessian(function)(x), 1e-5)


@pytest.mark.parametrize(
    ("arithmetic", "inputs", "equations", "long"),
    [(1_000, 8, 900, True), (100, 8, 90, False), (1_000, 200, 900, False), (100_000, 8, 90, False)],
    ids=["long", "short", "many passes", "long arrays"],
)
def test_which_functions_are_long(arithmetic, inputs, equations, long):
    assert is_long_for_second(arithmetic, inputs, equations) is long
