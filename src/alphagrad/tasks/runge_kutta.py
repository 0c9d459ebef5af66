"""Numerical integration of ordinary differential equations."""


def runge_kutta_step(rates, state, dt):
    """One step of the classical method of fourth order."""
    k1 = rates(*state)
    k2 = rates(*(s + dt / 2 * k for s, k in zip(state, k1, strict=True)))
    k3 = rates(*(s + dt / 2 * k for s, k in zip(state, k2, strict=True)))
    k4 = rates(*(s + dt * k for s, k in zip(state, k3, strict=True)))
    slopes = zip(state, k1, k2, k3, k4, strict=True)
    return tuple(s + dt / 6 * (a + 2 * b + 2 * c + d) for s, a, b, c, d in slopes)
