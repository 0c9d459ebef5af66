"""Camera calibration: find position, focal length and distortion of cameras from pictures of a known pattern.

    python examples/camera_calibration.py [--cameras 10000]

Every camera is a least-squares problem with 9 parameters and 24 residuals. It is solved in three ways: by optimistix's
LevenbergMarquardt, by the same solver of `graphax.solvers`, and by Gauss-Newton steps with `graphax.gauss_newton` as
one kernel.
"""

import argparse
import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np
import optimistix

import graphax as gx
from graphax import solvers
from graphax.table import table

jax.config.update("jax_enable_x64", True)

PATTERN = np.array([[x, y, 0.3 * x * y] for x in (-1.0, -0.3, 0.3, 1.0) for y in (-0.8, 0.0, 0.8)])
# Rotation, position, focal length and two coefficients of distortion.
USUAL = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 6.0, 1.0, 0.0, 0.0])


def seen(camera):
    """The positions at which a camera sees the points of the pattern."""
    turn, shift, (focal, first, second) = camera[:3], camera[3:6], camera[6:]
    angle = jnp.sqrt(turn @ turn + 1e-12)
    axis = turn / angle
    along = jnp.outer(PATTERN @ axis, axis)
    turned = jnp.cos(angle) * (PATTERN - along) + jnp.sin(angle) * jnp.cross(axis, PATTERN) + along + shift
    image = turned[:, :2] / turned[:, 2:]
    square = (image**2).sum(1, keepdims=True)
    return focal * (1 + first * square + second * square**2) * image


def residuals(camera, observed):
    return (seen(camera) - observed).ravel()


def by(library):
    solver = library.LevenbergMarquardt(1e-10, 1e-10)

    def calibrate(observed):
        return library.least_squares(residuals, solver, jnp.asarray(USUAL), observed, max_steps=64, throw=False).value

    return calibrate


def by_gauss_newton(observed):
    equations = gx.gauss_newton(residuals)

    def step(camera, _):
        found = equations(camera, observed)
        return camera - jnp.linalg.solve(found.matrix, found.gradient), None

    return jax.lax.scan(step, jnp.asarray(USUAL), length=12)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cameras", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    spread = np.array([0.1, 0.1, 0.1, 0.2, 0.2, 0.5, 0.1, 0.1, 0.1])
    cameras = USUAL + spread * rng.normal(size=(arguments.cameras, 9))
    observed = jax.vmap(seen)(jnp.asarray(cameras))
    ways = {
        "optimistix.LevenbergMarquardt": by(optimistix),
        "graphax.solvers.LevenbergMarquardt": by(solvers),
        "graphax.gauss_newton in a kernel": gx.kernel(by_gauss_newton),
    }
    functions = {name: jax.jit(jax.vmap(way)) for name, way in ways.items()}
    found = {name: np.asarray(function(observed)) for name, function in functions.items()}
    seconds = {name: [] for name in ways}
    for _ in range(arguments.repeat):
        for name, function in functions.items():
            start = time.perf_counter()
            jax.block_until_ready(function(observed))
            seconds[name].append(time.perf_counter() - start)
    errors = {name: np.abs(result - cameras).max(1) for name, result in found.items()}
    rows = [
        [name, f"{1e3 * statistics.median(seconds[name]):.0f} ms", f"{np.mean(error < 1e-6):.1%}"]
        for name, error in errors.items()
    ]
    print(table(f"{arguments.cameras:,} cameras", ["solver", "median time", "calibrated"], rows))


if __name__ == "__main__":
    main()
