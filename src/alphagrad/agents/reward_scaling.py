"""Monotonic maps that compress rewards of many orders of magnitude, and their inverses."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

EPSILON = 1e-3


class RewardScaling(NamedTuple):
    """A map of rewards and its exact inverse."""

    scale: Callable[[ArrayLike], jax.Array]
    unscale: Callable[[ArrayLike], jax.Array]


def scale_by_root(reward: ArrayLike) -> jax.Array:
    """``sign(r) (sqrt(|r| + 1) - 1) + ε r`` with ε = 0.001, close to a square root."""
    reward = jnp.asarray(reward)
    size = jnp.abs(reward)
    # sqrt(x + 1) - 1 without cancellation.
    return jnp.sign(reward) * (size / (jnp.sqrt(size + 1) + 1) + EPSILON * size)


def unscale_by_root(scaled: ArrayLike) -> jax.Array:
    """The inverse of `scale_by_root`."""
    scaled = jnp.asarray(scaled)
    size = jnp.abs(scaled)
    # With r = u (u + 2) the equation is ε u² + (1 + 2ε) u = |s|. This is the form of its solution without cancellation.
    linear = 1 + 2 * EPSILON
    root = 2 * size / (linear + jnp.sqrt(linear**2 + 4 * EPSILON * size))
    return jnp.sign(scaled) * root * (root + 2)


def scale_by_logarithm(reward: ArrayLike) -> jax.Array:
    """``sign(r) log(1 + |r|)``: a logarithm that is defined everywhere."""
    return jnp.sign(reward) * jnp.log1p(jnp.abs(reward))


def unscale_by_logarithm(scaled: ArrayLike) -> jax.Array:
    """The inverse of `scale_by_logarithm`."""
    return jnp.sign(scaled) * jnp.expm1(jnp.abs(scaled))


ROOT = RewardScaling(scale_by_root, unscale_by_root)
LOGARITHM = RewardScaling(scale_by_logarithm, unscale_by_logarithm)
IDENTITY = RewardScaling(jnp.asarray, jnp.asarray)
