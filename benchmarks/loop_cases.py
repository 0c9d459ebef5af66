"""Functions with loops, as users write them: integrators, recurrent networks, filters, iterations and rollouts."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


@dataclass(frozen=True)
class Case:
    """A function, an example point, the arguments to differentiate with respect to, and the batched argument.

    ``states`` is the number of carried numbers.
    """

    function: Callable[..., Any]
    args: tuple[np.ndarray, ...]
    states: int
    argnums: tuple[int, ...] = (0,)
    batched: int = 0


# Ordinary differential equations


def lorenz(y, p):
    a, b, c = y
    return jnp.stack([p[0] * (b - a), a * (p[1] - c) - b, a * b - p[2] * c])


def oscillators(y, p):
    """Van der Pol's oscillator, and a second one that it drives."""
    a, b, c, d = y
    return jnp.stack([b, p[0] * (1 - a * a) * b - a + 0.1 * c, d, -p[1] * c - p[2] * d + jnp.sin(a)])


def quadrotor(y, p):
    """Position, velocity, angles and their rates, with drag."""
    _, velocity, angles, rates = y.reshape(4, 3)
    roll, pitch, yaw = angles
    lift = jnp.stack([
        jnp.cos(roll) * jnp.sin(pitch) * jnp.cos(yaw) + jnp.sin(roll) * jnp.sin(yaw),
        jnp.cos(roll) * jnp.sin(pitch) * jnp.sin(yaw) - jnp.sin(roll) * jnp.cos(yaw),
        jnp.cos(roll) * jnp.cos(pitch),
    ])  # fmt: skip
    turning = jnp.stack([
        rates[0] + (rates[1] * jnp.sin(roll) + rates[2] * jnp.cos(roll)) * jnp.tan(pitch),
        rates[1] * jnp.cos(roll) - rates[2] * jnp.sin(roll),
        (rates[1] * jnp.sin(roll) + rates[2] * jnp.cos(roll)) / jnp.cos(pitch),
    ])  # fmt: skip
    spin = jnp.stack([rates[1] * rates[2], -rates[0] * rates[2], 0.1 * rates[0] * rates[1]])
    pull = p[0] * lift - jnp.array([0.0, 0.0, 9.81]) - p[1] * velocity
    return jnp.concatenate([velocity, pull, turning, spin - p[2] * rates])


def lorenz_96(y, p):
    return (jnp.roll(y, -1) - jnp.roll(y, 2)) * jnp.roll(y, 1) - y + p[0]


def brusselator(y, p):
    """Two species in fifteen cells."""

    def spread(w):
        return jnp.roll(w, 1) - 2 * w + jnp.roll(w, -1)

    u, v = y.reshape(2, 15)
    reaction = u * u * v
    return jnp.concatenate(
        [p[0] + reaction - (p[1] + 1) * u + p[2] * spread(u), p[1] * u - reaction + p[2] * spread(v)]
    )


FIELDS = {
    lorenz: (3, (10.0, 28.0, 8 / 3)),
    oscillators: (4, (1.5, 4.0, 0.3)),
    quadrotor: (12, (9.9, 0.2, 0.4)),
    lorenz_96: (12, (8.0,)),
    brusselator: (30, (1.0, 2.5, 0.4)),
}


def runge_kutta(field, y, p, h=0.01):
    k1 = field(y, p)
    k2 = field(y + h / 2 * k1, p)
    k3 = field(y + h / 2 * k2, p)
    k4 = field(y + h * k3, p)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


# The coefficients of Dormand and Prince, for a step of fixed size.
_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)


def dormand_prince(field, y, p, h=0.01):
    slopes = [field(y, p)]
    for coefficients in _STAGES:
        moved = y + h * sum(c * k for c, k in zip(coefficients, slopes, strict=True) if c)
        slopes.append(field(moved, p))
    return moved


def integrated(field, step, by: str, rng: np.random.Generator, steps: int) -> Case:
    states, parameters = FIELDS[field]

    def last(y, p):
        return lax.scan(lambda y, _: (step(field, y, p), None), y, None, length=steps)[0]

    argnums = {"state": (0,), "parameters": (1,), "both": (0, 1)}[by]
    return Case(last, (0.3 * rng.random(states) + 0.2, np.array(parameters)), states, argnums)


# Recurrent networks


def elman(w, h, x):
    h = jnp.tanh(w[0] @ jnp.concatenate([h[0], x]))
    return (h,)


def gru(w, h, x):
    both = jnp.concatenate([h[0], x])
    z, r = jax.nn.sigmoid(w[0] @ both), jax.nn.sigmoid(w[1] @ both)
    return ((1 - z) * h[0] + z * jnp.tanh(w[2] @ jnp.concatenate([r * h[0], x])),)


def lstm(w, h, x):
    both = jnp.concatenate([h[0], x])
    keep, new, out = (jax.nn.sigmoid(w[n] @ both) for n in range(3))
    cell = keep * h[1] + new * jnp.tanh(w[3] @ both)
    return out * jnp.tanh(cell), cell


def network(cell, matrices: int, by: str, rng: np.random.Generator, steps: int) -> Case:
    """A network of 24 units, or of 8 where the Jacobian is not of a single loss."""
    size = 24 if by == "weights" else 8
    parts = 2 if cell is lstm else 1
    weights = rng.normal(size=(matrices, size, size + 4)) * 0.3
    start, sequence = rng.normal(size=(parts, size)) * 0.1, rng.normal(size=(min(steps, 100), 4))

    def run(start, sequence, weights):
        def step(h, x):
            h = cell(weights, h, x)
            return h, h[0]

        return lax.scan(step, tuple(start), sequence)

    def loss(start, sequence, weights):
        return jnp.sum(run(start, sequence, weights)[1] ** 2)

    def last(start, sequence, weights):
        return run(start, sequence, weights)[0][0]

    function, argnums = {"state": (last, (0,)), "inputs": (last, (1,)), "weights": (loss, (2,))}[by]
    return Case(function, (start, sequence, weights), parts * size, argnums, batched=1)


def hidden_by_inputs(rng: np.random.Generator, steps: int) -> Case:
    """All hidden states of a network, as a function of all its inputs."""
    weights = rng.normal(size=(1, 8, 12)) * 0.3

    def states(sequence):
        def step(h, x):
            (h,) = elman(weights, (h,), x)
            return h, h

        return lax.scan(step, jnp.zeros(8), sequence)[1]

    return Case(states, (rng.normal(size=(min(steps, 40), 4)),), 8)


# Filters


def _pendulum(mean):
    return jnp.stack([mean[0] + 0.05 * mean[1], mean[1] - 0.05 * jnp.sin(mean[0])])


def extended_kalman(rng: np.random.Generator, steps: int) -> Case:
    """The mean of an extended Kalman filter of a pendulum, from the assumed noises and the initial state."""

    def filtered(noises, start, measured):
        def step(carry, z):
            mean, covariance = carry
            a = jnp.array([[1.0, 0.05], [0.0, 1.0]]).at[1, 0].set(-0.05 * jnp.cos(mean[0]))
            mean, covariance = _pendulum(mean), a @ covariance @ a.T + noises[0] * jnp.eye(2)
            gain = covariance[:, 0] / (covariance[0, 0] + noises[1])
            mean = mean + gain * (z - jnp.sin(mean[0]))
            return (mean, covariance - jnp.outer(gain, covariance[0])), None

        return lax.scan(step, (start, jnp.eye(2)), measured)[0][0]

    return Case(filtered, (np.array([0.1, 0.5]), rng.normal(size=2), rng.normal(size=steps)), 6, (0, 1), batched=1)


def unscented_kalman(rng: np.random.Generator, steps: int) -> Case:
    """The same with sigma points, and an explicit Cholesky factor of a 2 × 2 matrix."""

    def filtered(noises, start, measured):
        def step(carry, z):
            mean, covariance = carry
            l00 = jnp.sqrt(covariance[0, 0])
            l10 = covariance[1, 0] / l00
            l11 = jnp.sqrt(covariance[1, 1] - l10 * l10)
            columns = jnp.sqrt(2.0) * jnp.stack([jnp.stack([l00, l10]), jnp.stack([jnp.zeros(()), l11])])
            points = jnp.concatenate([mean + columns, mean - columns])
            moved = jax.vmap(_pendulum)(points)
            mean = jnp.mean(moved, 0)
            away = moved - mean
            covariance = away.T @ away / 4 + noises[0] * jnp.eye(2)
            seen = jnp.sin(moved[:, 0])
            off = seen - jnp.mean(seen)
            gain = away.T @ off / 4 / (off @ off / 4 + noises[1])
            mean = mean + gain * (z - jnp.mean(seen))
            return (mean, covariance - jnp.outer(gain, gain) * (off @ off / 4 + noises[1])), None

        return lax.scan(step, (start, jnp.eye(2)), measured)[0][0]

    return Case(filtered, (np.array([0.1, 0.5]), rng.normal(size=2), rng.normal(size=steps)), 6, (0, 1), batched=1)


# Iterations of unknown length, branches, nested loops


def newton(rng: np.random.Generator, steps: int) -> Case:
    """The intersection of two circles from their centres and radii, iterated until the residual is small."""

    def meeting(p):
        def residual(x):
            return jnp.stack(
                [(x[0] - p[0]) ** 2 + (x[1] - p[1]) ** 2 - p[2], (x[0] - p[3]) ** 2 + (x[1] - p[4]) ** 2 - p[5]]
            )

        def step(x):
            (a, b), (c, d) = jax.jacfwd(residual)(x)
            r = residual(x)
            return x - jnp.stack([d * r[0] - b * r[1], a * r[1] - c * r[0]]) / (a * d - b * c)

        small = 10 * jnp.finfo(p.dtype).eps
        return lax.while_loop(lambda x: jnp.max(jnp.abs(residual(x))) > small, step, jnp.array([0.6, 0.9]))

    return Case(meeting, (np.array([0.0, 0.0, 1.0, 1.0, 0.2, 1.0]) + 0.05 * rng.normal(size=6),), 2)


def fixed_point(rng: np.random.Generator, steps: int) -> Case:
    """The state that a network of six units converges to, from its inputs."""
    weights = rng.normal(size=(6, 6)) * 0.2

    def settled(x):
        start, small = (jnp.zeros(6), jnp.ones(6)), 1e4 * jnp.finfo(x.dtype).eps

        def step(pair):
            return jnp.tanh(weights @ pair[0] + x), pair[0]

        return lax.while_loop(lambda pair: jnp.max(jnp.abs(pair[0] - pair[1])) > small, step, start)[0]

    return Case(settled, (rng.normal(size=6),), 12)


def contact(rng: np.random.Generator, steps: int) -> Case:
    """A ball that falls and bounces off the floor, from its initial state and the stiffness of the floor."""

    def rolled_out(start, floor):
        def step(state, _):
            position, velocity = state[:2], state[2:]
            push = lax.cond(
                position[1] < 0,
                lambda q, v: jnp.stack([-floor[2] * v[0], -floor[0] * q[1] - floor[1] * v[1]]),
                lambda q, v: jnp.zeros(2),
                position, velocity,
            )  # fmt: skip
            velocity = velocity + 0.01 * (push - jnp.array([0.0, 9.81]))
            return jnp.concatenate([position + 0.01 * velocity, velocity]), None

        return lax.scan(step, start, None, length=steps)[0]

    return Case(rolled_out, (np.array([0.0, 0.3, 1.0, 0.5]), np.array([900.0, 4.0, 2.0])), 4, (0, 1))


def nested(rng: np.random.Generator, steps: int) -> Case:
    """A control that is held constant during ten small steps."""

    def driven(start, controls):
        def held(y, u):
            def step(y, _):
                return y + 0.005 * jnp.stack([y[1], u - jnp.sin(y[0]) - 0.1 * y[1]]), None

            return lax.scan(step, y, None, length=10)[0], None

        return lax.scan(held, start, controls)[0]

    return Case(driven, (rng.normal(size=2), rng.normal(size=max(steps // 10, 2))), 2, (0, 1))


def _cases() -> dict[str, Callable[[np.random.Generator, int], Case]]:
    found: dict[str, Callable[[np.random.Generator, int], Case]] = {}
    for field in FIELDS:
        for step, by in ((runge_kutta, "state"), (runge_kutta, "parameters"), (dormand_prince, "both")):
            found[f"{field.__name__}, {step.__name__}, by {by}"] = partial(integrated, field, step, by)
    for cell, matrices in ((elman, 1), (gru, 3), (lstm, 4)):
        for by in ("state", "inputs", "weights"):
            found[f"{cell.__name__} by {by}"] = partial(network, cell, matrices, by)
    for case in (hidden_by_inputs, extended_kalman, unscented_kalman, newton, fixed_point, contact, nested):
        found[case.__name__.replace("_", " ")] = case
    return found


CASES = _cases()
