"""Mechanics: pendulums, orbits, rods and elastic solids."""

import jax.numpy as jnp

from .runge_kutta import runge_kutta_step

GRAVITY = 9.81


def _pendulum_rates(a, b, p, q):
    """Angular velocities and accelerations of two equal rods of length 1 with a mass of 1 at the end of each."""
    delta = a - b
    sine, cosine = jnp.sin(delta), jnp.cos(delta)
    denominator = 2 - cosine**2
    dp = (-sine * (p**2 * cosine + q**2) - GRAVITY * (2 * jnp.sin(a) - jnp.sin(b) * cosine)) / denominator
    dq = (sine * (2 * p**2 + q**2 * cosine) + 2 * GRAVITY * (jnp.sin(a) * cosine - jnp.sin(b))) / denominator
    return p, q, dp, dq


def double_pendulum_step(a, b, p, q):
    """Angles and angular velocities of a double pendulum a fiftieth of a second later."""
    return runge_kutta_step(_pendulum_rates, (a, b, p, q), 0.02)


def orbit_acceleration(position, mu, j2):
    """Acceleration of a satellite by an oblate planet of radius 1: Newton's law and the J2 term."""
    x, y, z = position[0], position[1], position[2]
    r2 = x**2 + y**2 + z**2
    r = jnp.sqrt(r2)
    central = -mu / (r2 * r)
    oblate = 1.5 * j2 * mu / (r2**2 * r)
    flattening = 5 * z**2 / r2
    return (
        central * x + oblate * x * (flattening - 1),
        central * y + oblate * y * (flattening - 1),
        central * z + oblate * z * (flattening - 3),
    )


def _determinant(f):
    return (
        f[0, 0] * (f[1, 1] * f[2, 2] - f[1, 2] * f[2, 1])
        - f[0, 1] * (f[1, 0] * f[2, 2] - f[1, 2] * f[2, 0])
        + f[0, 2] * (f[1, 0] * f[2, 1] - f[1, 1] * f[2, 0])
    )


def neo_hookean_stress(f, shear, bulk):
    """Cauchy stress of a compressible neo-Hookean solid under the deformation gradient ``f``."""
    j = _determinant(f)
    b = f @ f.T
    deviator = b - jnp.trace(b) / 3 * jnp.eye(3, dtype=b.dtype)
    return shear * j ** (-5 / 3) * deviator + bulk * (j - 1) * jnp.eye(3, dtype=b.dtype)


def elastic_rod_tip(curvatures, torque, stiffness):
    """The tip of an inextensible elastic rod of six segments, and its bending energy minus the work of the torque."""
    step = 1.0 / curvatures.shape[0]
    angles = step * (jnp.cumsum(curvatures) - curvatures / 2)
    x = step * jnp.sum(jnp.cos(angles))
    y = step * jnp.sum(jnp.sin(angles))
    energy = 0.5 * stiffness * step * jnp.sum(curvatures**2) - torque * step * jnp.sum(curvatures)
    return x, y, energy
