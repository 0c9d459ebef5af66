"""How near a GPU gets to the time it takes to move the operands and the Jacobian once.

    python benchmarks/gpu.py [--batch 8388608] [--only RoeFlux_1d ...]

The bandwidth is that of a copy of 1 GiB, measured in the same run. Calls are queued, so that times are those of the
device and not of starting it; contenders take turns, and times are medians. Orders are the best on record, in float32.
"""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np

import graphax as gx
from alphagrad.bench.orders import best_order
from alphagrad.tasks import TASKS
from graphax.accuracy import relative_error

SCALAR = ("RoeFlux_1d", "RobotArm_6DOF", "HumanHeartDipole", "PropaneCombustion", "BlackScholes", "RoeFlux_3d")
QUEUED, ROUNDS = 20, 9
SPREAD = 0.02
POINTS_COMPARED = 4096


def medians(calls):
    """Milliseconds of each (function, arguments)."""
    seconds = {name: [] for name in calls}
    for turn in range(ROUNDS + 1):
        for name, (function, args) in calls.items():
            jax.block_until_ready(function(*args))
            start = time.perf_counter()
            for _ in range(QUEUED):
                results = function(*args)
            jax.block_until_ready(results)
            if turn:
                seconds[name].append((time.perf_counter() - start) / QUEUED)
    return {name: 1e3 * float(np.median(times)) for name, times in seconds.items()}


def size(arrays):
    return sum(x.nbytes for x in jax.tree.leaves(arrays))


def points_of(task, batch):
    keys = jax.random.split(jax.random.key(0), len(task.arguments()))
    return [
        np.float32(x) * (1 + SPREAD * jax.random.normal(key, (batch, *np.shape(x)), np.float32))
        for key, x in zip(keys, task.arguments(), strict=True)
    ]


def report(name, batch):
    task = TASKS[name]
    points, order, of = points_of(task, batch), best_order(task), task.argnums
    jacobians = {
        "jacfwd": jax.jacfwd(task.function, of),
        "jacrev": jax.jacrev(task.function, of),
        "xla": gx.jacve(task.function, order=order, argnums=of, backend="xla"),
        "auto": gx.jacve(task.function, order=order, argnums=of),
    }
    mapped = {key: jax.jit(jax.vmap(jacobian)) for key, jacobian in jacobians.items()}
    source = jnp.ones(1 << 28, np.float32)
    copied = {"copy": (jax.jit(lambda x: x + 1), [source])}
    times = medians({key: (function, points) for key, function in mapped.items()} | copied)
    moved = size(points) + size(mapped["auto"](*points))
    once = times["copy"] * moved / (2 * source.nbytes)
    some = [x[:POINTS_COMPARED] for x in points]
    with jax.enable_x64(True):
        exact = jax.tree.leaves(mapped["jacrev"](*[np.float64(x) for x in some]))
        errors = [
            relative_error([np.asarray(x) for x in jax.tree.leaves(mapped[key](*some))], exact)
            for key in ("auto", "jacrev")
        ]
    print(
        f"{name:18} {moved / 2**20:6,.0f} MiB {once:7.3f} {times['jacfwd']:8.3f} {times['jacrev']:8.3f} "
        f"{times['xla']:8.3f} {times['auto']:8.3f}   {times['auto'] / once:5.2f}x "
        f"{min(times['jacfwd'], times['jacrev']) / times['auto']:7.1f}x   {errors[0]:.1e} {errors[1]:.1e}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=8_388_608)
    parser.add_argument("--only", nargs="*", default=SCALAR)
    options = parser.parse_args()
    print(f"{jax.devices()[0].device_kind}, batch {options.batch:,}, JAX {jax.__version__}; milliseconds")
    print(f"{'':29}    once   jacfwd   jacrev      xla     auto   / once   faster   error   jacrev")
    for name in options.only:
        report(name, options.batch)


if __name__ == "__main__":
    main()
