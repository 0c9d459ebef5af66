import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import graphax as gx
from graphax import _jax

from .comparing import array, assert_same


def residual(x, load):
    a, b, c = x
    return jnp.stack([a + 0.3 * b * c - load, b + 0.3 * jnp.exp(-a) * c - 1, c + 0.3 * jnp.sin(a * b) - 0.5])


def newton(x, load):
    def step(x, _):
        value, jacobian = gx.value_and_jacve(residual)(x, load)
        return x - jnp.linalg.solve(jacobian, value), None

    return lax.scan(step, x, None, length=6)[0]


STARTS, LOADS = 1 + 0.1 * array(11, 3, seed=1), np.linspace(0.5, 2, 11)


@pytest.mark.parametrize("backend", ["auto", "native", "xla"])
def test_a_whole_solver(backend):
    solver = gx.kernel(newton, backend=backend)
    solutions = jax.vmap(solver)(STARTS, LOADS)
    assert np.abs(jax.vmap(residual)(solutions, LOADS)).max() < 1e-12
    assert_same(solver(STARTS[0], LOADS[0]), solutions[0], 1e-12)


def test_it_is_one_kernel():
    program = jax.make_jaxpr(jax.vmap(gx.kernel(newton)))(STARTS, LOADS)
    names = [eqn.primitive.name for eqn in _jax.all_equations(program.jaxpr.eqns)]
    assert [name for name in names if name not in ("jit", "pjit")] == ["graphax_kernel"]


def test_pytrees_go_in_and_out():
    function = gx.kernel(lambda p, scale=1.0: {"sum": p["a"] + p["b"][0], "scaled": (scale * p["a"],)})
    got = jax.vmap(lambda p: function(p, scale=3.0))({"a": np.arange(4.0), "b": [np.ones(4)]})
    assert_same(got, {"sum": np.arange(4.0) + 1, "scaled": (3 * np.arange(4.0),)}, 1e-15)


@pytest.mark.parametrize("way", [jax.jacfwd, jax.jacrev, gx.jacve])
def test_it_is_differentiated(way):
    want = jax.jacfwd(lambda x, load: gx.kernel(newton, backend="xla")(x, load), 1)(STARTS[0], LOADS[0])
    assert_same(jax.jit(way(gx.kernel(newton), 1))(STARTS[0], LOADS[0]), want, 1e-9)


def test_it_is_explained():
    explanation = gx.explain(gx.kernel(residual), STARTS[0], LOADS[0])
    assert "multiplications" in str(explanation)
    assert explanation.kernel.name == "native"
    assert "The function itself, without its Jacobian\nBackend on the CPU: native" in str(explanation)
    assert gx.explain(residual, STARTS[0], LOADS[0]).kernel is None


def test_in_a_loop():
    step = gx.kernel(lambda x: jnp.sin(x) * 0.9)
    got = lax.fori_loop(0, 5, lambda _, x: jax.vmap(step)(x), STARTS)
    want = lax.fori_loop(0, 5, lambda _, x: jnp.sin(x) * 0.9, STARTS)
    assert_same(got, want, 1e-12)


@pytest.mark.parametrize(
    ("function", "backend", "error", "message"),
    [
        (3, "auto", TypeError, "kernel takes a function, but got 3"),
        (jnp.sin, "fast", gx.GraphaxError, "unknown backend 'fast'"),
    ],
)
def test_bad_input(function, backend, error, message):
    with pytest.raises(error, match=message):
        gx.kernel(function, backend=backend)


def test_unsupported_equations_are_named():
    with pytest.raises(gx.NativeError, match="no rule for svd"):
        gx.kernel(lambda a: jnp.linalg.svd(a)[1], backend="native")(np.eye(3))
    assert_same(gx.kernel(lambda a: jnp.linalg.svd(a)[1])(np.eye(3)), np.ones(3), 1e-12)
