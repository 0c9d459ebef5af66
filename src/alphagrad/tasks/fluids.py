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

    As in the paper's benchmark, the third wave speed is |u|. A flow solver would use |u - a|.
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


def _enthalpy(u0, u4, p):
    return (u4 + p) / u0


def _pressure_3d(u0, u, u4):
    return (GAMMA - 1) * (u4 - 0.5 * jnp.sum(u**2) / u0)


def _flux_3d(u, u4, v, p):
    return u[0:1], jnp.concatenate([p, jnp.zeros(2, p.dtype)]) + u * v, v[0:1] * (p + u4)


def _flux_differences_3d(du0, du, du4, t, h, q2, a2):
    """The jumps over the five waves, with the coefficients and speeds of the paper's benchmark."""
    a = jnp.sqrt(a2)
    t1, t2, t3 = t[0:1], t[1:2], t[2:3]
    du1, du2, du3 = du[0:1], du[1:2], du[2:3]
    lp = t1 + a
    l = t1  # noqa: E741  the name in the literature
    lm = t1 - a
    c3 = ((GAMMA - 1) / a2 * ((h - q2) * du0 + jnp.sum(t * du) - du4)) * l
    c2 = (du3 / t3 - du1) * l
    c1 = (du2 / t2 - du0) * l
    k1 = du0 - c3
    k2 = (du1 - t1 * du0) / a
    c0 = 0.5 * (k1 - k2) * lm
    c4 = 0.5 * (k1 + k2) * lp
    d0 = c0 + c3 + c4 * lp
    d1 = c0 * lm + c3 * t1 + c4 * lp
    d2 = c0 * t2 + c1 * t2 + c3 * t2 + c4 * t2
    d3 = c0 * t3 + c2 * t3 + c3 * t3 + c4 * t3
    d4 = c0 * (h - t1 * a) + c1 * t2**2 + c2 * t3**2 + c3 * 0.5 * q2 + c4 * (h + t1 * a)
    return d0, jnp.concatenate([d1, d2, d3]), d4


def roe_flux_3d(ul0, ul, ul4, ur0, ur, ur4):
    """Flux between two cells in space; densities and energies have shape (1,), momenta shape (3,)."""
    du0, du, du4 = ur0 - ul0, ur - ul, ur4 - ul4
    w = jnp.sqrt(ul0) + jnp.sqrt(ur0)
    vl = ul / ul0
    vr = ur / ur0
    t = (jnp.sqrt(ul0) * vl + jnp.sqrt(ur0) * vr) / w
    pl = _pressure_3d(ul0, ul, ul4)
    hl = _enthalpy(ul0, ul4, pl)
    pr = _pressure_3d(ur0, ur, ur4)
    hr = _enthalpy(ur0, ur4, pr)
    h = (jnp.sqrt(ul0) * hl + jnp.sqrt(ur0) * hr) / w
    q2 = jnp.sum(t**2)
    a2 = (GAMMA - 1) * (h - 0.5 * q2)
    differences = _flux_differences_3d(du0, du, du4, t, h, q2, a2)
    left = _flux_3d(ul, ul4, vl, pl)
    right = _flux_3d(ur, ur4, vr, pr)
    f0, f, f4 = (a + b for a, b in zip(left, right, strict=True))
    d0, d, d4 = differences
    return 0.5 * (f0 - d0), 0.5 * (f - d), 0.5 * (f4 - d4)


def _state_2d(q):
    density, momentum_x, momentum_y, energy = q[0], q[1], q[2], q[3]
    u, v = momentum_x / density, momentum_y / density
    return density, u, v, energy, (GAMMA - 1) * (energy - 0.5 * density * (u**2 + v**2))


def _side_of_contact(q, state, speed, contact):
    """Flux on one side of the contact wave: that of the cell and the jump over its outer wave."""
    density, u, v, energy, p = state
    flux = jnp.stack([density * u, density * u**2 + p, density * u * v, u * (energy + p)])
    factor = density * (speed - u) / (speed - contact)
    total = energy / density + (contact - u) * (contact + p / (density * (speed - u)))
    return flux + speed * (factor * jnp.stack([jnp.ones_like(u), contact, v, total]) - q)


def hllc_flux_2d(left, right):
    """Flux in x between two cells in the plane by the HLLC solver, where the flow is subsonic."""
    state_l, state_r = _state_2d(left), _state_2d(right)
    rho_l, u_l, _, _, p_l = state_l
    rho_r, u_r, _, _, p_r = state_r
    a_l, a_r = jnp.sqrt(GAMMA * p_l / rho_l), jnp.sqrt(GAMMA * p_r / rho_r)
    slow = jnp.minimum(u_l - a_l, u_r - a_r)
    fast = jnp.maximum(u_l + a_l, u_r + a_r)
    outflow_l, outflow_r = rho_l * (slow - u_l), rho_r * (fast - u_r)
    contact = (p_r - p_l + outflow_l * u_l - outflow_r * u_r) / (outflow_l - outflow_r)
    flux_l = _side_of_contact(left, state_l, slow, contact)
    flux_r = _side_of_contact(right, state_r, fast, contact)
    return jnp.where(contact >= 0, flux_l, flux_r)
