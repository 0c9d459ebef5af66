"""Where estimates of run time are furthest from the truth, for functions of middle size and each way to run them.

    python benchmarks/estimates.py [--only NAME ...] [--batch 1]

It prints the estimated and measured microseconds of each way, and finally the largest ratios of the two. graphax only
compares estimates with each other, so what matters is whether they identify the fastest way.
"""

import argparse
import sys

import jax
import jax.numpy as jnp
from versus import in_turns

import graphax as gx
from alphagrad.bench.case import Case
from alphagrad.tasks import MIDDLE
from graphax import estimates
from graphax.backend import kernel_of
from graphax.pipeline import Pipeline
from graphax.trace import Request

SHORT = [name for name in MIDDLE if not name.endswith(("_15", "_30", "Dynamics_7"))]


def estimated(task, points):
    """The estimates of all ways, by name."""
    args = [jnp.asarray(x, jnp.float32) for x in task.arguments()]
    pipeline = Pipeline(task.function, args, {}, Request(task.argnums))
    kernel = kernel_of(pipeline.program, pipeline.traced.args)
    ways = [
        estimates.kernel(kernel.instructions, kernel.executed, points),
        estimates.elimination(kernel.program, points),
        *pipeline.modes(points),
    ]
    return {way.name: way.run for way in ways}


def measured(task, points):
    case = Case(task, points)
    args = [jnp.asarray(x) for x in case.points]
    f, of = task.function, task.argnums
    ways = {
        "kernel": gx.jacve(f, of, backend="native"),
        "xla": gx.jacve(f, of, backend="xla"),
        "jax.jacfwd": jax.jacfwd(f, of),
        "jax.jacrev": jax.jacrev(f, of),
    }
    compiled = {name: jax.jit(case.over_batch(way)) for name, way in ways.items()}
    return in_turns({name: lambda call=call: call(*args) for name, call in compiled.items()})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=SHORT)
    parser.add_argument("--batch", type=int, default=1)
    options = parser.parse_args()
    print("| function | " + " | ".join(("kernel", "xla", "jacfwd", "jacrev")) + " | says | is | lost |")
    print("|---|--:|--:|--:|--:|---|---|--:|")
    lies = []
    for name in options.only:
        said, found = estimated(MIDDLE[name], options.batch), measured(MIDDLE[name], options.batch)
        choice, best = min(said, key=said.get), min(found, key=found.get)
        lost = found[choice] / found[best]
        cells = " | ".join(f"{1e6 * said[way]:,.1f} → {1e6 * found[way]:,.1f}" for way in said)
        print(f"| {name} | {cells} | {choice} | {best} | {lost:.2f} |", flush=True)
        lies += [(max(said[way] / found[way], found[way] / said[way]), name, way) for way in said]
    print("\nlargest lies: " + ", ".join(f"{name} by {way} {lie:.1f} times" for lie, name, way in sorted(lies)[:-6:-1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
