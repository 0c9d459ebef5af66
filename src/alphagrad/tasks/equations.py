"""Systems of nonlinear equations from the MINPACK-2 collection."""

import jax.numpy as jnp

SIGMA = 1.0


def human_heart_dipole(x1, x2, x3, x4, x5, x6, x7, x8):
    """Residuals of the dipole model of the electrolytic conduction of the human heart."""
    f1 = x1 + x2 - SIGMA
    f2 = x3 + x4 - SIGMA
    f3 = x5 * x1 + x6 * x2 - x7 * x3 - x8 * x4 - SIGMA
    f4 = x7 * x1 + x8 * x2 + x5 * x3 + x6 * x4 - SIGMA
    a = x5**2 - x7**2
    b = x6**2 - x8**2
    f5 = x1 * a - 2 * x3 * x5 * x7 + x2 * b - 2 * x4 * x6 * x8 - SIGMA
    f6 = x3 * a - 2 * x1 * x5 * x7 + x4 * b - 2 * x2 * x6 * x8 - SIGMA
    c = x5 * (x5**2 - 3 * x7**2)
    d = x7 * (x7**2 - 3 * x5**2)
    e = x6 * (x6**2 - 3 * x8**2)
    f = x8 * (x8**2 - 3 * x6**2)
    f7 = x1 * c + x3 * d + x2 * e + x4 * f - SIGMA
    f8 = x3 * c - x1 * d + x4 * e - x2 * f - SIGMA
    return f1, f2, f3, f4, f5, f6, f7, f8


def propane_combustion(x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11):
    """Residuals of the chemical equilibrium of the full combustion of propane."""
    p, r = 40.0, 10.0
    s = jnp.sqrt(p / x11)
    return (
        x1 + x4 - 3,
        2 * x1 + x2 + x4 + x7 + x8 + x9 + 2 * x10 - r,
        2 * x2 + 2 * x5 + x6 + x7 - 8,
        2 * x3 + x9 - 4 * r,
        x2 * x4 - x1 * x5,
        jnp.sqrt(x2 * x4) - jnp.sqrt(x1) * s * x6,
        jnp.sqrt(x1 * x2) - jnp.sqrt(x4) * x7 * s,
        x1 - x4 * x8 * p / x11,
        x1 * jnp.sqrt(x3) - x4 * x9 * s,
        x1**2 - x4**2 * x10 * p / x11,
        x11 - x1 - x2 - x3 - x4 - x5 - x6 - x7 - x8 - x9 - x10,
    )


def chebyquad(x):
    """Differences between means and integrals of the first Chebyshev polynomials over the points ``x``."""
    t = 2 * x - 1
    polynomials = [jnp.ones_like(t), t]
    for _ in range(x.shape[0] - 1):
        polynomials.append(2 * t * polynomials[-1] - polynomials[-2])
    integrals = [0.0 if degree % 2 else -1 / (degree**2 - 1) for degree in range(1, x.shape[0] + 1)]
    return jnp.stack([jnp.mean(p) - value for p, value in zip(polynomials[1:], integrals, strict=True)])
