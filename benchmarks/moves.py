"""Compare random programs that move entries with `jax.jacfwd` in float64, dense and sparse, in random orders.

    python benchmarks/moves.py [--programs 10000] [--seed 0]

The programs contain slices, pads (negative and interior), rolls, concatenations, reshapes, reversals, strided windows,
gathers, scatters, masks, sorts and sparse constants, of ranks 0 to 4, with empty axes and axes of size one. Half of all
indices are known only at run time. Each program is determined by its seed.
"""

import sys
from collections.abc import Callable
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from many_programs import check_many

import graphax as gx

SIZES = (1, 2, 3, 4, 6)
MOST = 64


def random_program(seed: int) -> tuple[Callable[[Any, Any], Any], np.ndarray]:
    """A function of one array and of a zero, which hides indices until run time, and an example point."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.choice(SIZES, int(rng.integers(0, 5))))
    while prod(shape) > MOST:
        shape = shape[1:]
    shape = tuple(0 if rng.random() < 0.02 else n for n in shape)
    salts = rng.integers(0, 2**31, int(rng.integers(2, 7)))

    def function(x, zero):
        seen = [x]
        for salt in salts:
            here = np.random.default_rng(salt)
            hide = zero if here.random() < 0.5 else 0
            value = seen[int(here.integers(len(seen)))]
            moved = MOVES[int(here.integers(len(MOVES)))](here, value, seen, hide)
            seen.append(moved if moved.size <= 2 * MOST else jnp.ravel(moved)[:MOST])
        return jnp.concatenate([jnp.ravel(seen[-1]), jnp.ravel(seen[len(seen) // 2])])

    return function, rng.random(shape) + 0.5


def _axis(rng: np.random.Generator, y: Any) -> int:
    return int(rng.integers(y.ndim))


def _slice(rng, y, seen, hide):
    starts = [int(rng.integers(0, n + 1)) for n in y.shape]
    return y[tuple(slice(start, None, int(rng.integers(1, 4))) for start in starts)]


def _pad(rng, y, seen, hide):
    margins = [tuple(int(v) for v in rng.integers((-1, -1, 0), 3)) for _ in y.shape]
    margins = [(low, high, inside) if n > 2 else (max(low, 0), max(high, 0), inside)
               for n, (low, high, inside) in zip(y.shape, margins, strict=True)]  # fmt: skip
    return lax.pad(y, jnp.asarray(0.25, y.dtype), margins)


def _roll(rng, y, seen, hide):
    return jnp.roll(y, int(rng.integers(-3, 4)), _axis(rng, y)) if y.ndim else y * y


def _concatenate(rng, y, seen, hide):
    other = seen[int(rng.integers(len(seen)))]
    return jnp.concatenate([jnp.ravel(y), jnp.ravel(other)])


def _reshape(rng, y, seen, hide):
    n = y.size
    split = [m for m in (2, 3, 4) if n and n % m == 0]
    return y.reshape(int(rng.choice(split)), -1) if split else y.reshape(*y.shape, 1)


def _turn(rng, y, seen, hide):
    return jnp.transpose(y, rng.permutation(y.ndim)) if rng.random() < 0.5 else jnp.flip(y)


def _gather(rng, y, seen, hide):
    if not y.ndim or not y.size:
        return y * 2
    axis = _axis(rng, y)
    mode = str(rng.choice(["clip", "wrap", "fill"]))
    indices = rng.integers(
        -y.shape[axis], y.shape[axis] + (mode != "fill"), tuple(rng.integers(1, 4, int(rng.integers(1, 3))))
    )
    return jnp.take(y, indices + hide, axis, mode=mode)


def _scatter(rng, y, seen, hide):
    if not y.ndim or not y.size:
        return y + 1
    flat = jnp.ravel(y)
    places = rng.integers(0, y.size + 2, y.size) + hide
    return jnp.zeros(y.size + 1, y.dtype).at[places].add(flat * flat, mode="drop")


def _set(rng, y, seen, hide):
    if not y.size:
        return y
    flat = jnp.ravel(y)
    places = rng.permutation(y.size)[: int(rng.integers(1, y.size + 1))] + hide
    return flat.at[places].set(jnp.sin(flat[places])).reshape(y.shape)


def _mask(rng, y, seen, hide):
    return jnp.where(rng.random(y.shape) + hide < 0.5, y, 2 * y * y)


def _matrix(rng, y, seen, hide):
    n = y.size
    return np.where(rng.random((max(1, n - 1), n)) < 0.15, 1.5, 0.0) @ jnp.ravel(y)


def _window(rng, y, seen, hide):
    if not y.ndim or not y.size:
        return y - 1
    axis = _axis(rng, y)
    start, length = int(rng.integers(-1, y.shape[axis] + 1)) + hide, int(rng.integers(1, y.shape[axis] + 1))
    read = lax.dynamic_slice_in_dim(y, start, length, axis)
    return read if rng.random() < 0.5 else lax.dynamic_update_slice_in_dim(jnp.sin(y), read * read, 1 - start, axis)


def _sort(rng, y, seen, hide):
    return jnp.sort(y, _axis(rng, y)) if y.ndim and y.size else y * 3


def _sum(rng, y, seen, hide):
    return jnp.sum(y, _axis(rng, y)) if y.ndim else jnp.broadcast_to(y, (3, 2))


def _arithmetic(rng, y, seen, hide):
    other = seen[int(rng.integers(len(seen)))]
    return y * jnp.cos(other) if other.shape == y.shape else y * jnp.sin(y)


MOVES = (
    _slice, _pad, _roll, _concatenate, _reshape, _turn, _gather, _scatter, _set, _mask, _matrix, _window,
    _sort, _sum, _arithmetic,
)  # fmt: skip


def check(seed: int) -> None:
    """Compare one program; raises an `AssertionError` that says what differs."""
    function, x = random_program(seed)
    want = np.asarray(jax.jacfwd(function)(x, 0))
    graph = gx.build_graph(function, x, 0)
    order = [int(v) for v in np.random.default_rng(seed).permutation(graph.intermediates)]
    close = {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(gx.jacve(function, order=order)(x, 0), want, **close)
    block = gx.jacve(function, order=order, sparse=True)(x, 0)
    np.testing.assert_allclose(block.todense(), want, **close)
    rows, columns = block.indices()
    entries = np.zeros((want.shape[0], x.size))
    entries[rows, columns] = block.data
    np.testing.assert_allclose(entries.reshape(want.shape), want, **close)


if __name__ == "__main__":
    sys.exit(check_many(check, __doc__.splitlines()[0], 10_000))
