"""How long kernels take to compile, by their number of statements, for arms with more and more joints.

    python benchmarks/compiling.py [--joints 10,15,30,60,95]

`kernel` is the time from statements to code that can be called, for vectors of float32 on this machine. `planning` is
everything before: tracing, the graph, the order, the plan and unrolling arrays. The promise is 1 s for 5,000 statements
and 12 s for 50,000.
"""

import argparse
import sys
import time

import jax.numpy as jnp
import numpy as np

from alphagrad.tasks.middle_functions import end_effector
from graphax.native import host
from graphax.native.points import POINTS, kernel_code
from graphax.native.primitive import _layout
from graphax.pipeline import Pipeline
from graphax.trace import Request

PROMISED = ((5_500, 1.0), (55_000, 12.0))


def measured(joints):
    """The number of statements, and the seconds to plan and to compile them."""
    start = time.perf_counter()
    kernel = Pipeline(end_effector, (jnp.full(joints, 0.5, np.float32),), {}, Request(0)).kernel
    planned = time.perf_counter()
    code = kernel_code(kernel.statements, _layout(kernel.statements, (True,) * len(kernel.statements.inputs), 4096))
    host.link(host.machine_code(code), (POINTS,))
    return kernel.statements.operations, planned - start, time.perf_counter() - planned


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--joints", default="10,15,30,60,95")
    options = parser.parse_args()
    measured(2)
    print("| joints | statements | planning [s] | kernel [s] |\n|--:|--:|--:|--:|")
    kept = True
    for joints in map(int, options.joints.split(",")):
        statements, planning, kernel = measured(joints)
        print(f"| {joints} | {statements:,} | {planning:.2f} | {kernel:.2f} |", flush=True)
        kept = kept and all(kernel <= seconds for most, seconds in PROMISED if statements <= most)
    return int(not kept)


if __name__ == "__main__":
    sys.exit(main())
