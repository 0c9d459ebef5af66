"""Estimates of run times, and derivatives in each way that estimates may choose."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import graphax as gx
from graphax import _jax, estimates, pipeline
from graphax.estimates import MANY_POINTS, better_mode, elimination, kernel, plain_modes
from graphax.modes import PlainMode
from graphax.pipeline import Pipeline
from graphax.trace import Request

from .comparing import array, assert_same


def program_of(function, *args):
    return _jax.trace(lambda *a: [function(*a)], *args)


def rotations(steps):
    """Many small operations one after the other."""

    def function(x):
        for n in range(steps):
            x = jnp.stack([x[0] * jnp.cos(x[1]) - x[2], x[1] * x[2] + 0.1 * n, jnp.sin(x[0])])
        return x

    return function


def test_more_work_takes_longer():
    short, long = (program_of(rotations(n), array(3)) for n in (3, 30))
    assert elimination(short).run < elimination(long).run
    assert elimination(long).run < elimination(long, MANY_POINTS).run
    assert elimination(short).compile < elimination(long).compile
    assert kernel(100, 100).run < kernel(10_000, 10_000).run < kernel(10_000, 10_000, MANY_POINTS).run


@pytest.mark.parametrize(("inputs", "outputs", "best"), [(2, 300, "jax.jacfwd"), (300, 2, "jax.jacrev")])
def test_the_mode_with_fewer_passes_is_better_for_many_points(inputs, outputs, best):
    modes = plain_modes(program_of(rotations(20), array(3)), inputs, outputs, MANY_POINTS)
    assert min(modes, key=lambda way: way.run).name == best


def test_short_programs_are_always_eliminated():
    program = program_of(rotations(2), array(3))
    assert better_mode(program, [estimates.Way("jax.jacfwd", 0.0, 0.0)], 1) is None


def test_short_programs_of_large_arrays_are_left_to_a_mode_that_takes_far_less():
    program = program_of(lambda x: jnp.sin(x) @ x, array(200, 200))
    eliminated = elimination(program).run
    assert eliminated > 100e-6
    for share, taken in ((0.1, "jax.jacrev"), (0.6, None)):
        assert better_mode(program, [estimates.Way("jax.jacrev", share * eliminated, 0.0)], 1) == taken


@pytest.mark.parametrize("mode", ["jax.jacfwd", "jax.jacrev"])
@pytest.mark.parametrize("mapped", [False, True], ids=["alone", "mapped"])
def test_modes_of_jax_give_what_elimination_gives(monkeypatch, mode, mapped):
    """A mode that replaces elimination returns every form that `jacve` returns."""
    monkeypatch.setattr(pipeline, "better_mode", lambda *_: mode)
    monkeypatch.setattr("graphax.native.as_kernel", lambda *_: (_ for _ in ()).throw(gx.NativeError("none")))
    x, y = array(3, 2), array(2, 4, seed=1)

    def function(x, y):
        return {"product": x @ y, "sum": jnp.sum(jnp.sin(x))}, (x[0], 7)

    def ways(way):
        return way(function, (0, 1), has_aux=True)

    outer = jax.vmap if mapped else lambda f: f
    args = [jnp.stack([a, 2 * a]) if mapped else a for a in (x, y)]
    got = jax.jit(outer(ways(gx.jacve)))(*args)
    assert_same(got, jax.jit(outer(ways(jax.jacfwd)))(*args), 1e-12)
    value, jacobian = jax.jit(outer(gx.value_and_jacve(function, (0, 1), has_aux=True)))(*args)
    assert_same(jacobian, got[0], 1e-12)
    assert_same(value, jax.jit(outer(function))(*args), 1e-12)


@jax.custom_vjp
def smooth(x):
    return jnp.tanh(x)


smooth.defvjp(lambda x: (jnp.tanh(x), x), lambda x, g: (g * (1 - jnp.tanh(x) ** 2),))

REFUSED = {
    "jax.jacfwd": lambda x: smooth(x) * x[0],
    "jax.jacrev": lambda x: jax.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, jnp.sin(2 * s[1])), (0, x))[1],
}


@pytest.mark.parametrize("mode", REFUSED)
def test_what_a_mode_of_jax_refuses_is_eliminated(monkeypatch, mode):
    """Forward mode does not support custom_vjp, and reverse mode no while loops. Elimination supports both."""
    monkeypatch.setattr(pipeline, "better_mode", lambda *_: mode)
    monkeypatch.setattr("graphax.native.as_kernel", lambda *_: (_ for _ in ()).throw(gx.NativeError("none")))
    function, x = REFUSED[mode], array(3)
    other = jax.jacrev if mode == "jax.jacfwd" else jax.jacfwd
    assert_same(jax.jit(gx.jacve(function))(x), other(function)(x), 1e-12)


def test_requested_orders_are_kept():
    args = (array(3),)
    for order in ("rev", "markowitz"):
        asked = Pipeline(rotations(1), args, {}, Request(0), order)
        assert asked.better(asked.traced.program) is None


@pytest.mark.parametrize("way", [gx.jacve, gx.hessve])
def test_orders_may_be_arrays(way):
    """XLA runs programs with long arrays, so other ways are considered."""

    def function(x):
        return jnp.sum(jnp.sin(x) * x[0])

    x = array(400)
    order = np.array(gx.build_graph(function, x).intermediates)
    got = jax.jit(way(function, order=order))(x)
    assert_same(got, (jax.grad if way is gx.jacve else jax.hessian)(function)(x), 1e-12)


@pytest.mark.parametrize(
    ("function", "argument", "modes"),
    [
        pytest.param(lambda x: x * 2.0, 3, (), id="integer"),
        pytest.param(lambda x: x > 0, 1.5, (), id="truth value"),
        pytest.param(lambda x: (jnp.exp(1j * x), x), 1.5, ("jax.jacfwd",), id="real to complex"),
        pytest.param(lambda x: jnp.abs(jnp.exp(1j * x)), 1.5, ("jax.jacfwd", "jax.jacrev"), id="complex in between"),
        pytest.param(jnp.sin, 1.0 + 2.0j, ("jax.jacfwd", "jax.jacrev"), id="holomorphic"),
    ],
)
def test_modes_that_accept_a_function(function, argument, modes):
    request = Request(0, holomorphic=isinstance(argument, complex), allow_int=True)
    traced = Pipeline(function, (argument,), {}, request).traced
    assert PlainMode(traced).names == modes
    assert PlainMode(traced).is_possible == bool(modes)


COMPLEX = {
    "a spectrum": (lambda x: jnp.abs(jnp.fft.fft(jnp.sin(x))) ** 2, False),
    "complex results": (lambda x: jnp.exp(1j * x) * jnp.sum(x), False),
    "holomorphic": (lambda z: jnp.linalg.solve(jnp.outer(z, z) + 3 * jnp.eye(8), jnp.exp(z)), True),
    "roots": (lambda x: jnp.linalg.eigvals(jnp.diag(jnp.ones(7), -1).at[0].set(-x)), False),
}


@pytest.mark.parametrize("name", COMPLEX)
@pytest.mark.parametrize("mapped", [False, True], ids=["alone", "mapped"])
def test_complex_numbers_are_left_to_the_modes_of_jax(name, mapped):
    """Elimination takes complex numbers apart, which takes up to eight times as long."""
    function, holomorphic = COMPLEX[name]
    x = array(8) + 1.5
    x = x + 0.5j * array(8, seed=1) if holomorphic else x
    found = Pipeline(function, (x,), {}, Request(0, holomorphic=holomorphic)).choice("auto")
    assert found.name == "xla, by jax.jacfwd"
    outer, x = (jax.vmap, jnp.stack([x, 2 * x])) if mapped else (lambda f: f, x)
    got = jax.jit(outer(gx.jacve(function, holomorphic=holomorphic)))(x)
    assert_same(got, jax.jit(outer(jax.jacfwd(function, holomorphic=holomorphic)))(x), 1e-9)


def test_equations_in_loops_count():
    """The conjugate gradients of JAX have few equations outside of their loop."""
    program = program_of(lambda x: jax.lax.fori_loop(0, 3, lambda _, c: rotations(30)(c), x), array(3))
    assert len(program.equations) < 200 < estimates.size(program)[0]
    assert better_mode(program, [estimates.Way("jax.jacfwd", 0.0, 0.0)], 1) == "jax.jacfwd"


def test_explanations_have_estimates_of_each_way():
    text = str(gx.explain(rotations(3), array(3)))
    assert "Estimates for one point on the CPU: kernel" in text
    for way in ("xla", "jax.jacfwd", "jax.jacrev"):
        assert way in text.splitlines()[-1]


def test_no_kernel_that_compiles_long_for_one_point():
    """A sum over hundreds of data has thousands of statements but few equations, which XLA compiles sooner."""
    data = np.linspace(0.1, 1.0, 400)

    def residuals(x):
        return jnp.sum((jnp.exp(-x[0] * data) * x[1] - jnp.tanh(x[2] * data)) ** 2)

    found = Pipeline(jax.grad(residuals), (array(3),), {}, Request(0)).choice("auto")
    assert "xla" in str(found).splitlines()[0]
    got = jax.jit(gx.hessve(residuals))(array(3))
    assert_same(got, jax.hessian(residuals)(array(3)), 1e-9)


def test_few_parameters_of_long_data_go_forward():
    """CERI651C of CUTEst: elimination has an equation per parameter, where JAX has one for all parameters."""
    times = np.linspace(0.1, 1.0, 400)

    def residuals(x):
        total = jnp.zeros(400)
        for n in range(8):
            total = total + x[n % 6] * jnp.exp(-x[(n + 1) % 6] * times) / (1.0 + x[(n + 2) % 6] ** 2 * times)
        return jnp.where(total > 1.0, total**2, total * x[0])

    x = array(6)
    found = Pipeline(residuals, (x,), {}, Request()).choice("auto")
    assert found.name == "xla, by jax.jacfwd"
    assert_same(jax.jit(gx.jacve(residuals))(x), jax.jit(jax.jacfwd(residuals))(x), 1e-6)
