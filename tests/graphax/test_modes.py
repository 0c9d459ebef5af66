"""JAX's own modes as derivative programs: all passes at once, or one after another in the loop of a kernel."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import graphax as gx
from graphax import _jax, estimates, native
from graphax.errors import LongCodeError
from graphax.modes import FORWARD, REVERSE, Passes, PlainMode, arithmetic
from graphax.pipeline import Pipeline
from graphax.trace import Request

from .comparing import array, assert_same

MODES = [FORWARD, REVERSE]


def several(x, w, scale):
    """Two results of different shapes, of three arguments."""
    hidden = jnp.tanh(w @ x * scale)
    return {"sum": jnp.sum(hidden), "outer": jnp.outer(hidden, x)[:2]}


ARGS = (array(3, seed=1), array(4, 3, seed=2), array(seed=3) + 2)


def pipeline(function, args, argnums=0, **how):
    return Pipeline(function, args, {}, Request(argnums), **how)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [PlainMode, Passes])
@pytest.mark.parametrize("first", [0, 2])
def test_a_mode_is_a_derivative_program(kind, mode, first):
    asked = pipeline(several, ARGS, (0, 1, 2))
    outputs, rows = kind(asked.traced, first, mode)(*asked.traced.args)
    assert_same(asked.traced.nest(rows), jax.jacrev(several, (0, 1, 2))(*ARGS))
    assert_same(outputs, jax.tree.leaves(several(*ARGS))[first:])


@pytest.mark.parametrize("mode", MODES)
def test_auxiliary_data_pass_through(mode):
    def function(x):
        return jnp.sin(x), (x > 0, jnp.sum(x))

    asked = Pipeline(function, (ARGS[0],), {}, Request(0, True))
    outputs, _ = Passes(asked.traced, 1, mode)(*asked.traced.args)
    assert_same(outputs, list(function(ARGS[0])[1]))


@pytest.mark.parametrize("mode", MODES)
def test_passes_are_short_code(mode):
    """The code grows with the function, but not with the number of passes."""

    def chain(x):
        for n in range(20):
            x = jnp.sin(x) * jnp.roll(x, 1) + n
        return x

    found = {}
    for size in (6, 24):
        asked = pipeline(chain, (array(size),))
        flat, _ = _jax.open_program(lambda x, asked=asked: Passes(asked.traced, 1, mode)(x)[1][0], [array(size)])
        statements = native.as_kernel(flat, True).statements
        found[size] = statements.operations, statements.executed
    assert found[24][0] < 6 * found[6][0]
    assert found[24][1] > 10 * found[6][1]


def long_function(x):
    """A function whose elimination takes too many statements, because every result depends on every argument."""
    for n in range(12):
        x = 0.4 * jnp.sin(x + n) + 0.3 * jnp.roll(x, 1) * jnp.cos(jnp.roll(x, 2)) + 0.2 * jnp.mean(x[: 1 + n % 5])
    return x


@pytest.mark.parametrize("backend", ["auto", "native"])
@pytest.mark.parametrize("batch", [None, 5])
@pytest.mark.parametrize("way", [gx.jacve, gx.value_and_jacve])
def test_long_functions_are_passed_through_in_a_loop(monkeypatch, backend, batch, way):
    monkeypatch.setattr(native, "LIMIT", 2_000)
    monkeypatch.setattr(native, "LIMIT_UNASKED_MAPPED", 2_000)
    asked = pipeline(long_function, (array(6),))
    assert asked.choice(backend).name == "native"
    assert "after the other" in asked.choice(backend).reason
    ours, theirs = way(long_function, backend=backend), jax.jacrev(long_function)
    if way is gx.value_and_jacve:
        theirs = lambda x: (long_function(x), jax.jacrev(long_function)(x))
    args = array(6) if batch is None else array(batch, 6)
    if batch is not None:
        ours, theirs = jax.vmap(ours), jax.vmap(theirs)
    assert_same(jax.jit(ours)(args), theirs(args))


def test_requested_orders_are_eliminated():
    for how in ({"asked": "rev"}, {"sparse": True}):
        asked = pipeline(long_function, (array(6),), **how)
        assert asked.candidates == (asked.eliminated,)


def test_short_functions_are_eliminated_first():
    asked = pipeline(several, ARGS, (0, 1))
    assert asked.candidates[0] is asked.eliminated


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda x: x * 1j, (array(3),)),
        (lambda x, y: x * y.astype(x.dtype), (array(3), array(3).astype(np.float32))),
        (lambda x: x * 2, (array(),)),
        (lambda x: x[:0], (array(3),)),
    ],
    ids=["complex", "two types", "one pass", "no results"],
)
def test_functions_without_passes(function, args):
    asked = pipeline(function, args, tuple(range(len(args))))
    assert not all(Passes(asked.traced, 1, mode).is_possible for mode in MODES)
    if len(args) == 1 and np.size(args[0]) == 3 and "1j" not in str(function):
        assert_same(jax.jit(gx.jacve(function))(*args), jax.jacfwd(function)(*args))


def test_moving_elements_is_not_arithmetic():
    def moves(x):
        return jnp.concatenate([x[::-1].reshape(3, 2).T.ravel(), x]) * 2

    program = pipeline(moves, (array(6),)).traced.program
    assert arithmetic(program) == 12


def test_passes_pay_where_elimination_is_long():
    short = estimates.kernel_of_plan(1_000, 100)
    long = estimates.kernel_of_plan(60_000, 3_000)
    passes = estimates.kernel_of_passes(REVERSE, 10, 3_000)
    assert not estimates.pays(passes, short, 1)
    assert estimates.pays(passes, long, 1)
    assert not estimates.pays(estimates.kernel_of_passes(REVERSE, 1_000, 3_000), long, 1)


def test_reverse_passes_through_what_cannot_be_reversed(monkeypatch):
    """A while loop has no reverse mode. If its elimination is too long, forward passes run."""
    monkeypatch.setattr(native, "LIMIT", 200)

    def function(x):
        x = lax.while_loop(lambda c: jnp.sum(c) < 50, lambda c: c * 1.5 + jnp.sin(c) ** 2, jnp.abs(x) + 1)
        for n in range(3):
            x = jnp.sin(x + n) * jnp.roll(x, 1)
        return x

    try:
        got = jax.jit(gx.jacve(function, backend="native"))(array(6))
    except LongCodeError:
        got = jax.jit(gx.jacve(function))(array(6))
    assert_same(got, jax.jacfwd(function)(array(6)))
