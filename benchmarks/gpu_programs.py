"""Compare the adversary's random programs as kernels on a GPU and on the CPU: Jacobians must agree up to rounding.

    python benchmarks/gpu_programs.py [--programs 2000] [--seed 0] [--jobs 8]

The statements are the same on both, and one in three programs is in single precision. Results may differ as much as
they do when arguments change in their last bit.
"""

import argparse
import os
import subprocess
import sys

# Several processes share the GPU.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import numpy as np
from attacks.case import namespace
from attacks.expressions import CONSTANTS, random_body, random_shape

import graphax as gx
from graphax.backend import kernel_of
from graphax.errors import NativeError

NAMES = ("x", "y", "w")
POINTS = 37
SLACK = 64


def random_function(seed):
    """A function from flat arguments to a list, and points for it; None if there is nothing to differentiate."""
    rng = np.random.default_rng((seed, 17))
    shapes = {name: random_shape(rng) for name in NAMES[: int(rng.integers(1, 4))]}
    body = random_body(rng, shapes, int(rng.integers(1, 9)))
    dtype = np.float32 if seed % 3 == 2 else np.float64
    points = [rng.uniform(-1, 1, (POINTS, *shape)).astype(dtype) for shape in shapes.values()]
    if not body.lines or any(0 in x.shape for x in points):
        return None
    code = "\n".join([*CONSTANTS, f"def f({', '.join(shapes)}):", *(f"    {line}" for line in body.lines)])
    space = namespace()
    exec(f"{code}\n    return [{list(body.shapes)[-1]}]", space)
    return gx.jacve(space["f"], argnums=tuple(range(len(points)))), points


def agree(got, want, nudged, dtype):
    """True if numbers are as close as results of arguments that differ in their last bits."""
    unit = np.finfo(dtype).eps
    for a, b, c in zip(*(jax.tree.leaves(x) for x in (got, want, nudged)), strict=True):
        a, b, c = (np.asarray(x, np.float64) for x in (a, b, c))
        # Arguments are about one, and so are terms that cancel to zero.
        scale = np.max(np.abs(b), initial=1.0, where=np.isfinite(b))
        close = np.abs(a - b) <= SLACK * (np.abs(c - b) + unit * (np.abs(b) + scale))
        if not np.all(close | (a == b) | (np.isnan(a) & np.isnan(b)) | ~np.isfinite(c)):
            return False
    return True


def check(seed):
    """Whether the kernels of a program agree; None if it does not become a kernel."""
    found = random_function(seed)
    if found is None:
        return None
    jacobian, points = found
    try:
        kernel = kernel_of(lambda *x: jax.tree.leaves(jacobian(*x)), [x[0] for x in points])
        extra = len(kernel.statements.inputs) - len(points)
        if extra or kernel.reason_for_xla_on_gpu:
            return None
    except (NativeError, TypeError):
        # The program does not become a kernel, or is only valid in double precision.
        return None
    mapped = jax.jit(jax.vmap(kernel))
    here = [jax.device_put(x, jax.devices("cpu")[0]) for x in points]
    got, want = mapped(*points), mapped(*here)
    nudged = mapped(*[jax.device_put(np.nextafter(x, np.inf, dtype=x.dtype), jax.devices("cpu")[0]) for x in points])
    # Results in double precision may depend on arguments in single precision.
    return agree(got, want, nudged, points[0].dtype)


def shard(first, programs):
    """Check some programs, and print how many were right, wrong, or not kernels."""
    jax.config.update("jax_enable_x64", True)
    right = wrong = other = 0
    for number, seed in enumerate(range(first, first + programs)):
        outcome = check(seed)
        if outcome is False:
            print(f"program {seed}: kernels disagree", file=sys.stderr, flush=True)
        right, wrong, other = right + (outcome is True), wrong + (outcome is False), other + (outcome is None)
        if number % 50 == 49:
            jax.clear_caches()
    print(right, wrong, other)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=8)
    options = parser.parse_args()
    if options.jobs == 1:
        shard(options.seed, options.programs)
        return 0
    each = -(-options.programs // options.jobs)
    command = [sys.executable, __file__, "--jobs", "1", "--programs", str(each), "--seed"]
    running = [
        subprocess.Popen([*command, str(options.seed + each * n)], stdout=subprocess.PIPE, text=True)
        for n in range(options.jobs)
    ]
    outputs = [process.communicate()[0].split() for process in running]
    failed = sum(process.returncode != 0 for process in running)
    right, wrong, other = (sum(int(found[n]) for found in outputs if len(found) == 3) for n in range(3))
    print(f"{right + wrong:,} kernels, {wrong} disagree; {other:,} programs are no kernels; {failed} processes failed")
    return int(wrong > 0 or failed > 0)


if __name__ == "__main__":
    sys.exit(main())
