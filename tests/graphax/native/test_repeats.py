"""Loops in kernels on the CPU, and on a GPU as far as supported, which is simulated here."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import graphax as gx
from graphax import _jax
from graphax.errors import NativeError
from graphax.native.results import targets
from graphax.native.threads import reason_for_xla
from graphax.native.unroll import unroll

from ..comparing import array, assert_same
from .running import natively
from .warps import on_warps

STATE, ROWS = array(3, seed=1), array(40, 4, seed=2)


def rows(step, reverse=False, before=lambda x: x):
    """A scan of a step over rows, from a state. Returns the last state and all written values."""
    return lambda y, xs: jax.tree.leaves(lax.scan(step, y, before(xs), reverse=reverse))


def repeated(step, length):
    return lambda y, xs: jax.tree.leaves(lax.scan(lambda c, _: step(c), y, None, length=length))


def _counting(y, xs):
    def step(carry, _):
        n, flag, x = carry
        x = jnp.where(flag, x * 0.9, x + n.astype(float) * 1e-9)
        return (n * 5 + 3, ~flag, x), (n, flag)

    (n, flag, x), written = lax.scan(step, (jnp.int32(1), True, y), None, length=300)
    return [n, flag, x, *written]


def _nested(y, xs):
    def outer(c, row):
        c, written = lax.scan(lambda c, x: (jnp.cos(c) * x + c, c[0]), c, jnp.tile(row, 9))
        return c, jnp.sum(written) * written[:2]

    return list(lax.scan(outer, y, xs))


def _newton(y, xs):
    def step(state):
        x, count = state
        return x - (x**2 - 100 * y[0] ** 2) / (2 * x), count + 1

    return list(
        lax.while_loop(lambda s: (abs(s[0] ** 2 - 100 * y[0] ** 2) > 1e-12) & (s[1] < 60), step, (1 + y[1] ** 2, 0))
    )


def _two_loops(y, xs):
    """Two loops. The second reads what the first writes, from the end."""
    written = lax.scan(lambda c, x: (jnp.sin(c) + x[1:], c * x[0]), y, xs)[1]
    return list(lax.scan(lambda c, x: (c * x[0] + x[1], x * c), 1.5, written, reverse=True))


CASES = {
    "carries": repeated(lambda y: (jnp.sin(y[::-1]) + 0.1 * y, None), 100),
    "rows": rows(lambda c, x: ((c := jnp.sin(c) * x[0] + x[1:]), (c * 2, jnp.sum(c), x[0] > 0))),
    "backward": rows(lambda c, x: ((c := jnp.sin(c) * x[0] + x[1:]), c * 2), reverse=True),
    "rows that are computed": rows(lambda c, x: (jnp.tanh(c + x[:3]), c[0] * x[3]), before=jnp.exp),
    "rows that are constants": lambda y, xs: list(
        lax.scan(lambda c, t: (jnp.tanh(c + t), t * c[1]), y, np.linspace(0, 1, 70) ** 2)
    ),
    "only written": rows(lambda c, x: (c, jnp.outer(x, x)[:, :2])),
    "written in another order": lambda y, xs: [lax.scan(lambda c, x: (c + x[:3], c * x[0]), y, xs)[1].T],
    "written and read": lambda y, xs: [(w := lax.scan(lambda c, x: (c + x[:3], c * x[0]), y, xs)[1]), w * w[::-1]],
    "two loops": _two_loops,
    "nested": _nested,
    "whole numbers and truth values": _counting,
    "reads by its step": lambda y, xs: [
        lax.fori_loop(0, 40, lambda i, c: jnp.sin(c) + xs[i, 1:] * i + xs[39 - i, 0], y)
    ],
    "writes by its step": lambda y, xs: [
        lax.fori_loop(2, 20, lambda i, c: c.at[i].set(jnp.sum(c) * xs[19 - i, 0]), jnp.zeros(20) + y[0])
    ],
    "branches": lambda y, xs: [
        lax.fori_loop(0, 90, lambda i, c: lax.cond(c[0] > 0.5, lambda c: c * 0.9, lambda c: c * 1.3 + 0.01 * i, c), y)
    ],
    "what stays the same": repeated(
        lambda y: (jnp.stack([jnp.sin(y[0] / (2 + y[1])), y[1], y[2] * 0.99]), y[1] / y[2]), 60
    ),
    "large angles": repeated(lambda y: (jnp.sin(y * 1e9) * 1e-9 + y, None), 150),
    "while": lambda y, xs: [lax.while_loop(lambda c: jnp.sum(c * c) > 1e-3, lambda c: c * 0.8 * jnp.cos(c), y)],
    "while that never begins": lambda y, xs: [lax.while_loop(lambda c: c[0] > 1e9, lambda c: c * 2, y)],
    "while of several points": lambda y, xs: [
        jax.vmap(lambda v: lax.while_loop(lambda c: c > 0.1, lambda c: c * 0.8 - 0.01, v))(abs(xs[:5, 0]))
    ],
    "newton": _newton,
    "while in a scan": rows(
        lambda c, x: (lax.while_loop(lambda s: jnp.sum(s * s) > 1, lambda s: s * 0.7 + 0.01, c + x[:3]), c[0])
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("points", [None, 3, 11])
def test_equal_to_xla(name, points):
    function, args = CASES[name], [STATE, ROWS]
    if points is not None:
        args = [x * (1 + 0.05 * array(points, *x.shape, seed=3)) for x in args]
    mapped = (lambda f: f) if points is None else jax.vmap
    assert_same(jax.jit(mapped(natively(function)))(*args), jax.jit(mapped(function))(*args), 1e-9)


@pytest.mark.parametrize("name", CASES)
def test_are_loops(name):
    """Loops are not written out."""
    program, _ = _jax.open_program(CASES[name], [jnp.asarray(STATE), jnp.asarray(ROWS)])
    statements = unroll(program)
    assert statements.loops
    assert statements.operations < 600


@pytest.mark.parametrize("name", CASES)
def test_on_a_gpu(name):
    program, _ = _jax.open_program(CASES[name], [jnp.asarray(STATE), jnp.asarray(ROWS)])
    assert reason_for_xla(unroll(program)) is None
    args = [x * (1 + 0.05 * array(35, *x.shape, seed=3)) for x in (STATE, ROWS)]
    assert_same(on_warps(CASES[name], args, (True, True)), jax.vmap(CASES[name])(*args), 1e-9)


def test_a_loop_stores_results_by_itself():
    program, _ = _jax.open_program(CASES["rows"], [jnp.asarray(STATE), jnp.asarray(ROWS)])
    statements = unroll(program)
    assert sorted((t.result, t.offset, t.stride) for t in targets(statements).values()) == [
        (1, 0, 3), (1, 1, 3), (1, 2, 3), (2, 0, 1), (3, 0, 1)
    ]  # fmt: skip


def test_what_nothing_depends_on_is_not_carried():
    def function(y):
        (x, _), _ = lax.scan(lambda c, _: ((jnp.sin(c[0]), jnp.exp(c[1])), c[1] * 2), (y, y), None, length=300)
        return [x]

    program, _ = _jax.open_program(function, [jnp.float64(0.3)])
    statements = unroll(program)
    assert "exp" not in {s.operation for s in statements.statements}
    assert statements.statements[statements.loops[0]].attribute.carries == 1


def test_what_does_not_change_is_computed_once():
    program, _ = _jax.open_program(
        lambda y: [lax.scan(lambda c, _: (jnp.sin(c) * jnp.exp(y) / jnp.log(y), None), y, None, length=300)[0]],
        [jnp.float64(2.3)],
    )
    scopes = {s.operation: s.scope for s in unroll(program).statements}
    assert scopes["exp"] == scopes["log"] == 0
    assert scopes["sin"] > 0


def test_a_loop_of_many_steps_is_as_short_as_of_few():
    counts = set()
    for length in (1_000, 100_000):
        program, _ = _jax.open_program(
            repeated(lambda y: (jnp.sin(y), None), length), [jnp.asarray(STATE), jnp.asarray(ROWS)]
        )
        counts.add(unroll(program).operations)
    assert len(counts) == 1


def test_what_loops_keep_has_to_fit():
    def function(y):
        written = lax.scan(lambda c, _: (jnp.sin(c), c), y, None, length=30_000)[1]
        return [lax.scan(lambda c, x: (c * x, None), 1.0, written)[0]]

    with pytest.raises(NativeError, match="there is room for 16,384"):
        jax.jit(natively(function))(0.3)
    np.testing.assert_allclose(
        jax.jit(gx.jacve(lambda y: function(y)[0]))(0.3), jax.jacrev(lambda y: function(y)[0])(0.3)
    )


@pytest.mark.parametrize("argnums", [0, 1, (0, 1)])
@pytest.mark.parametrize(
    "name", ["carries", "rows that are computed", "two loops", "nested", "branches", "newton", "while in a scan"]
)
def test_jacobians(name, argnums):
    function = lambda y, xs: CASES[name](y, xs)[0]
    points = [x * (1 + 0.05 * array(3, *x.shape, seed=3)) for x in (STATE, ROWS)]
    got = jax.jit(jax.vmap(gx.jacve(function, argnums)))(*points)
    assert_same(got, jax.vmap(jax.jacfwd(function, argnums))(*points), 1e-8)


def test_a_loop_that_has_to_be_written_out_around_one_that_has_not():
    """The positions of a scatter are known once the outer loop is written out. The inner loop remains a loop."""

    def function(y, xs):
        def outer(c, i):
            c = lax.scan(lambda c, _: (jnp.sin(c) * 0.9, None), c, None, length=200)[0]
            return c.at[i * i % 3].add(1.0), c[0]

        return list(lax.scan(outer, y, jnp.arange(4)))

    points = [x * (1 + 0.05 * array(3, *x.shape, seed=3)) for x in (STATE, ROWS)]
    assert_same(jax.jit(jax.vmap(natively(function)))(*points), jax.vmap(function)(*points), 1e-12)
