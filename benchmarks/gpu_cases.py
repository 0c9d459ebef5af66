"""Functions of small arrays from different fields, as users write them. `gpu.py` measures them, besides the tasks."""

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf

from alphagrad.tasks.middle_functions import end_effector, inverse_dynamics


@dataclass(frozen=True)
class ArrayCase:
    """A function of one array, an example point, and the number of points to measure."""

    function: Callable
    point: np.ndarray
    batch: int


def rotation(w):
    """The matrix of a rotation vector."""
    angle = jnp.sqrt(w @ w + 1e-12)
    k = w / angle
    cross = jnp.array([[0, -k[2], k[1]], [k[2], 0, -k[0]], [-k[1], k[0], 0]])
    return jnp.eye(3, dtype=w.dtype) + jnp.sin(angle) * cross + (1 - jnp.cos(angle)) * (cross @ cross)


def turned(q, v):
    """A vector rotated by a quaternion."""
    t = 2 * jnp.cross(q[1:], v)
    return v + q[0] * t + jnp.cross(q[1:], t)


def camera(x):
    """The image of a point, from rotation, translation, focal length, two distortions and the point."""
    p = rotation(x[:3]) @ x[9:12] + x[3:6]
    p = -p[:2] / p[2]
    r = p @ p
    return x[6] * (1 + x[7] * r + x[8] * r * r) * p


def diode_ladder(v):
    """Currents into twelve nodes of a ladder of resistors and diodes."""
    left, right = jnp.concatenate([jnp.ones(1, v.dtype), v[:-1]]), jnp.concatenate([v[1:], jnp.zeros(1, v.dtype)])
    return (left - v) / 10.0 - (v - right) / 10.0 - 1e-3 * (jnp.exp(v / 0.4) - 1) - 1e-3 * v


def hllc(x):
    """The HLLC flux between two states of a gas in three dimensions."""
    gamma = 1.4
    left, right = x[:5], x[5:]

    def primitive(u):
        velocity = u[1:4] / u[0]
        return u[0], velocity, (gamma - 1) * (u[4] - 0.5 * u[0] * velocity @ velocity)

    def flux(u, velocity, p):
        return u * velocity[0] + p * jnp.stack([0.0 * p, 1.0 + 0 * p, 0 * p, 0 * p, velocity[0]])

    (rl, vl, pl), (rr, vr, pr) = primitive(left), primitive(right)
    cl, cr = jnp.sqrt(gamma * pl / rl), jnp.sqrt(gamma * pr / rr)
    sl, sr = jnp.minimum(vl[0] - cl, vr[0] - cr), jnp.maximum(vl[0] + cl, vr[0] + cr)
    middle = (pr - pl + rl * vl[0] * (sl - vl[0]) - rr * vr[0] * (sr - vr[0])) / (rl * (sl - vl[0]) - rr * (sr - vr[0]))

    def star(u, r, v, p, s):
        factor = r * (s - v[0]) / (s - middle)
        energy = u[4] / r + (middle - v[0]) * (middle + p / (r * (s - v[0])))
        return factor * jnp.stack([1.0 + 0 * s, middle, v[1], v[2], energy])

    fl, fr = flux(left, vl, pl), flux(right, vr, pr)
    fls, frs = fl + sl * (star(left, rl, vl, pl, sl) - left), fr + sr * (star(right, rr, vr, pr, sr) - right)
    return jnp.where(sl >= 0, fl, jnp.where(middle >= 0, fls, jnp.where(sr >= 0, frs, fr)))


def preintegration(x):
    """Orientation, velocity and position, from five samples of an inertial sensor and the biases."""
    q, velocity, position = x[:4], x[4:7], x[7:10]
    gyro = jnp.asarray(np.linspace(-0.3, 0.4, 15).reshape(5, 3), x.dtype)
    accelerations = jnp.asarray(np.cos(np.arange(15.0)).reshape(5, 3), x.dtype)
    for w, a in zip(gyro, accelerations, strict=True):
        h = 0.01
        p, v = q[0], q[1:]
        step = jnp.concatenate([jnp.stack([-v @ w]), p * w + jnp.cross(v, w)])
        q = q + 0.5 * h * step
        q = q / jnp.sqrt(q @ q)
        there = turned(q, a - 0.01 * velocity)
        position = position + h * velocity + 0.5 * h * h * there
        velocity = velocity + h * there
    return jnp.concatenate([q, velocity, position])


def atoms(x):
    """Forces between four atoms."""
    r = x.reshape(4, 3)
    force = []
    for i in range(4):
        total = jnp.zeros(3, x.dtype)
        for j in range(4):
            if i != j:
                d = r[i] - r[j]
                s = 1.0 / (d @ d)
                total = total + 24 * (2 * s**7 - s**4) * d
        force.append(total)
    return jnp.concatenate(force)


def hyperelastic(x):
    """The stress of a compressible rubber, from its deformation."""
    f = jnp.eye(3, dtype=x.dtype) + x.reshape(3, 3)
    j = jnp.dot(f[0], jnp.cross(f[1], f[2]))
    inverse = jnp.stack([jnp.cross(f[1], f[2]), jnp.cross(f[2], f[0]), jnp.cross(f[0], f[1])]) / j
    return (2.0 * (f - inverse) + 3.0 * jnp.log(j) * inverse).reshape(-1)


def kinetics(x):
    """Rates of twelve species and the temperature in eighteen reactions."""
    y, temperature = x[:12], x[12]
    rng = np.random.default_rng(3)
    rates = []
    for n in range(18):
        a, b, c, d = rng.choice(12, 4, replace=False)
        k = np.exp(rng.normal()) * jnp.exp(-(1 + 0.1 * n) / temperature)
        rate = k * (y[a] * y[b] - 0.3 * y[c] * y[d])
        rates.append((rate, a, b, c, d))
    total = [jnp.zeros((), x.dtype)] * 12
    for rate, a, b, c, d in rates:
        total[a], total[b], total[c], total[d] = total[a] - rate, total[b] - rate, total[c] + rate, total[d] + rate
    return jnp.stack([*total, sum(rate for rate, *_ in rates)])


def quadrotor(x):
    """The dynamics of a quadrotor, from position, quaternion, velocity, rates and four thrusts."""
    q, v, w, thrust = x[3:7], x[7:10], x[10:13], x[13:]
    acceleration = turned(q, jnp.stack([0 * q[0], 0 * q[0], jnp.sum(thrust)])) - jnp.asarray([0, 0, 9.81], x.dtype)
    inertia = jnp.asarray([0.01, 0.012, 0.02], x.dtype)
    torque = jnp.stack(
        [
            0.2 * (thrust[0] - thrust[2]),
            0.2 * (thrust[1] - thrust[3]),
            0.02 * (thrust[0] - thrust[1] + thrust[2] - thrust[3]),
        ]
    )
    spin = 0.5 * jnp.concatenate([jnp.stack([-q[1:] @ w]), q[0] * w + jnp.cross(q[1:], w)])
    return jnp.concatenate(
        [v, spin, acceleration - 0.1 * v * jnp.sqrt(v @ v + 1e-3), (torque - jnp.cross(w, inertia * w)) / inertia]
    )


def bicycle(x):
    """A car with Pacejka tyres, from speed, slip, yaw rate, heading, position, steering and drive."""
    vx, vy, r, heading, _, _, steering, drive = x
    front, rear = steering - jnp.arctan2(vy + 1.2 * r, vx), -jnp.arctan2(vy - 1.4 * r, vx)
    forces = [4000 * jnp.sin(1.4 * jnp.arctan(8 * a - 0.2 * (8 * a - jnp.arctan(8 * a)))) for a in (front, rear)]
    return jnp.stack([
        drive - forces[0] * jnp.sin(steering) / 1500 + vy * r,
        (forces[0] * jnp.cos(steering) + forces[1]) / 1500 - vx * r,
        (1.2 * forces[0] * jnp.cos(steering) - 1.4 * forces[1]) / 2500,
        r, vx * jnp.cos(heading) - vy * jnp.sin(heading), vx * jnp.sin(heading) + vy * jnp.cos(heading),
    ])  # fmt: skip


def magnetic_flux(x):
    """The flux of ideal magnetohydrodynamics."""
    rho, m, energy, b = x[0], x[1:4], x[4], x[5:]
    v = m / rho
    p = (2.0 / 3.0) * (energy - 0.5 * rho * v @ v - 0.5 * b @ b)
    total = p + 0.5 * b @ b
    momentum = m * v[0] - b * b[0] + total * jnp.asarray([1, 0, 0], x.dtype)
    return jnp.concatenate(
        [m[:1], momentum, jnp.stack([(energy + total) * v[0] - b[0] * (b @ v)]), b * v[0] - v * b[0]]
    )


def neuron(x):
    """The Hodgkin-Huxley equations: rates of voltage and three gates, from these and six constants."""
    v, m, h, n = x[:4]
    gna, gk, gl, ena, ek, el = x[4:]
    am, bm = 0.1 * (v + 40) / (1 - jnp.exp(-(v + 40) / 10)), 4 * jnp.exp(-(v + 65) / 18)
    ah, bh = 0.07 * jnp.exp(-(v + 65) / 20), 1 / (1 + jnp.exp(-(v + 35) / 10))
    an, bn = 0.01 * (v + 55) / (1 - jnp.exp(-(v + 55) / 10)), 0.125 * jnp.exp(-(v + 65) / 80)
    current = gna * m**3 * h * (v - ena) + gk * n**4 * (v - ek) + gl * (v - el)
    return jnp.stack([-current, am * (1 - m) - bm * m, ah * (1 - h) - bh * h, an * (1 - n) - bn * n])


def epidemic(x):
    """Susceptible, infected and recovered people in eight age groups with contacts between them."""
    s, i, r = x.reshape(3, 8)
    meeting = jnp.asarray(np.exp(-0.3 * np.abs(np.subtract.outer(np.arange(8), np.arange(8)))), x.dtype)
    force = s * (meeting @ i) / (1 + jnp.sum(i))
    return jnp.concatenate([-force + 0.01 * r, force - 0.1 * i, 0.1 * i - 0.01 * r])


def option(x):
    """The Black-Scholes price of a call with a volatility smile, its delta and its vega."""
    spot, strike, rate, time, a, b, c = x
    moneyness = jnp.log(strike / spot)
    vol = a + b * moneyness + c * moneyness**2
    root = vol * jnp.sqrt(time)
    d1 = (-moneyness + rate * time) / root + 0.5 * root
    below = [0.5 * (1 + erf(z * np.sqrt(0.5))) for z in (d1, d1 - root)]
    discount = jnp.exp(-rate * time)
    return jnp.stack(
        [spot * below[0] - strike * discount * below[1], below[0], spot * jnp.sqrt(time) * jnp.exp(-0.5 * d1**2)]
    )


def implicit_newton(x):
    """Two steps of Newton's method for three equations with three parameters, with a Jacobian and solve by hand."""
    y, p = x[:3], x[3:]
    for _ in range(2):
        residual = jnp.stack(
            [y[0] + 0.1 * y[1] * y[2] - p[0], y[1] + jnp.sin(y[0]) - p[1], y[2] + 0.2 * y[0] * y[1] - p[2]]
        )
        matrix = jnp.array([[1.0, 0.1 * y[2], 0.1 * y[1]], [jnp.cos(y[0]), 1.0, 0.0], [0.2 * y[1], 0.2 * y[0], 1.0]])
        y = y - jnp.linalg.solve(matrix, residual)
    return y


def pendulums(x):
    """Accelerations of a double pendulum on a cart, from its state and constants."""
    a, b, da, db, m1, m2, l1, l2, g, u = x
    d = a - b
    common = 2 * m1 + m2 - m2 * jnp.cos(2 * d)
    first = (
        -g * (2 * m1 + m2) * jnp.sin(a)
        - m2 * g * jnp.sin(a - 2 * b)
        - 2 * jnp.sin(d) * m2 * (db**2 * l2 + da**2 * l1 * jnp.cos(d))
    ) / (l1 * common)
    second = (
        2
        * jnp.sin(d)
        * (da**2 * l1 * (m1 + m2) + g * (m1 + m2) * jnp.cos(a) + db**2 * l2 * m2 * jnp.cos(d))
        / (l2 * common)
    )
    return jnp.stack([da, db, first + u, second])


def _near(count, seed, centre=0.5, spread=0.2):
    return np.float32(centre + spread * np.random.default_rng(seed).normal(size=count))


MILLION = 1 << 20
CASES = {
    "camera 12 -> 2": ArrayCase(camera, _near(12, 0) + np.float32([0] * 5 + [4] + [0] * 6), 2 * MILLION),
    "HLLC flux 10 -> 5": ArrayCase(hllc, np.float32([1, 0.3, 0.1, 0.2, 2.5, 0.8, 0.2, 0.1, 0.1, 2.0]), MILLION),
    "preintegration 10 -> 10": ArrayCase(preintegration, _near(10, 1), MILLION),
    "diode ladder 12 -> 12": ArrayCase(diode_ladder, _near(12, 2), MILLION),
    "inverse dynamics 21 -> 7": ArrayCase(inverse_dynamics, _near(21, 3), 131_072),
    "chain of 30 joints": ArrayCase(end_effector, _near(30, 4), 262_144),
    "four atoms 12 -> 12": ArrayCase(atoms, np.float32([0, 0, 0, 1.1, 0, 0, 0, 1.2, 0, 0.3, 0.2, 1.1]), MILLION),
    "hyperelastic 9 -> 9": ArrayCase(hyperelastic, _near(9, 5, 0.0, 0.1), MILLION),
    "kinetics 13 -> 13": ArrayCase(kinetics, _near(13, 6), MILLION),
    "quadrotor 17 -> 13": ArrayCase(quadrotor, _near(17, 7), MILLION),
    "bicycle 8 -> 6": ArrayCase(bicycle, np.float32([20, 0.5, 0.1, 0.3, 0, 0, 0.05, 0.2]), 2 * MILLION),
    "magnetic flux 8 -> 8": ArrayCase(magnetic_flux, np.float32([1, 0.2, 0.1, 0.3, 4, 0.5, 0.4, 0.2]), MILLION),
    "neuron 10 -> 4": ArrayCase(neuron, np.float32([-60, 0.1, 0.6, 0.3, 120, 36, 0.3, 50, -77, -54]), 2 * MILLION),
    "epidemic 24 -> 24": ArrayCase(epidemic, np.abs(_near(24, 8)), MILLION // 4),
    "option 7 -> 3": ArrayCase(option, np.float32([100, 105, 0.02, 0.7, 0.2, -0.1, 0.3]), 2 * MILLION),
    "Newton 6 -> 3": ArrayCase(implicit_newton, _near(6, 9), 2 * MILLION),
    "double pendulum 10 -> 4": ArrayCase(
        pendulums, np.float32([0.3, 0.5, 0.1, -0.2, 1, 2, 1, 0.7, 9.8, 0.1]), 2 * MILLION
    ),
}
