"""Solvers of diffrax and optimistix compared with those of `graphax.solvers`, measured alternately.

    python benchmarks/step_solvers.py [--points 10000] [--threads 1] [--repeat 3] [--only robertson network bundle]

It prints the seconds for all points under `jax.jit(jax.vmap(...))`, end to end: `diffrax.diffeqsolve` with `Kvaerno5`
for Robertson's reaction and for a network of 20 species (a tenth of the points), and `optimistix.least_squares` with
`LevenbergMarquardt` for a camera and a point. It also prints how many points take the same number of steps, and the
largest difference between results, which an assertion limits.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

SPECIES, REACTIONS = 20, 40
NAMES = ("robertson", "network", "bundle")


def compared(name: str, stock: Callable, ours: Callable, args: Sequence[Any], repeat: int, tolerance: float) -> float:
    """Print a line. Functions of one point return a result and the number of steps."""
    import jax

    ways = [jax.jit(jax.vmap(stock)), jax.jit(jax.vmap(ours))]
    compiling, results = [], []
    for way in ways:
        start = time.perf_counter()
        results.append(jax.block_until_ready(way(*args)))
        compiling.append(time.perf_counter() - start)
    (answer, steps), (other, their) = (jax.tree.map(np.asarray, result) for result in results)
    difference = max(float(np.abs(a - b).max()) for a, b in zip(jax.tree.leaves(answer), jax.tree.leaves(other)))  # noqa: B905
    same = float(np.mean(steps == their))
    assert difference <= tolerance, f"{name}: answers differ by {difference:.1e}"
    times = np.array([[_seconds(way, args) for way in ways] for _ in range(repeat)])
    first, second = np.median(times, axis=0)
    first_compiled, second_compiled = np.array(compiling) - [first, second]
    print(
        f"| {name} | {len(args[0]):,} | {steps.max()} | {same:.1%} | {difference:.1e} | {first:.2f} | {second:.2f} "
        f"| **{first / second:.1f}** | {first_compiled:.0f} and {second_compiled:.0f} |",
        flush=True,
    )
    return float(first / second)


def _seconds(function: Callable, args: Sequence[Any]) -> float:
    import jax

    start = time.perf_counter()
    jax.block_until_ready(function(*args))
    return time.perf_counter() - start


def integrated(rates: Callable, solver: Any, end: float, tolerance: float) -> Callable:
    """Integrate for one condition. Returns the final state and the number of steps."""
    import diffrax

    def integrate(state, parameter):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, args: rates(y, args)), solver, 0.0, end, 1e-5, state, parameter,
            stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance),
            saveat=diffrax.SaveAt(t1=True), max_steps=4096, throw=False,
        )  # fmt: skip
        return solution.ys[0], solution.stats["num_steps"]

    return integrate


def robertson(x, rate):
    import jax.numpy as jnp

    a, b, c = x
    fast, slow = 1e4 * b * c, rate * b * b
    return jnp.stack([-0.04 * a + fast, 0.04 * a - fast - slow, slow])


def network() -> Callable:
    """Reactions of two species each, with rates from 0.1 to 10,000 that depend on a temperature."""
    import jax.numpy as jnp

    rng = np.random.default_rng(0)
    first, second, *products = rng.integers(0, SPECIES, (4, REACTIONS))
    speed, energy = 10.0 ** rng.uniform(-1, 4, REACTIONS), np.linspace(0, 1, REACTIONS)
    change = np.zeros((SPECIES, REACTIONS))
    for species, sign in ((first, -1), (second, -1), (products[0], 1), (products[1], 1)):
        np.add.at(change, (species, np.arange(REACTIONS)), sign)

    def rates(x, temperature):
        return change @ (speed * jnp.exp(-energy * temperature) * x[first] * x[second])

    return rates


def reprojection(parameters, observed):
    """The reprojection error of a point in a camera, and the distance of 14 parameters from their prior."""
    import jax.numpy as jnp

    turn, shift, focal, radial, centre, point = jnp.split(parameters, np.cumsum([3, 3, 1, 2, 2]))
    angle = jnp.sqrt(turn @ turn + 1e-12)
    axis = turn / angle
    cosine, sine = jnp.cos(angle), jnp.sin(angle)
    turned = cosine * point + sine * jnp.cross(axis, point) + (1 - cosine) * (axis @ point) * axis + shift
    image = turned[:2] / turned[2]
    square = image @ image
    seen = focal * (1 + radial[0] * square + radial[1] * square**2) * image + centre
    return jnp.concatenate([10 * (seen - observed[:2]), parameters - observed[2:]])


def fitted(least_squares: Callable, method: Callable) -> Callable:
    """Fit one camera and point by least squares. Returns the parameters and the number of steps."""
    solver = method(1e-8, 1e-8)

    def fit(start, observed):
        found = least_squares(reprojection, solver, start, observed, max_steps=64, throw=False)
        return found.value, found.stats["num_steps"]

    return fit


def measure(points: int, repeat: int, only: Sequence[str] = NAMES) -> None:
    """Print a table of all comparisons."""
    import diffrax
    import jax.numpy as jnp
    import optimistix

    from graphax import solvers

    print("| solver | points | most steps | same steps | difference | stock [s] | ours [s] | ratio | compiling [s] |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    rng = np.random.default_rng(1)
    stock, ours = diffrax.Kvaerno5(), solvers.compiled(diffrax.Kvaerno5())
    if "robertson" in only:
        args = jnp.tile(jnp.array([1.0, 0.0, 0.0]), (points, 1)), jnp.linspace(1e7, 5e7, points)
        ways = [integrated(robertson, solver, 100.0, 1e-8) for solver in (stock, ours)]
        compared("Kvaerno5, Robertson", *ways, args, repeat, 1e-7)
    if "network" in only:
        fewer = max(1, points // 10)
        args = jnp.asarray(rng.uniform(0, 1, (fewer, SPECIES))), jnp.linspace(0.0, 1.0, fewer)
        ways = [integrated(network(), solver, 0.02, 1e-6) for solver in (stock, ours)]
        compared("Kvaerno5, 20 species", *ways, args, repeat, 1e-5)
    if "bundle" in only:
        usual = np.array([0, 0, 0, 0, 0, 4.5, 1, 0, 0, 0, 0, 0, 0, 0])
        spread = np.array([0.3, 0.3, 0.3, 0.2, 0.2, 0.3, 0.05, 0.05, 0.05, 0.05, 0.05, 0.5, 0.5, 0.5])
        truth = usual + spread * rng.normal(size=(points, 14))
        args = jnp.asarray(truth), jnp.asarray(np.concatenate([rng.normal(0, 0.3, (points, 2)), truth], 1))
        stock = fitted(optimistix.least_squares, optimistix.LevenbergMarquardt)
        swapped = fitted(optimistix.least_squares, solvers.LevenbergMarquardt)
        compared("LevenbergMarquardt, 11 + 3: our solver", stock, swapped, args, repeat, 1e-6)
        ours = fitted(solvers.least_squares, solvers.LevenbergMarquardt)
        compared("LevenbergMarquardt, 11 + 3: our solver and least_squares", stock, ours, args, repeat, 1e-6)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES)
    arguments = parser.parse_args()
    if arguments.threads == 1:
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    import jax

    import graphax.native

    graphax.native.set_threads(arguments.threads)
    jax.config.update("jax_enable_x64", True)
    print(f"float64, {arguments.threads} thread(s), {jax.default_backend()}\n")
    measure(arguments.points, arguments.repeat, arguments.only)
    return 0


if __name__ == "__main__":
    sys.exit(main())
