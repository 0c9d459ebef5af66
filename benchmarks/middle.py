"""Jacobians of functions of middle size (`alphagrad.tasks.MIDDLE`) by `jacve` and by JAX's modes.

    python benchmarks/middle.py [--only NAME ...] [--batches 1,64,4096] [--calls 1] [--together 1]
        [--output FILE]

With `--calls 100`, one program makes a hundred calls, as a solver does, and times are per call. A call from Python
takes 5 µs on a CPU and 30 to 40 µs on a GPU, whatever it does. A step of a loop takes 10 µs on a GPU; with `--together
5` it contains five calls, which XLA takes five times as long to compile. `floor` is an XLA program that only writes
results of the same shapes, and `of floor` says how many times as fast as JAX it is.

A ratio above 1 is faster than the better of `jax.jacfwd` and `jax.jacrev`. Everything runs under `jax.jit` in float32,
and under `jax.vmap` for more than one point. Errors are those of `jacve` and of JAX's better mode, against JAX in
float64.
"""

import argparse
import json
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

import jax
import jax.numpy as jnp
from versus import OURS, compare, in_a_loop, in_turns, mean

import graphax as gx
from alphagrad.bench.case import Case
from alphagrad.bench.measure import exact_entries
from alphagrad.tasks import MIDDLE
from graphax.accuracy import relative_error

SLOWEST, MEAN = 0.95, {"cpu": 4.0, "gpu": 8.0}
TOLERANCE = 2e-3
MEASUREMENTS = 3
COMPARED = 16
COLUMNS = (
    "function", "batch", "jacfwd", "jacrev", "jacve", "floor", "times as fast", "of floor", "first call", "of JAX",
    "error", "of JAX",
)  # fmt: skip


def measured(case, calls=1, together=1):
    """The times of one case. A slow case is measured again to confirm the result."""
    task = case.task
    args = [jnp.asarray(x) for x in case.points]
    jacobians = {"jacfwd": jax.jacfwd, "jacrev": jax.jacrev, OURS: gx.jacve}
    ways = {name: case.over_batch(way(task.function, task.argnums)) for name, way in jacobians.items()}
    if calls > 1:
        ways = {name: in_a_loop(way, calls, together) for name, way in ways.items()}
    found = compare(ways, args, TOLERANCE)
    for _ in range(MEASUREMENTS - 1):
        if found.ratio >= SLOWEST:
            break
        found = found.timed_again()
    exact = exact_entries(case, COMPARED)
    floor = floor_of(ways[OURS], args, calls, together)

    def error(name):
        leaves = jax.tree.leaves(found.results[name])
        return relative_error([x[:COMPARED] if case.batch > 1 else x for x in leaves], exact)

    row = found.as_dict()
    row["times"] = {name: seconds / calls for name, seconds in row["times"].items()}
    row |= {"error": error(OURS), "error_of_jax": error(found.better)}
    return row | {"floor": floor, "ratio_of_floor": row["times"][found.better] / floor}


def floor_of(way, args, calls, together):
    """Seconds of a call that writes one number to all results of a way."""
    shapes = jax.eval_shape(way, *args)

    def nothing(*args):
        number = jax.tree.leaves(args)[0].ravel()[0]
        return jax.tree.map(lambda x: jnp.full(x.shape, number, x.dtype), shapes)

    call = jax.jit(in_a_loop(nothing, calls, together) if calls > 1 else nothing)
    jax.block_until_ready(call(*args))
    return in_turns({"floor": lambda: call(*args)})["floor"] / calls


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=list(MIDDLE))
    parser.add_argument("--batches", default="1,64,4096")
    parser.add_argument("--calls", type=int, default=1)
    parser.add_argument("--together", type=int, default=1)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    device = jax.devices()[0]
    print(f"{device.device_kind}, JAX {jax.__version__}; microseconds, seconds for first calls")
    print(f"| {' | '.join(COLUMNS)} |\n|---|{'--:|' * (len(COLUMNS) - 1)}")
    rows = []
    for name in options.only:
        for batch in map(int, options.batches.split(",")):
            row = {"function": name, "batch": batch} | measured(
                Case(MIDDLE[name], batch), options.calls, options.together
            )
            rows.append(row)
            times = " | ".join(f"{1e6 * t:,.1f}" for t in row["times"].values())
            theirs = row["first"][OURS] / row["first_ratio"]
            print(
                f"| {name} | {batch:,} | {times} | {1e6 * row['floor']:,.1f} | **{row['ratio']:.2f}** "
                f"| {row['ratio_of_floor']:.2f} | {row['first'][OURS]:.2f} | {theirs:.2f} "
                f"| {row['error']:.1e} | {row['error_of_jax']:.1e} | {row['wrong']}",
                flush=True,
            )
            if options.output:
                content = {
                    "calls": options.calls,
                    "together": options.together,
                    "date": f"{datetime.now(UTC):%Y-%m-%d}",
                    "device": device.device_kind,
                    "jax": jax.__version__,
                }
                text = json.dumps(content | {"python": platform.python_version(), "rows": rows}, indent=1)
                options.output.write_text(text + "\n", encoding="utf-8")
        jax.clear_caches()
    ratios = [row["ratio"] for row in rows]
    promised = MEAN[device.platform]
    print(
        f"geometric mean {mean(ratios):.2f} (promised: {promised:g}), least {min(ratios):.2f} (promised: {SLOWEST:g}), "
        f"first call {mean([row['first_ratio'] for row in rows]):.2f} times JAX's; writing results alone would have "
        f"{mean([row['ratio_of_floor'] for row in rows]):.2f}"
    )
    return int(mean(ratios) < promised or min(ratios) < SLOWEST or any(row["wrong"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
