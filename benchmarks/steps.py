"""Whole solver steps as one kernel (`graphax.kernel`) and with plain JAX, measured alternately.

    python benchmarks/steps.py [--points 16384] [--threads 1] [--repeat 11] [--float64] [--solvers]

It measures an implicit step of a stiff reaction, Newton's method for 3, 6 and 12 unknowns, and linear systems alone. It
prints nanoseconds per point for `jax.jacfwd` with `jnp.linalg.solve` under `jax.jit(jax.vmap(...))` and for the same
function as a kernel with `jacve`, and their ratio with the promised one. Times are the minimum of several alternating
rounds. The last column is the time of the first call of the kernel, including compiling unless the kernel is on disk.
For linear systems it also compares residuals with LAPACK's, on random, graded and nearly singular matrices. Finally, it
compares the normal equations of least squares with their Jacobian alone.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import step_solvers


def median(function: Callable, args: Sequence[Any], repeat: int) -> float:
    import jax

    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        jax.block_until_ready(function(*args))
        times.append(time.perf_counter() - start)
    return float(np.median(times))


@dataclass(frozen=True)
class Line:
    """Two ways to compute the same at one point, the arguments of many points, and the promised ratio."""

    name: str
    plain: Callable
    ours: Callable
    args: Sequence[Any]
    promised: float | None = None
    tolerance: float | None = None

    def print(self, repeat: int) -> None:
        import jax

        import graphax as gx

        ways = [jax.jit(jax.vmap(self.plain)), jax.jit(jax.vmap(gx.kernel(self.ours, backend="native")))]
        results, first = [], 0.0
        for way in ways:
            start = time.perf_counter()
            results.append(jax.block_until_ready(way(*self.args)))
            first = time.perf_counter() - start
        if self.tolerance is not None:
            scale = 1 + np.abs(results[0])
            np.testing.assert_allclose(results[1] / scale, results[0] / scale, atol=self.tolerance)
        rounds = [[median(way, self.args, 3) for way in ways] for _ in range(max(1, repeat))]
        times = np.min(rounds, axis=0) / len(self.args[0]) * 1e9
        figures = (
            f"{times[0]:.1f} | {times[1]:.1f} | **{times[0] / times[1]:.1f}** | {self.promised or ''} | {first:.2f}"
        )
        print(f"| {self.name} | {figures} |", flush=True)


def rates(x, k):
    import jax.numpy as jnp

    a, b, c = x
    fast, slow = 1e4 * b * c, k * b * b
    return jnp.stack([-0.04 * a + fast, 0.04 * a - fast - slow, slow])


def chain(x, load):
    """Unknowns that are coupled to their neighbours."""
    import jax.numpy as jnp

    return x + 0.3 * jnp.sin(jnp.roll(x, 1)) * jnp.roll(x, -1) - load * jnp.cos(0.3 * x)


def implicit_step(value_and_jacobian: Callable) -> Callable:
    import jax.numpy as jnp

    def step(x, k):
        value, jacobian = value_and_jacobian(x, k)
        return x + jnp.linalg.solve(jnp.eye(3, dtype=x.dtype) - 0.1 * jacobian, 0.1 * value)

    return step


def newton(value_and_jacobian: Callable) -> Callable:
    import jax.numpy as jnp
    from jax import lax

    def solve(x, load):
        def step(x, _):
            value, jacobian = value_and_jacobian(x, load)
            return x - jnp.linalg.solve(jacobian, value), None

        return lax.scan(step, x, None, length=8)[0]

    return solve


def forward(function: Callable) -> Callable:
    import jax

    return lambda x, p: (function(x, p), jax.jacfwd(function)(x, p))


def steps(points: int, repeat: int, dtype: Any) -> None:
    import jax.numpy as jnp

    import graphax as gx

    rng = np.random.default_rng(0)
    # In single precision, no method has a correct digit for some of these.
    tolerance = 1e-9 if dtype == np.float64 else None
    x = jnp.asarray(np.abs(rng.normal(size=(points, 3))), dtype)
    k = jnp.linspace(1e7, 5e7, points, dtype=dtype)
    ours = gx.value_and_jacve(rates)
    Line("implicit step, 3", implicit_step(forward(rates)), implicit_step(ours), (x, k), 60, tolerance).print(repeat)
    for size, promised in ((3, 40), (6, 25), (12, 10)):
        x = jnp.asarray(1 + 0.1 * rng.random((points, size)), dtype)
        load = jnp.linspace(0.5, 1.0, points, dtype=dtype)
        ours = gx.value_and_jacve(chain)
        name = f"Newton, 8 steps, {size}"
        Line(name, newton(forward(chain)), newton(ours), (x, load), promised, tolerance).print(repeat)


def reprojection(parameters, observed):
    """The weighted reprojection error of a point in a camera with 11 parameters."""
    import jax.numpy as jnp

    turn, shift, focal, centre, radial, point, weight = jnp.split(parameters, np.cumsum([3, 3, 1, 2, 2, 3]))
    angle = jnp.sqrt(turn @ turn + 1e-12)
    axis, moved = turn / angle, point - shift
    cosine, sine = jnp.cos(angle), jnp.sin(angle)
    turned = cosine * moved + sine * jnp.cross(axis, moved) + (1 - cosine) * (axis @ moved) * axis
    image = turned[:2] / turned[2]
    square = image @ image
    return weight * (focal * (1 + square * (radial[0] + square * radial[1])) * image + centre - observed)


def normal_equations(points: int, repeat: int, dtype: Any) -> None:
    """Compare normal equations with the Jacobian alone, summed over 64 observations for each of fewer points."""
    import jax
    import jax.numpy as jnp

    import graphax as gx

    many, rng = 64, np.random.default_rng(0)
    usual = np.array([0.2, 0.1, -0.3, 0.1, 0.2, -4.0, 1.0, 0.1, 0.1, 0.02, 0.01, 0.3, -0.4, 0.5, 1.0])
    x = jnp.asarray(usual * (1 + 0.1 * rng.random((points // many, 15))), dtype)
    seen = jnp.asarray(rng.normal(size=(points // many, many, 2)), dtype)
    jacobians = jax.jit(jax.vmap(jax.vmap(gx.jacve(reprojection, backend="native"), in_axes=(None, 0))))
    equations = jax.jit(jax.vmap(gx.gauss_newton(reprojection, in_axes=(0,), backend="native")))
    found, rows = equations(x, seen), jacobians(x, seen)
    np.testing.assert_allclose(found.matrix, np.einsum("pkij,pkil->pjl", rows, rows), rtol=1e-3, atol=1e-3)
    rounds = [[median(way, (x, seen), 3) for way in (jacobians, equations)] for _ in range(max(1, repeat))]
    times = np.min(rounds, axis=0) / seen[..., 0].size * 1e9
    print("\n| least squares | Jacobian alone [ns] | normal equations [ns] | ratio | promised |\n|---|--:|--:|--:|--:|")
    figures = f"{times[0]:.1f} | {times[1]:.1f} | **{times[1] / times[0]:.2f}** | at most 1.5"
    print(f"| reprojection, 2 × 15, {many} observations | {figures} |", flush=True)


def matrices(kind: str, count: int, size: int, dtype: Any) -> np.ndarray:
    rng = np.random.default_rng(size)
    random = rng.normal(size=(count, size, size))
    if kind == "graded":
        random *= 10.0 ** -np.arange(size)[:, None]
    if kind == "nearly singular":
        random[:, -1] = random[:, 0] + 1e-5 * random[:, -1]
    return random.astype(dtype)


def solves(points: int, repeat: int, dtype: Any) -> None:
    import jax
    import jax.numpy as jnp

    import graphax as gx

    for size, promised in ((3, 50), (4, 40), (6, 30), (8, 25), (12, 12)):
        worst = []
        right = np.random.default_rng(1).normal(size=(points, size)).astype(dtype)
        for kind in ("random", "graded", "nearly singular"):
            a = matrices(kind, points, size, dtype)
            plain, ours = (jax.jit(jax.vmap(f))(a, right) for f in (jnp.linalg.solve, gx.kernel(jnp.linalg.solve)))
            errors = np.array([_residual(a, np.asarray(x), right) for x in (plain, ours)])
            finite = np.isfinite(errors)
            means = np.mean(errors[:, finite.all(0)], axis=1)
            # For systems that only LAPACK solves there is no residual of ours, so they are counted instead.
            lost = int((finite[0] & ~finite[1]).sum())
            worst.append(f"{kind} {means[1] / means[0]:.1f}" + (f" ({lost} solved by LAPACK only)" if lost else ""))
        args = jnp.asarray(matrices("random", points, size, dtype)), jnp.asarray(right)
        name = f"solve, {size}; residuals beside LAPACK's: {', '.join(worst)}"
        Line(name, jnp.linalg.solve, jnp.linalg.solve, args, promised).print(repeat)
    structured(points, repeat, dtype)


def structured(points: int, repeat: int, dtype: Any) -> None:
    """Systems with structure, which take less work."""
    import jax.numpy as jnp
    import jax.scipy.linalg as jsl
    from jax import lax

    def definite(a, b):
        return jsl.solve(a, b, assume_a="pos")

    def tridiagonal(diagonals, b):
        return lax.linalg.tridiagonal_solve(*diagonals, b[:, None])

    for size in (4, 8, 12):
        a = matrices("random", points, size, dtype)
        products = jnp.asarray(np.einsum("pij,pkj->pik", a, a) + np.eye(size, dtype=dtype))
        diagonals = jnp.asarray(a[:, :3] + np.array([0, 4, 0], dtype)[:, None])
        right = jnp.asarray(a[:, 0])
        Line(f"definite, {size}", definite, definite, (products, right)).print(repeat)
        Line(f"tridiagonal, {size}", tridiagonal, tridiagonal, (diagonals, right)).print(repeat)
    for size in (2, 3, 4):
        a = matrices("random", points, size, dtype)
        Line(f"eigenvalues, {size}", jnp.linalg.eigvalsh, jnp.linalg.eigvalsh, (jnp.asarray(a),)).print(repeat)


def _residual(a: np.ndarray, x: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The backward error of each system."""
    a, x, right = (v.astype(np.longdouble) for v in (a, x, right))
    missing = np.abs(np.einsum("pij,pj->pi", a, x) - right).max(1)
    return (missing / (np.abs(a).sum(2).max(1) * np.abs(x).max(1) + np.abs(right).max(1))).astype(float)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=16_384)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=11)
    parser.add_argument("--float64", action="store_true")
    parser.add_argument("--solvers", action="store_true", help="also diffrax and optimistix; needs --float64")
    arguments = parser.parse_args()
    if arguments.threads == 1:
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    import jax

    import graphax.native

    graphax.native.set_threads(arguments.threads)
    jax.config.update("jax_enable_x64", arguments.float64)
    dtype = np.float64 if arguments.float64 else np.float32
    print(
        f"{np.dtype(dtype).name}, {arguments.points:,} points, {arguments.threads} thread(s), {jax.default_backend()}\n"
    )
    print("| step | JAX [ns] | kernel [ns] | ratio | promised | first call [s] |\n|---|--:|--:|--:|--:|--:|")
    steps(arguments.points, arguments.repeat, dtype)
    solves(arguments.points, arguments.repeat, dtype)
    normal_equations(arguments.points, arguments.repeat, dtype)
    if arguments.solvers:
        print()
        step_solvers.measure(10_000, 3)
    return 0


if __name__ == "__main__":
    sys.exit(main())
