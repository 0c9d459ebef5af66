"""Jacobians of loops by `graphax.jacve` and by the better mode of JAX, in turns, in float64.

    python benchmarks/loops.py [--batch 1024] [--steps 100] [--cases lorenz,network] [--repeat 9]

For each case: milliseconds of a call under `jax.jit` (and `jax.vmap` over ``--batch`` points, where that is more than
one) by `jax.jacfwd`, `jax.jacrev` and `jacve`, the ratio of the better of these to ours, and seconds of the first call.
"""

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import graphax as gx

# A function of the arguments to differentiate by, and those.
Case = tuple[Callable[..., Any], tuple[np.ndarray, ...]]


def runge_kutta(field: Callable, y: Any, p: Any, steps: int, h: float = 0.01) -> Any:
    def step(y, _):
        k1 = field(y, p)
        k2 = field(y + h / 2 * k1, p)
        k3 = field(y + h / 2 * k2, p)
        k4 = field(y + h * k3, p)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    return lax.scan(step, y, None, length=steps)[0]


def lorenz(rng: np.random.Generator, steps: int) -> Case:
    def field(y, p):
        a, b, c = y
        return jnp.stack([p[0] * (b - a), a * (p[1] - c) - b, a * b - p[2] * c])

    return lambda y, p: runge_kutta(field, y, p, steps), (rng.random(3), np.array([10.0, 28.0, 8 / 3]))


def oscillators(rng: np.random.Generator, steps: int) -> Case:
    """A driven Van der Pol oscillator, four states and three parameters."""

    def field(y, p):
        a, b, c, d = y
        return jnp.stack([b, p[0] * (1 - a * a) * b - a + 0.1 * c, d, -p[1] * c - p[2] * d + jnp.sin(a)])

    return lambda y, p: runge_kutta(field, y, p, steps), (rng.random(4), np.array([1.5, 4.0, 0.3]))


def lorenz_96(rng: np.random.Generator, steps: int) -> Case:
    def field(y, p):
        return (jnp.roll(y, -1) - jnp.roll(y, 2)) * jnp.roll(y, 1) - y + p

    return lambda y: runge_kutta(field, y, 8.0, steps), (rng.random(12),)


def network_by_weights(rng: np.random.Generator, steps: int) -> Case:
    sequence, size = rng.normal(size=(steps, 8)), 32

    def loss(weights, inputs):
        def step(h, x):
            h = jnp.tanh(weights @ h + inputs @ x)
            return h, h

        return jnp.sum(lax.scan(step, jnp.zeros(size), sequence)[1] ** 2)

    return loss, (rng.normal(size=(size, size)) * 0.1, rng.normal(size=(size, 8)))


def gated_by_weights(rng: np.random.Generator, steps: int) -> Case:
    sequence, size = rng.normal(size=(steps, 8)), 24

    def loss(update, reset, candidate):
        def step(h, x):
            both = jnp.concatenate([h, x])
            z, r = jax.nn.sigmoid(update @ both), jax.nn.sigmoid(reset @ both)
            h = (1 - z) * h + z * jnp.tanh(candidate @ jnp.concatenate([r * h, x]))
            return h, None

        return jnp.sum(lax.scan(step, jnp.zeros(size), sequence)[0] ** 2)

    return loss, tuple(rng.normal(size=(size, size + 8)) * 0.2 for _ in range(3))


def hidden_by_inputs(rng: np.random.Generator, steps: int) -> Case:
    """All hidden states of a network by all of its inputs."""
    weights, inputs = rng.normal(size=(12, 12)) * 0.2, rng.normal(size=(12, 4))

    def states(sequence):
        def step(h, x):
            h = jnp.tanh(weights @ h + inputs @ x)
            return h, h

        return lax.scan(step, jnp.zeros(12), sequence)[1]

    return states, (rng.normal(size=(min(steps, 50), 4)),)


def kalman(rng: np.random.Generator, steps: int) -> Case:
    """The mean of an extended Kalman filter of a pendulum, by the noises that it assumes."""
    measured = rng.normal(size=steps)

    def filtered(noises):
        def step(carry, z):
            mean, covariance = carry
            moved = jnp.stack([mean[0] + 0.05 * mean[1], mean[1] - 0.05 * jnp.sin(mean[0])])
            a = jnp.array([[1.0, 0.05], [0.0, 1.0]]).at[1, 0].set(-0.05 * jnp.cos(mean[0]))
            covariance = a @ covariance @ a.T + noises[0] * jnp.eye(2)
            gain = covariance[:, 0] / (covariance[0, 0] + noises[1])
            mean = moved + gain * (z - jnp.sin(moved[0]))
            return (mean, covariance - jnp.outer(gain, covariance[0])), None

        return lax.scan(step, (jnp.zeros(2), jnp.eye(2)), measured)[0][0]

    return filtered, (np.array([0.1, 0.5]),)


CASES = {
    case.__name__: case
    for case in (
        lorenz, oscillators, lorenz_96, network_by_weights, gated_by_weights, hidden_by_inputs, kalman,
    )
}  # fmt: skip


def measured(case: Case, batch: int, repeat: int) -> dict[str, tuple[float, float]]:
    """Seconds of the first call and milliseconds of others, by way; calls take turns."""
    function, args = case
    numbers = tuple(range(len(args)))
    ways = {
        "jacfwd": jax.jacfwd(function, numbers),
        "jacrev": jax.jacrev(function, numbers),
        "jacve": gx.jacve(function, numbers),
    }
    if batch > 1:
        ways = {name: jax.vmap(way, in_axes=(0, *[None] * (len(args) - 1))) for name, way in ways.items()}
        rng = np.random.default_rng(1)
        args = (args[0] * (1 + 0.01 * rng.normal(size=(batch, *args[0].shape))), *args[1:])
    first, times, want = {}, {name: [] for name in ways}, None
    ways = {name: jax.jit(way) for name, way in ways.items()}
    for name, way in ways.items():
        start = time.perf_counter()
        got = jax.block_until_ready(way(*args))
        first[name] = time.perf_counter() - start
        want = got if want is None else want
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7), got, want)
    for _ in range(repeat):
        for name, way in ways.items():
            start = time.perf_counter()
            jax.block_until_ready(way(*args))
            times[name].append(time.perf_counter() - start)
    return {name: (first[name], 1e3 * float(np.median(times[name]))) for name in ways}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--repeat", type=int, default=9)
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print("| case | jacfwd [ms] | jacrev [ms] | jacve [ms] | ratio | first jacfwd [s] | jacrev [s] | jacve [s] |")
    print("|---|" + "--:|" * 7)
    ratios = []
    for name in arguments.cases.split(","):
        found = measured(CASES[name](np.random.default_rng(0), arguments.steps), arguments.batch, arguments.repeat)
        ratios.append(min(found["jacfwd"][1], found["jacrev"][1]) / found["jacve"][1])
        times = " | ".join(f"{found[way][1]:.3f}" for way in ("jacfwd", "jacrev", "jacve"))
        starts = " | ".join(f"{found[way][0]:.2f}" for way in ("jacfwd", "jacrev", "jacve"))
        print(f"| {name} | {times} | {ratios[-1]:.2f} | {starts} |", flush=True)
    print(f"\ngeometric mean of the ratios: {float(np.exp(np.mean(np.log(ratios)))):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
