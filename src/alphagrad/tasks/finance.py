"""Computational finance: the Black-Scholes price of a call option and its greeks."""

import jax.numpy as jnp
from jax.scipy.special import erf

import graphax as gx


def _normal_cdf(z):
    return (1 + erf(z / jnp.sqrt(2.0))) / 2


def black_scholes_price(s, k, r, sigma, t):
    """Price of a call on a stock at ``s`` with strike ``k``, rate ``r``, volatility ``sigma`` and maturity ``t``."""
    f = jnp.exp(r * t) * s
    d1 = (jnp.log(f / k) + sigma**2 / 2 * t) / (sigma * jnp.sqrt(t))
    d2 = d1 - sigma * jnp.sqrt(t)
    return jnp.exp(-r * t) * (f * _normal_cdf(d1) - k * _normal_cdf(d2))


# Use XLA, so that the function to differentiate consists of ordinary JAX operations.
_greeks = gx.jacve(black_scholes_price, order="rev", argnums=(0, 1, 2, 3, 4), backend="xla")


def black_scholes_jacobian(s, k, r, sigma, t):
    """The five first-order greeks. The Jacobian of this function contains those of second order."""
    return _greeks(s, k, r, sigma, t)


def sabr_volatility(forward, strike, maturity, alpha, beta, rho, nu):
    """Implied volatility of the SABR model by the expansion of Hagan and others, away from the money."""
    mean = (forward * strike) ** ((1 - beta) / 2)
    moneyness = jnp.log(forward / strike)
    skew = (1 - beta) ** 2 * moneyness**2
    z = nu / alpha * mean * moneyness
    chi = jnp.log((jnp.sqrt(1 - 2 * rho * z + z**2) + z - rho) / (1 - rho))
    correction = (
        (1 - beta) ** 2 / 24 * alpha**2 / mean**2 + rho * beta * nu * alpha / (4 * mean) + (2 - 3 * rho**2) / 24 * nu**2
    )
    return alpha / (mean * (1 + skew / 24 + skew**2 / 1920)) * (z / chi) * (1 + correction * maturity)
