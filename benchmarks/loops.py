"""Jacobians of loops by `graphax.jacve` and by the better mode of JAX, measured alternately in float64.

    python benchmarks/loops.py [--batch 1024] [--steps 100] [--cases lorenz,gru] [--repeat 9] [--float32]

For each case, it prints the milliseconds of a call under `jax.jit` (and under `jax.vmap` over ``--batch`` points, if
that is more than one) for `jax.jacfwd`, `jax.jacrev` and `jacve`; the ratio of the better of JAX's modes to `jacve`;
the seconds of the first call; and the temporary memory of `jacve` and `jax.jacrev`, by XLA's own analysis. ``--cases``
selects cases by parts of their names. Modes that JAX lacks (backward through `while`), or that would take more than
``--most`` GB, are left out.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from loop_cases import CASES, Case

import graphax as gx


def functions(case: Case, batch: int) -> tuple[dict[str, Callable], tuple[np.ndarray, ...]]:
    """The Jacobian in each way, and arguments."""
    ways = {name: getattr(jax, name)(case.function, case.argnums) for name in ("jacfwd", "jacrev")}
    ways["jacve"] = gx.jacve(case.function, case.argnums)
    args = case.args
    if batch > 1:
        given = args[case.batched]
        moved = given * (1 + 0.01 * np.random.default_rng(1).normal(size=(batch, *given.shape)))
        args = (*args[: case.batched], moved, *args[case.batched + 1 :])
        axes = tuple(0 if n == case.batched else None for n in range(len(args)))
        ways = {name: jax.vmap(way, in_axes=axes) for name, way in ways.items()}
    return ways, args


def started(way: Callable, args: Any, most: float) -> tuple[Callable, float, float] | None:
    """A compiled function, the seconds to compile it, and its temporary memory in MB, or None."""
    start = time.perf_counter()
    try:
        compiled = jax.jit(way).lower(*args).compile()
    except ValueError:
        return None
    memory = compiled.memory_analysis().temp_size_in_bytes / 1e6
    if memory > 1e3 * most:
        return None
    jax.block_until_ready(compiled(*args))
    return compiled, time.perf_counter() - start, memory


def measured(case: Case, batch: int, repeat: int, most: float) -> dict[str, tuple[float, float, float]]:
    """By way: milliseconds of a call, seconds of the first call, and memory in MB. Calls take turns."""
    ways, args = functions(case, batch)
    found = {name: made for name, way in ways.items() if (made := started(way, args, most)) is not None}
    results = {name: compiled(*args) for name, (compiled, _, _) in found.items()}
    exact = jax.tree.leaves(results["jacve"])[0].dtype == np.float64
    for result in results.values():
        assert_close(result, results["jacve"], 1e-6 if exact else 2e-2)
    times: dict[str, list[float]] = {name: [] for name in found}
    for _ in range(repeat):
        for name, (compiled, _, _) in found.items():
            start = time.perf_counter()
            jax.block_until_ready(compiled(*args))
            times[name].append(time.perf_counter() - start)
    return {name: (1e3 * float(np.median(times[name])), first, memory) for name, (_, first, memory) in found.items()}


def assert_close(got: Any, want: Any, tolerance: float) -> None:
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * (1 + float(np.max(np.abs(b)))))


def row(name: str, found: dict[str, tuple[float, float, float]], ratio: float) -> str:
    def column(way: str, which: int, digits: int) -> str:
        return f"{found[way][which]:.{digits}f}" if way in found else "–"

    ways = "jacfwd", "jacrev", "jacve"
    times, firsts = ([column(way, which, 3 - which) for way in ways] for which in (0, 1))
    memory = [column(way, 2, 2) for way in ("jacrev", "jacve")]
    return f"| {name} | {' | '.join(times)} | **{ratio:.2f}** | {' | '.join(firsts)} | {' | '.join(memory)} |"


def mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--cases", default="")
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--most", type=float, default=4.0)
    parser.add_argument("--float32", action="store_true")
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", not arguments.float32)
    print("| case | jacfwd [ms] | jacrev [ms] | jacve [ms] | ratio | first: jacfwd [s] | jacrev [s] | jacve [s] "
          "| memory: jacrev [MB] | jacve [MB] |\n|---|" + "--:|" * 9)  # fmt: skip
    ratios, small, firsts = [], [], []
    for name, make in CASES.items():
        if not any(part in name for part in arguments.cases.split(",")):
            continue
        case = make(np.random.default_rng(0), arguments.steps)
        found = measured(case, arguments.batch, arguments.repeat, arguments.most)
        better = min((way for way in found if way != "jacve"), key=lambda way: found[way][0])
        ratios.append(found[better][0] / found["jacve"][0])
        firsts.append(found["jacve"][1] / found[better][1])
        small += [ratios[-1]] if case.states <= 12 else []
        print(row(name, found, ratios[-1]), flush=True)
    print(f"\nBatch {arguments.batch}, {arguments.steps} steps, {jax.default_backend()}: ratio {mean(ratios):.2f} in "
          f"the geometric mean, {min(ratios):.2f} at least; {mean(small):.2f} of those with up to 12 states; "
          f"first calls {mean(firsts):.2f} times as long on average, {max(firsts):.2f} at most")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
