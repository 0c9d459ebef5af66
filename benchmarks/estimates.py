"""Where estimates of run time are furthest from the truth, for functions of middle size and each way to run them.

    python benchmarks/estimates.py [--only NAME ...] [--batch 1]

It prints the estimated and measured microseconds of each way, and finally the largest ratios of the two. graphax only
compares estimates with each other, so what matters is whether they identify the fastest way. On a GPU, `middle.py
--ways` measures the same without the time of a call from Python.
"""

import argparse
import sys

import jax
import jax.numpy as jnp
from versus import in_turns
from ways import KERNEL, XLA, estimated, ways

from alphagrad.bench.case import Case
from alphagrad.tasks import MIDDLE
from graphax.modes import FORWARD, REVERSE

SHORT = [name for name in MIDDLE if not name.endswith(("_15", "_30", "Dynamics_7"))]
COMPARED = (KERNEL, XLA, FORWARD, REVERSE)


def measured(task, points):
    case = Case(task, points)
    args = [jnp.asarray(x) for x in case.points]
    f, of = task.function, task.argnums
    found = ways(f, of) | {FORWARD: jax.jacfwd(f, of), REVERSE: jax.jacrev(f, of)}
    compiled = {name: jax.jit(case.over_batch(found[name])) for name in COMPARED}
    return in_turns({name: lambda call=call: call(*args) for name, call in compiled.items()})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=SHORT)
    parser.add_argument("--batch", type=int, default=1)
    options = parser.parse_args()
    print("| function | " + " | ".join(COMPARED) + " | says | is | lost |")
    print("|---|--:|--:|--:|--:|---|---|--:|")
    lies = []
    for name in options.only:
        task = MIDDLE[name]
        args = [jnp.asarray(x, jnp.float32) for x in task.arguments()]
        said, found = estimated(task.function, task.argnums, args, options.batch), measured(task, options.batch)
        choice, best = min(COMPARED, key=said.__getitem__), min(COMPARED, key=found.__getitem__)
        lost = found[choice] / found[best]
        cells = " | ".join(f"{1e6 * said[way]:,.1f} → {1e6 * found[way]:,.1f}" for way in COMPARED)
        print(f"| {name} | {cells} | {choice} | {best} | {lost:.2f} |", flush=True)
        lies += [(max(said[way] / found[way], found[way] / said[way]), name, way) for way in COMPARED]
    print("\nlargest lies: " + ", ".join(f"{name} by {way} {lie:.1f} times" for lie, name, way in sorted(lies)[:-6:-1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
