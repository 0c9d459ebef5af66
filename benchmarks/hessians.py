"""Hessians by symmetric elimination, by two Jacobians, and by JAX: operations and times.

    python benchmarks/hessians.py [--cases mlp,wood] [--batch 4096] [--repeat 9] [--float32]

Operations are those of the kernel: all operations on single numbers for value, gradient and Hessian together. "Before"
is the Jacobian of the gradient, including arithmetic on structural zeros. Times are nanoseconds per point under
`jax.jit(jax.vmap(...))`, measured alternately; networks run for one point.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from steps import median

import graphax as gx
from alphagrad.tasks import TASKS
from alphagrad.tasks.finance import black_scholes_price, sabr_volatility
from graphax import _jax
from graphax.labelled import nothing_told_apart
from graphax.native.unroll import unroll

# Long programs are counted too, although they would take long to compile.
MOST = 4_000_000


@dataclass(frozen=True)
class Case:
    """A function that returns one number, example arguments, and the arguments to differentiate with respect to."""

    function: Callable
    args: tuple[Any, ...]
    argnums: tuple[int, ...] = (0,)
    mapped: bool = True


def rosenbrock(x):
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def wood(x):
    a, b, c, d = x
    first = 100 * (b - a**2) ** 2 + (1 - a) ** 2 + 90 * (d - c**2) ** 2
    return first + (1 - c) ** 2 + 10 * (b + d - 2) ** 2 + 0.1 * (b - d) ** 2


def helical_valley(x):
    a, b, c = x
    angle = jnp.arctan2(b, a) / (2 * jnp.pi)
    return 100 * ((c - 10 * angle) ** 2 + (jnp.sqrt(a**2 + b**2) - 1) ** 2) + c**2


def trigonometric(x):
    cosines = jnp.cos(x)
    weights = jnp.arange(1.0, x.size + 1)
    return jnp.sum((x.size - jnp.sum(cosines) + weights * (1 - cosines) - jnp.sin(x)) ** 2)


def lennard_jones(atoms):
    energy = 0.0
    for i in range(len(atoms)):
        for j in range(i):
            inverse = 1 / jnp.sum((atoms[i] - atoms[j]) ** 2)
            energy = energy + 4 * (inverse**6 - inverse**3)
    return energy


def neo_hookean_energy(f):
    (a, b, c), (d, e, g), (h, i, j) = f
    volume = a * (e * j - g * i) - b * (d * j - g * h) + c * (d * i - e * h)
    return 0.5 * (jnp.sum(f * f) * volume ** (-2 / 3) - 3) + 2.5 * (volume - 1) ** 2


def logistic_loss(weights):
    rng = np.random.default_rng(3)
    features, labels = rng.normal(size=(10, 4)), 2.0 * (np.arange(10) % 2) - 1
    return jnp.sum(jnp.log1p(jnp.exp(-labels * (features @ weights))))


def cases() -> dict[str, Case]:
    rng = np.random.default_rng(0)
    networks = {
        name: Case(task.function, task.arguments(), task.argnums, mapped=False)
        for name, task in TASKS.items()
        if name in ("MLP", "TransformerEncoder", "BatchedTransformer")
    }
    return networks | {
        "BlackScholes": Case(black_scholes_price, (1.0, 1.1, 0.05, 0.3, 2.0), tuple(range(5))),
        "SABR": Case(sabr_volatility, (0.03, 0.04, 2.0, 0.04, 0.5, -0.3, 0.4), tuple(range(7))),
        "Rosenbrock, 8": Case(rosenbrock, (rng.normal(size=8),)),
        "Wood": Case(wood, (rng.normal(size=4),)),
        "helical valley": Case(helical_valley, (np.array([0.8, 0.6, 0.4]),)),
        "trigonometric, 6": Case(trigonometric, (rng.normal(size=6),)),
        "Lennard-Jones, 4 atoms": Case(lennard_jones, (2 * rng.normal(size=(4, 3)),)),
        "neo-Hookean": Case(neo_hookean_energy, (np.eye(3) + 0.1 * rng.normal(size=(3, 3)),)),
        "logistic loss": Case(logistic_loss, (rng.normal(size=4),)),
    }


def twice(case: Case, backend: str) -> Callable:
    gradient = gx.jacve(case.function, case.argnums, backend="xla")
    return gx.jacve(gradient, case.argnums, backend=backend)


def operations(function: Callable, args: Sequence[Any], zeros_spared: bool = True) -> int:
    with nothing_told_apart(zeros_spared):
        program, _ = _jax.open_program(lambda *args: jax.tree.leaves(function(*args)), args)
    return unroll(program, MOST, True).operations


def times(case: Case, args: Sequence[Any], batch: int, repeat: int) -> list[float]:
    """Nanoseconds per point: by JAX, by two Jacobians, and by `hessve`."""
    ways = [jax.hessian(case.function, case.argnums), twice(case, "auto"), gx.hessve(case.function, case.argnums)]
    points = batch if case.mapped else 1
    if case.mapped:
        rng = np.random.default_rng(1)
        args = [jnp.asarray(x * (1 + 0.01 * rng.random((batch, *np.shape(x)))), x.dtype) for x in args]
    compiled = [jax.jit(jax.vmap(way)) if case.mapped else jax.jit(way) for way in ways]
    results = [jax.block_until_ready(way(*args)) for way in compiled]
    if jnp.result_type(*args) == np.float64:
        for got, want in zip(jax.tree.leaves(results[2]), jax.tree.leaves(results[0]), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-8 * float(jnp.abs(want).max() + 1))
    rounds = [[median(way, args, 3) for way in compiled] for _ in range(max(1, repeat // 3))]
    return list(np.median(rounds, axis=0) / points * 1e9)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", default="", help="parts of names, separated by commas")
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--float32", action="store_true")
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", not arguments.float32)
    wanted = [word for word in arguments.cases.lower().split(",") if word]
    print("| function | before | two Jacobians | hessve | ratio | JAX [ns] | two Jacobians [ns] | hessve [ns] |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    ratios = []
    for name, case in cases().items():
        if wanted and not any(word in name.lower() for word in wanted):
            continue
        args = [jnp.asarray(x, np.float32 if arguments.float32 else np.float64) for x in case.args]
        symmetric = gx.hessve(case.function, case.argnums, backend="xla")
        before = operations(twice(case, "xla"), args, zeros_spared=False)
        counts = [before, operations(twice(case, "xla"), args), operations(symmetric, args)]
        ratios.append(counts[2] / counts[0])
        measured = times(case, args, arguments.batch, arguments.repeat)
        counted, timed = " | ".join(f"{n:,}" for n in counts), " | ".join(f"{t:,.0f}" for t in measured)
        print(f"| {name} | {counted} | **{ratios[-1]:.2f}** | {timed} |", flush=True)
    print(f"\nmean ratio {np.mean(ratios):.2f}, largest {max(ratios):.2f} (promised: 0.6, and never above 1)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
