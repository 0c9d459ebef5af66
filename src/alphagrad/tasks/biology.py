"""Biology: populations and neurons."""

import jax.numpy as jnp

from .runge_kutta import runge_kutta_step


def lotka_volterra_step(prey, predators, growth, predation, efficiency, death):
    """Two populations a tenth of a unit of time later."""

    def rates(a, b):
        return growth * a - predation * a * b, efficiency * a * b - death * b

    return runge_kutta_step(rates, (prey, predators), 0.1)


def _opening(v, offset, slope):
    """The rate (v + offset)/slope / (1 - exp(...)) by which channels open; singular only at v = -offset."""
    u = (v + offset) / slope
    return u / (1 - jnp.exp(-u))


def hodgkin_huxley(v, m, h, n, current):
    """Rates of the membrane potential (in mV) and of the gates of the squid's giant axon."""
    sodium = 120 * m**3 * h * (v - 50)
    potassium = 36 * n**4 * (v + 77)
    leak = 0.3 * (v + 54.387)
    dv = current - sodium - potassium - leak
    dm = _opening(v, 40, 10) * (1 - m) - 4 * jnp.exp(-(v + 65) / 18) * m
    dh = 0.07 * jnp.exp(-(v + 65) / 20) * (1 - h) - h / (1 + jnp.exp(-(v + 35) / 10))
    dn = 0.1 * _opening(v, 55, 10) * (1 - n) - 0.125 * jnp.exp(-(v + 65) / 80) * n
    return dv, dm, dh, dn
