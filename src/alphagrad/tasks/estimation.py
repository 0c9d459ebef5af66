"""Estimation: cameras and filters."""

import jax.numpy as jnp


def _rotated(quaternion, point):
    """A point turned by a quaternion, which need not have length 1."""
    w, v = quaternion[0], quaternion[1:]
    scale = jnp.sum(quaternion**2)
    twice = 2 * jnp.cross(v, point) / scale
    return point + w * twice + jnp.cross(v, twice)


def bundle_residual(quaternion, translation, focal, k1, k2, point, observed):
    """Difference between the predicted position of a point in a camera with radial distortion and the observed one."""
    seen = _rotated(quaternion, point) + translation
    image = -seen[:2] / seen[2]
    r2 = jnp.sum(image**2)
    return focal * (1 + k1 * r2 + k2 * r2**2) * image - observed


def kalman_update(state, covariance, position, noise, process_noise, dt):
    """Prediction and update of a filter for position and velocity from one measured position."""
    p00, p01, p11 = covariance[0, 0], covariance[0, 1], covariance[1, 1]
    x = state[0] + dt * state[1]
    q00 = p00 + 2 * dt * p01 + dt**2 * p11 + process_noise * dt**3 / 3
    q01 = p01 + dt * p11 + process_noise * dt**2 / 2
    q11 = p11 + process_noise * dt
    innovation = position - x
    variance = q00 + noise
    gain0, gain1 = q00 / variance, q01 / variance
    mean = jnp.stack([x + gain0 * innovation, state[1] + gain1 * innovation])
    likelihood = -0.5 * (innovation**2 / variance + jnp.log(2 * jnp.pi * variance))
    return mean, (1 - gain0) * q00, (1 - gain0) * q01, q11 - gain1 * q01, likelihood
