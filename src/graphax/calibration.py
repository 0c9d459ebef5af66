"""Measures the `Speeds` of this machine."""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from .backend import kernel_of
from .errors import NativeError
from .speeds import Speeds, keep

_ROUNDS, _REPEATED = 7, 50
_SUMS, _LONG, _CHAINS, _STEPS, _POINTS = 64, 1 << 17, 16, 25, 4_096
# The number of equations per sum in `_sums`: each sum is followed by a division of all elements.
_EQUATIONS = 4


def calibrate() -> Speeds:
    """Measure the speed of this machine, in a few seconds, and keep the result on disk for later processes.

    ``backend="auto"`` chooses by estimated run times, which use these measurements. Without them, the estimates assume
    a core of 2023. Measure while the machine is idle; a new measurement replaces the old one.
    """
    usual = Speeds()
    small, long = jnp.ones(8), jnp.ones(_LONG)
    called = _seconds(jax.jit(lambda x: x), small)
    started = (_seconds(jax.jit(_sums), small) - called) / (_SUMS * _EQUATIONS)
    # Two sums that depend on each other are two loops.
    moved = (_seconds(jax.jit(lambda x: jnp.sum(x * jnp.sum(x))), long) - called) / (2 * _LONG)
    try:
        alone, in_vector = _kernels()
    except NativeError:
        alone, in_vector = usual.alone, usual.in_vector
    found = Speeds(called, started, moved, alone, in_vector).bounded()
    keep(found)
    return found


def _sums(x: jax.Array) -> jax.Array:
    """A chain of dependent sums, so that XLA starts an operation for each."""
    for _ in range(_SUMS):
        x = x / (1.0 + jnp.sum(x * x))
    return x


def _kernels() -> tuple[float, float]:
    """Seconds per kernel instruction, for a single point and for one of many: the difference of two kernel lengths."""
    x, found = jnp.float32(0.5), []
    for steps in (_STEPS, 10 * _STEPS):
        kernel = kernel_of(lambda x, steps=steps: _chains(x, steps), [x])
        single = _seconds(jax.jit(lambda x, kernel=kernel: kernel(x)), x)
        many = _seconds(jax.jit(jax.vmap(lambda x, kernel=kernel: kernel(x))), jnp.full(_POINTS, x))
        found.append((kernel.executed, single, many / _POINTS))
    short, long = found
    executed = long[0] - short[0]
    return (long[1] - short[1]) / executed, (long[2] - short[2]) / executed


def _chains(x: Any, steps: int) -> list[Any]:
    """Several independent chains, as in most programs. A single chain would wait for each of its operations."""
    chains = [x + n for n in range(_CHAINS)]
    for n in range(steps):
        chains = [y * x + n for y in chains]
    return chains


def _seconds(call: Callable[[Any], Any], x: Any) -> float:
    """The minimum over several mean times, because other load on the machine only makes calls longer."""
    jax.block_until_ready(call(x))
    least = float("inf")
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        for _ in range(_REPEATED):
            result = call(x)
        jax.block_until_ready(result)
        least = min(least, (time.perf_counter() - start) / _REPEATED)
    return least
