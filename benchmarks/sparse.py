"""All nonzeros of large sparse Jacobians by `graphax.jacve(sparse=True)` and by asdex, measured alternately in float64.

    python benchmarks/sparse.py [--sizes 1e4,1e6] [--cases brusselator,heat] [--repeat 15] [--check] [--no-peer]

For each size and case, it prints the seconds from the function to the first Jacobian (tracing, patterns, colours and
compilation), the median milliseconds of a call, the numbers of stored and of nonzero entries, and memory: arguments,
results, temporaries and constants of the compiled program, relative to arguments and results alone. With ``--check``,
rows, columns and values of each case are first compared with `jax.jacfwd` and with asdex, at a small size. asdex (extra
``peers``) needs JAX 0.11.
"""

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import graphax as gx

Case = tuple[Callable[[Any], Any], np.ndarray]


def brusselator(n: int, rng: np.random.Generator) -> Case:
    half = n // 2

    def rates(y):
        u, v = y[:half], y[half:]
        spread = [jnp.roll(w, 1) - 2 * w + jnp.roll(w, -1) for w in (u, v)]
        return jnp.concatenate([1 + u * u * v - 4 * u + 0.02 * spread[0], 3 * u - u * u * v + 0.02 * spread[1]])

    return rates, rng.random(2 * half)


def burgers(n: int, rng: np.random.Generator) -> Case:
    def rates(u):
        left, right = jnp.roll(u, 1), jnp.roll(u, -1)
        return -n * jnp.where(u > 0, u * (u - left), u * (right - u)) + 0.01 * (left - 2 * u + right)

    return rates, rng.normal(size=n)


def heat(n: int, rng: np.random.Generator, rank: int = 2) -> Case:
    """Nonlinear conduction between walls."""
    side = round(n ** (1 / rank))

    def rates(u):
        u = jnp.pad(u.reshape((side,) * rank), 1)
        conductivity, total = 1 + u * u, 0.0
        for axis in range(rank):
            # Along this axis, take both neighbours of a face; along the others, only cells inside the walls.
            upper, lower = (
                tuple(part if n == axis else slice(1, -1) for n in range(rank))
                for part in (slice(1, None), slice(None, -1))
            )
            flux = (conductivity[upper] + conductivity[lower]) * (u[upper] - u[lower])
            total = total + jnp.diff(flux, axis=axis)
        return total.ravel()

    return rates, rng.random(side**rank)


def heat_3d(n: int, rng: np.random.Generator) -> Case:
    return heat(n, rng, 3)


def lorenz_96(n: int, rng: np.random.Generator) -> Case:
    return lambda x: (jnp.roll(x, -1) - jnp.roll(x, 2)) * jnp.roll(x, 1) - x + 8, rng.random(n)


def staggered(n: int, rng: np.random.Generator) -> Case:
    """Shallow water: heights in cells, velocities on their edges, all in one vector."""
    side = round((n / 3) ** 0.5)

    def rates(y):
        h, u, v = y.reshape(3, side, side)
        h_x, h_y = (0.5 * (h + jnp.roll(h, 1, axis)) for axis in (0, 1))
        divergence = jnp.roll(h_x * u, -1, 0) - h_x * u + jnp.roll(h_y * v, -1, 1) - h_y * v
        du = -(h - jnp.roll(h, 1, 0)) - 0.5 * u * (jnp.roll(u, -1, 0) - jnp.roll(u, 1, 0))
        dv = -(h - jnp.roll(h, 1, 1)) - 0.5 * v * (jnp.roll(v, -1, 1) - jnp.roll(v, 1, 1))
        return jnp.stack([-divergence, du, dv]).ravel()

    return rates, rng.random(3 * side * side)


def banded(n: int, rng: np.random.Generator) -> Case:
    """Broyden's banded residuals, of half bandwidth three."""

    def residuals(x):
        padded = jnp.pad(x, 3)
        around = sum(padded[3 + k : 3 + k + n] * (1 + padded[3 + k : 3 + k + n]) for k in (-3, -2, -1, 1, 2, 3))
        return x * (2 + 5 * x * x) + 1 - around

    return residuals, rng.random(n)


def convolution(n: int, rng: np.random.Generator) -> Case:
    taps = rng.random(5)

    def layer(x):
        smooth = sum(tap * x[k : n - 4 + k] for k, tap in enumerate(taps))
        return jnp.tanh(smooth) * x[2:-2]

    return layer, rng.random(n)


def power_grid(n: int, rng: np.random.Generator) -> Case:
    first, second = rng.integers(0, n, (2, 3 * n // 2))
    limits = rng.random(len(first))

    def injections(angle):
        flow = limits * jnp.sin(angle[first] - angle[second])
        return jnp.zeros(n).at[first].add(flow).at[second].add(-flow)

    return injections, rng.random(n)


def finite_elements(n: int, rng: np.random.Generator) -> Case:
    """Nonlinear diffusion on triangles of a grid, assembled by the numbers of their corners."""
    side = round(n**0.5)
    numbers = np.arange(side * side).reshape(side, side)
    a, b, c, d = numbers[:-1, :-1].ravel(), numbers[1:, :-1].ravel(), numbers[:-1, 1:].ravel(), numbers[1:, 1:].ravel()
    corners = np.concatenate([np.stack([a, b, c]), np.stack([d, c, b])], 1)

    def residual(u):
        x, y, z = (u[corner] for corner in corners)
        k = 1 + (x + y + z) ** 2
        forces = k * (2 * x - y - z), k * (y - x), k * (z - x)
        total = jnp.zeros(side * side)
        for corner, force in zip(corners, forces, strict=True):
            total = total.at[corner].add(force)
        return total

    return residual, rng.random(side * side)


def mass_action(n: int, rng: np.random.Generator) -> Case:
    """Reactions between neighbours of a random list of species; two reactants and two products each."""
    reactants, products = rng.integers(0, n, (2, 2, 2 * n))
    speed = rng.random(2 * n)

    def rates(c):
        rate = speed * c[reactants[0]] * c[reactants[1]]
        change = jnp.zeros(n)
        for species in reactants:
            change = change.at[species].add(-rate)
        for species in products:
            change = change.at[species].add(rate)
        return change

    return rates, rng.random(n)


def collocation(n: int, rng: np.random.Generator) -> Case:
    """Defects of the trapezoidal rule along a trajectory of a controlled pendulum."""
    steps = n // 3

    def defects(z):
        angle, speed, control = z.reshape(3, steps)
        acceleration = -jnp.sin(angle) - 0.1 * speed + control
        first = angle[1:] - angle[:-1] - 0.05 * (speed[1:] + speed[:-1])
        second = speed[1:] - speed[:-1] - 0.05 * (acceleration[1:] + acceleration[:-1])
        return jnp.concatenate([first, second])

    return defects, rng.random(3 * steps)


def arrow(n: int, rng: np.random.Generator) -> Case:
    """Every residual depends on its own unknown and on the last one; the last residual on all."""

    def residuals(x):
        own, last = x[:-1], x[-1]
        return jnp.concatenate([own**3 - last * own, jnp.sum(own * own, keepdims=True) - last])

    return residuals, rng.random(n)


CASES = {
    case.__name__: case
    for case in (
        brusselator, burgers, heat, heat_3d, lorenz_96, staggered, banded, convolution, power_grid, finite_elements,
        mass_action, collocation, arrow,
    )
}  # fmt: skip
# The maximum number of unknowns for cases with lists of indices, and for cases where asdex needs a colour per column.
MOST = {"power_grid": 100_000, "finite_elements": 100_000, "mass_action": 100_000}
MOST_BY_ASDEX = {"arrow": 10_000}


def by_graphax(function: Callable, x: Any) -> tuple[Callable, Callable[[Any], int]]:
    return jax.jit(gx.jacve(function, sparse=True)), lambda block: block.structure.stored


def by_asdex(function: Callable, x: Any) -> tuple[Callable, Callable[[Any], int]]:
    import asdex

    return jax.jit(asdex.jacobian(function, x)), lambda matrix: matrix.nse


def memory(jacobian: Any, x: Any) -> float:
    """The bytes that a jitted function needs, relative to those of its arguments and results."""
    traced = jacobian.trace(x)
    used = traced.lower().compile().memory_analysis()
    ends = used.argument_size_in_bytes + used.output_size_in_bytes
    return (ends + used.temp_size_in_bytes + sum(np.asarray(c).nbytes for c in traced.jaxpr.consts)) / ends


def measured(ways: dict[str, Callable], case: Case, repeat: int) -> dict[str, tuple[float, float, int]]:
    """By way: seconds until the first result, milliseconds of a call, and the number of stored entries."""
    function, x = case
    ready, times = {}, {name: [] for name in ways}
    for name, way in ways.items():
        start = time.perf_counter()
        jacobian, count = way(function, x)
        result = jax.block_until_ready(jacobian(x))
        ready[name] = jacobian, time.perf_counter() - start, count(result)
    for _ in range(repeat):
        for name, (jacobian, _, _) in ready.items():
            start = time.perf_counter()
            jax.block_until_ready(jacobian(x))
            times[name].append(time.perf_counter() - start)
    return {name: (setup, 1e3 * float(np.median(times[name])), count) for name, (_, setup, count) in ready.items()}


def check(case: Case, peer: bool) -> None:
    """Compare rows, columns and values with the dense Jacobian of JAX and with asdex."""
    function, x = case
    want = np.asarray(jax.jacfwd(function)(x))
    block = gx.jacve(function, sparse=True)(x)
    rows, columns = block.indices()
    got = np.zeros(want.shape)
    got[rows, columns] = block.data
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(block.apply(x), want @ x, rtol=1e-8, atol=1e-8)
    if peer:
        matrix = by_asdex(function, x)[0](x)
        order = np.lexsort(np.asarray(matrix.indices).T[::-1])
        np.testing.assert_array_equal(np.stack([rows, columns], 1), np.asarray(matrix.indices)[order])
        np.testing.assert_allclose(block.data, np.asarray(matrix.data)[order], rtol=1e-10, atol=1e-10)


def report(name: str, size: int, repeat: int, peer: bool) -> float:
    """Print one row of the table. Returns how many times as long asdex takes."""
    size = min(size, MOST.get(name, size))
    ways = {"graphax": by_graphax} | ({"asdex": by_asdex} if peer and size <= MOST_BY_ASDEX.get(name, size) else {})
    case = CASES[name](size, np.random.default_rng(0))
    found = measured(ways, case, repeat)
    setup, call, stored = found["graphax"]
    other = found.get("asdex", (float("nan"), float("nan"), 0))
    print(
        f"| {name} | {size:.0e} | {setup:.2f} | {other[0]:.2f} | {call:.3f} | {other[1]:.3f} | {other[1] / call:.1f} "
        f"| {stored:,} | {other[2]:,} | {memory(by_graphax(*case)[0], case[1]):.1f} |",
        flush=True,
    )
    return other[1] / call


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="1e4")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--no-peer", action="store_true")
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    names = arguments.cases.split(",")
    for name in names if arguments.check else ():
        check(CASES[name](60, np.random.default_rng(1)), not arguments.no_peer)
    for size in arguments.sizes.split(","):
        print(
            "| case | unknowns | set-up [s] | asdex [s] | call [ms] | asdex [ms] | ratio | stored | nonzero | memory |"
        )
        print("|---|" + "--:|" * 9)
        ratios = [report(name, int(float(size)), arguments.repeat, not arguments.no_peer) for name in names]
        print(f"\ngeometric mean of the ratios: {float(np.exp(np.nanmean(np.log(ratios)))):.2f}\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
