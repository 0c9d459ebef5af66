"""A shock tube: the Euler equations in one dimension, implicit in time, with Roe's flux and its exact Jacobian.

    python examples/shock_tube.py [--cells 400] [--plot shock_tube.png]

Each step solves the linearised implicit Euler equations, a block tridiagonal system of the flux Jacobians.
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np
from comparing import jacobians, race

jax.config.update("jax_enable_x64", True)

GAMMA = 1.4
LEFT, RIGHT = (1.0, 0.0, 1.0), (0.125, 0.0, 0.1)
TIME, COURANT = 0.2, 1.5


def flux(rho, momentum, energy):
    velocity = momentum / rho
    pressure = (GAMMA - 1) * (energy - 0.5 * momentum * velocity)
    return momentum, momentum * velocity + pressure, (energy + pressure) * velocity, velocity, pressure


def roe_flux(l0, l1, l2, r0, r1, r2):
    """The flux between two cells. Absolute wave speeds are smoothed at zero, which prevents expansion shocks."""
    f0, f1, f2, vl, pl = flux(l0, l1, l2)
    g0, g1, g2, vr, pr = flux(r0, r1, r2)
    wl, wr = jnp.sqrt(l0), jnp.sqrt(r0)
    u = (wl * vl + wr * vr) / (wl + wr)
    h = (wl * (l2 + pl) / l0 + wr * (r2 + pr) / r0) / (wl + wr)
    rho = wl * wr
    a = jnp.sqrt((GAMMA - 1) * (h - 0.5 * u * u))
    slow, middle, fast = (jnp.sqrt(s * s + (0.1 * a) ** 2) for s in (u - a, u, u + a))
    dp, dv = pr - pl, vr - vl
    first = slow * (dp - rho * a * dv) / (2 * a * a)
    second = middle * (r0 - l0 - dp / (a * a))
    third = fast * (dp + rho * a * dv) / (2 * a * a)
    d0 = first + second + third
    d1 = first * (u - a) + second * u + third * (u + a)
    d2 = first * (h - u * a) + second * 0.5 * u * u + third * (h + u * a)
    return 0.5 * (f0 + g0 - d0), 0.5 * (f1 + g1 - d1), 0.5 * (f2 + g2 - d2)


def conserved(rho, velocity, pressure):
    return jnp.array([rho, rho * velocity, pressure / (GAMMA - 1) + 0.5 * rho * velocity**2])


def implicit_step(jacobian, ratio, state):
    """One step of linearised implicit Euler; ``ratio`` is the time step over the width of a cell."""
    walls = jnp.concatenate([state[:1], state, state[-1:]])
    sides = [walls[:-1, n] for n in range(3)] + [walls[1:, n] for n in range(3)]
    fluxes = jnp.stack(roe_flux(*sides), -1)
    # [faces, fluxes, 6]: with respect to the states on the left and on the right of each face.
    matrix = jnp.stack([jnp.stack(row, -1) for row in jax.vmap(jacobian)(*sides)], -2)
    by_left, by_right = matrix[..., :3], matrix[..., 3:]
    lower = -ratio * by_left[:-1]
    upper = ratio * by_right[1:]
    diagonal = jnp.eye(3) + ratio * (by_left[1:] - by_right[:-1])
    # Beyond each wall, the state is that of the last cell.
    diagonal = diagonal.at[0].add(lower[0]).at[-1].add(upper[-1])
    return state + block_tridiagonal_solve(lower, diagonal, upper, -ratio * (fluxes[1:] - fluxes[:-1]))


def block_tridiagonal_solve(lower, diagonal, upper, right):
    """Thomas' algorithm with 3 × 3 blocks."""

    def forward(carry, row):
        factor, value = carry
        low, middle, up, wanted = row
        pivot = middle - low @ factor
        both = jnp.linalg.solve(pivot, jnp.concatenate([up, (wanted - low @ value)[:, None]], 1))
        return (both[:, :3], both[:, 3]), (both[:, :3], both[:, 3])

    def backward(later, row):
        factor, value = row
        solved = value - factor @ later
        return solved, solved

    _, rows = jax.lax.scan(forward, (jnp.zeros((3, 3)), jnp.zeros(3)), (lower, diagonal, upper, right))
    return jax.lax.scan(backward, jnp.zeros(3), rows, reverse=True)[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=400)
    parser.add_argument("--plot", help="Draw density, velocity and pressure to this file.")
    options = parser.parse_args()
    cells = options.cells
    start = jnp.stack([conserved(*(LEFT if n < cells // 2 else RIGHT)) for n in range(cells)])
    # The fastest wave has about twice the speed of sound.
    ratio = COURANT / 2.2
    steps = int(TIME * cells / ratio)

    def solve(jacobian, state):
        return jax.lax.scan(lambda u, _: (implicit_step(jacobian, ratio, u), None), state, length=steps)[0]

    title = f"{steps} implicit steps on {cells} cells"
    end = np.asarray(race(title, solve, jacobians(roe_flux, tuple(range(6))), start, repeat=5))
    lost = abs(end[:, 0].sum() - np.asarray(start)[:, 0].sum()) / cells
    *_, velocity, pressure = flux(*end.T)
    plateau = float(np.asarray(pressure)[int(0.62 * cells)])
    print(f"mass lost: {lost:.1e}; pressure behind the contact {plateau:.4f} (exact: 0.3031)")
    if options.plot:
        draw(options.plot, end[:, 0], velocity, pressure)


def draw(path, density, velocity, pressure):
    import matplotlib.pyplot as plt

    x = (np.arange(len(density)) + 0.5) / len(density)
    fig, axes = plt.subplots(1, 3, figsize=(10, 3), layout="constrained")
    for ax, values, name in zip(axes, (density, velocity, pressure), ("density", "velocity", "pressure"), strict=True):
        ax.plot(x, values)
        ax.set(xlabel="x", title=name)
    fig.savefig(path)


if __name__ == "__main__":
    main()
