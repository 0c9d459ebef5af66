"""Compare random programs with loops with `jax.jacfwd` in float64.

They are differentiated forward, backward and in random orders, dense and sparse, and mapped over points, where loops
are kernels.

    python benchmarks/loop_programs.py [--programs 2000] [--seed 0]

The programs are scans with and without carries, sequences, constants and outputs; scans of no step or one step,
reversed and nested; with integer and boolean carries, branches, gathers by carried integers, and inner `jax.vmap`. They
contain loops with a condition, alone or mapped over rows, and choices between branches with different structures. Each
program is determined by its seed.
"""

import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from many_programs import check_many

import graphax as gx
from graphax.native import control_rules

Function = Callable[..., Any]
LENGTHS = (0, 1, 1, 2, 3, 5)


def random_program(seed: int) -> tuple[Function, tuple[np.ndarray, ...]]:
    """A function of three arrays, and an example point."""
    rng = np.random.default_rng(seed)
    shapes = [tuple(int(n) for n in rng.choice((1, 2, 3), int(rng.integers(0, 3)))) for _ in range(2)]
    length = int(rng.choice(LENGTHS))
    points = (*(rng.normal(size=shape) for shape in shapes), rng.normal(size=(length, 2)))
    salt = int(rng.integers(1 << 31))
    return lambda *args: _loop(np.random.default_rng(salt), list(args[:2]), args[2], 0), points


def _loop(rng: np.random.Generator, known: list[Any], sequence: Any, depth: int) -> list[Any]:
    """A random scan, with or without a sequence, whose carries start as functions of known values."""
    salt, count = int(rng.integers(1 << 31)), int(rng.integers(0, 3))
    length, over = sequence.shape[0], sequence if rng.random() < 0.7 else None
    start = [known[int(rng.integers(len(known)))] * 0.5 for _ in range(count)]
    plain = [jnp.int32(1), jnp.bool_(True)] if rng.random() < 0.5 else []
    reverse = bool(rng.random() < 0.3)

    def body(carry, x):
        here = np.random.default_rng(salt)
        moving, fixed = carry
        pool = [*known, *moving, *([] if x is None else [x]), *[f * 0.25 for f in fixed[:1]]]
        for _ in range(int(here.integers(1, 5))):
            pool.append(_operation(here, pool, fixed, depth))
        new = [jnp.broadcast_to(_mixed(here, pool), m.shape) if m.shape == () else m * 0.3 + _like(here, pool, m)
               for m in moving]  # fmt: skip
        fixed = [(fixed[0] + 1) % 3, ~fixed[1]] if fixed else []
        return (new, fixed), [pool[-1], _mixed(here, pool)][: int(here.integers(1, 3))]

    (last, _), outputs = lax.scan(body, (start, plain), over, length=length, reverse=reverse)
    results = [*last, *outputs] or [known[0]]
    # The code after a loop decides in which direction derivatives pass it.
    return [jnp.sum(r * r) if rng.random() < 0.3 else jnp.sin(r) if rng.random() < 0.5 else r for r in results]


def _mixed(rng: np.random.Generator, pool: list[Any]) -> Any:
    a, b = (pool[int(rng.integers(len(pool)))] for _ in range(2))
    return jnp.sum(a) * 0.3 + jnp.mean(jnp.cos(b))


def _like(rng: np.random.Generator, pool: list[Any], value: Any) -> Any:
    fitting = [p for p in pool if p.shape == value.shape]
    return jnp.tanh(fitting[int(rng.integers(len(fitting)))]) + _mixed(rng, pool)


def _operation(rng: np.random.Generator, pool: list[Any], fixed: list[Any], depth: int) -> Any:
    a, b = (pool[int(rng.integers(len(pool)))] for _ in range(2))
    kind = int(rng.integers(8))
    if kind == 0:
        return jnp.sin(a) * (b if a.shape == b.shape else jnp.sum(b))
    if kind == 1:
        return jnp.outer(jnp.ravel(a), jnp.ravel(b))[:2, :3]
    if kind == 2 and fixed:
        return jnp.where(fixed[1], jnp.tanh(a), a * a)
    if kind == 3 and fixed and a.size:
        return jnp.ravel(a)[fixed[0] % a.size] * a
    if kind == 4:
        return lax.cond(jnp.sum(b) > 0, lambda v: jnp.exp(-v * v), lambda v: v + 1, a)
    if kind == 5 and depth < 1:
        rows = jnp.stack([jnp.stack([jnp.sum(a), jnp.sum(b)])] * int(rng.integers(1, 4)))
        return jnp.sum(_loop(rng, [a, b], rows, depth + 1)[0]) * a
    if kind == 6 and a.ndim:
        return jax.vmap(lambda row: jnp.sum(row) * jnp.cos(row))(a)
    if kind == 7:
        return _choice(rng, a, b) if rng.random() < 0.5 else _mapped_while(a, b, int(rng.integers(-1, 5)))
    return a * 0.5 + jnp.sum(b) * 0.1


def _choice(rng: np.random.Generator, a: Any, b: Any) -> Any:
    """A choice between several branches: diagonal, dense, zero, a loop, another choice, or masked."""
    branches = [
        jnp.sin,
        lambda v: v * jnp.sum(v) + jnp.mean(b),
        jnp.zeros_like,
        lambda v: _while(v, b, 2),
        lambda v: lax.cond(jnp.sum(v) > 0, lambda u: u * jnp.sum(b), lambda u: jnp.flip(u), v),
        lambda v: jnp.where(v > 0, v * v, 0.5 * v),
    ]
    taken = [branches[n] for n in rng.permutation(len(branches))[: int(rng.integers(2, 5))]]
    return lax.switch(jnp.int32(jnp.floor(3 * jnp.sum(b))) % len(taken), taken, a)


def _mapped_while(a: Any, b: Any, most: int) -> Any:
    return jax.vmap(lambda row: _while(row, b, 4))(a) if a.ndim and most < 0 else _while(a, b, most)


def _while(a: Any, b: Any, most: int) -> Any:
    """A while loop whose number of steps depends on the values, up to a limit."""

    def step(carry):
        value, total, count = carry
        return jnp.sin(value) * 1.5 + 0.2 * jnp.mean(b), total + jnp.sum(value), count + 1

    def going_on(carry):
        return (carry[2] < most) & (jnp.sum(carry[0] ** 2) < 2.5)

    value, total, _ = lax.while_loop(going_on, step, (a, jnp.zeros(()), 0))
    return value + 0.3 * total


def check(seed: int) -> None:
    """Compare one program; raises an `AssertionError` that says what differs."""
    function, points = random_program(seed)
    numbers = (0, 1, 2)
    want = jax.jit(jax.jacfwd(function, numbers))(*points)
    if max((float(np.max(np.abs(leaf), initial=0.0)) for leaf in jax.tree.leaves(want)), default=0.0) > 1e6:
        # If a loop blows up, there is nothing but rounding to compare.
        return
    graph = gx.build_graph(function, *points, argnums=numbers)
    mixed = [int(v) for v in np.random.default_rng(seed).permutation(graph.intermediates)]
    for order, sparse in (("fwd", False), ("rev", True), (mixed, bool(seed % 2))):
        got = jax.jit(gx.jacve(function, numbers, order=order, sparse=sparse))(*points)
        if sparse:
            got = jax.tree.map(lambda b: b.todense(), got, is_leaf=lambda b: isinstance(b, gx.JacobianBlock))
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10), got, want)
    # Short loops are written out in kernels, except in every other program.
    control_rules.WRITTEN_OUT = 400 * (seed % 2)
    several = [np.stack([x * (1 + 0.05 * n) for n in range(5)]) for x in points]
    got, want = (jax.jit(jax.vmap(way(function, numbers)))(*several) for way in (gx.jacve, jax.jacfwd))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9), got, want)


if __name__ == "__main__":
    sys.exit(check_many(check, __doc__.splitlines()[0], 2_000))
