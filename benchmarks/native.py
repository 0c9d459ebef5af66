"""How fast the native backend is, compared with JAX's two modes and with the floor.

    python benchmarks/native.py [--batch 65536] [--repeat 31] [--only RoeFlux_1d ...]

The floor of a task is a jitted function with the same inputs and outputs, in which each output is an input times a
constant. It measures the cost of returning the Jacobian. Functions take turns, and a row consists of medians, so on a
shared machine ratios are more reliable than times. Everything is float32, under `jax.jit` and `jax.vmap`, with the best
order on record.
"""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np

from alphagrad.bench.case import Case
from alphagrad.bench.contender import elimination, floor, jax_mode
from alphagrad.bench.measure import POINTS, exact_entries
from alphagrad.bench.orders import best_order
from alphagrad.runtime.timing import Timing, take_turns
from alphagrad.tasks import TASKS
from graphax import jacve
from graphax.accuracy import relative_error
from graphax.native import set_threads

SCALAR = ("RoeFlux_1d", "RobotArm_6DOF", "HumanHeartDipole", "PropaneCombustion", "BlackScholes", "random_g")
LOOPED = ("RoeFlux_1d", "RobotArm_6DOF")
SMALL_BATCH = 512
SCAN_STEPS = 1000
# The number of calls per turn when orders are compared, which differ only in arithmetic.
TOGETHER = 8
# The maximum seconds of one measurement.
LIMIT = 60.0
BEST, REVERSE = "best/native", "rev/native"


def medians(calls, repeat):
    """The median milliseconds of each call. Calls take turns."""
    seconds = {name: [] for name in calls}
    take_turns(calls, seconds, repeat, LIMIT, lambda turn: None)
    return {name: 1e3 * Timing.of(times).median for name, times in seconds.items()}


def several(call):
    """Several calls in a row, so that each finds the caches as the one before left them."""

    def together():
        for _ in range(TOGETHER):
            call()

    return together


def looped(jacobian):
    """A thousand Jacobians, each at points that all entries of the previous Jacobian have moved."""
    mapped = jax.vmap(jacobian)

    def step(points, _):
        rows = mapped(*points)
        moved = [x + 1e-9 * sum(row[number] for row in rows) for number, x in enumerate(points)]
        return tuple(moved), None

    return jax.jit(lambda *args: jax.lax.scan(step, args, length=SCAN_STEPS)[0])


def compile_time(operations=1000):
    """Seconds from statements to machine code, for a chain of about this many operations."""
    from graphax import _jax
    from graphax.native.host import host, machine_code
    from graphax.native.memory import PointLayout
    from graphax.native.points import kernel_code
    from graphax.native.unroll import unroll

    def function(x, y):
        rng = np.random.default_rng(0)
        values = [x, y]
        while len(values) < operations:
            a, b = (values[n] for n in rng.integers(max(0, len(values) - 20), len(values), 2))
            values.append([a * b, a + b, a - b, jnp.sin(a)][rng.choice(4, p=(0.5, 0.3, 0.15, 0.05))])
        return values[-20:]

    program, _ = _jax.open_program(function, [np.float32(1), np.float32(2)])
    start = time.perf_counter()
    statements = unroll(program)
    code = kernel_code(statements, PointLayout(host().vector_bits // 32, (True, True)))
    machine_code(code)
    return statements.operations, time.perf_counter() - start


def report_batch(name, batch, repeat):
    case = Case(TASKS[name], batch)
    kernels = [elimination(order, "native") for order in ("best", "rev")]
    contenders = [floor(), jax_mode("jacfwd"), jax_mode("jacrev"), *kernels]
    ready = {contender.name: contender.prepare(case) for contender in contenders}
    t = medians({key: each.call for key, each in ready.items() if key != REVERSE}, repeat)
    ours, theirs = t[BEST], min(t["jacfwd"], t["jacrev"])
    before = set_threads(1)
    alone = medians({key: several(ready[key].call) for key in (BEST, REVERSE)}, repeat)
    set_threads(before)
    exact = exact_entries(case)
    errors = [relative_error(ready[key].entries(POINTS), exact) for key in (BEST, "jacrev")]
    print(
        f"{name:18} {batch:6}  {t['floor']:7.3f} {theirs:8.3f} {ours:7.3f}   {theirs / ours:6.1f}x "
        f"{ours / t['floor']:6.2f}x   {alone[BEST] / TOGETHER:7.3f} {alone[REVERSE] / alone[BEST]:5.2f}x   "
        f"{errors[0]:.1e} {errors[0] / max(errors[1], 1e-12):5.2f}x",
        flush=True,
    )


def report_loop(name, repeat):
    task = TASKS[name]
    points = [jnp.asarray(x) for x in Case(task, SMALL_BATCH).points]
    kinds = {
        "jacfwd": jax.jacfwd(task.function, task.argnums),
        "jacrev": jax.jacrev(task.function, task.argnums),
        "native": jacve(task.function, order=best_order(task), argnums=task.argnums, backend="native"),
    }
    calls = {key: finished(looped(kind), points) for key, kind in kinds.items()}
    t = medians(calls, repeat)
    theirs = min(t["jacfwd"], t["jacrev"])
    print(f"{name:18} {theirs:8.1f} ms {t['native']:8.1f} ms {theirs / t['native']:6.1f}x", flush=True)


def finished(function, args):
    """A compiled call that returns when the results are ready."""

    def call():
        jax.block_until_ready(function(*args))

    call()
    return call


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=65536)
    parser.add_argument("--repeat", type=int, default=31)
    parser.add_argument("--only", nargs="*", default=SCALAR)
    options = parser.parse_args()
    print("milliseconds               floor      JAX  native   faster  /floor  1 thread  order     error  /jacrev")
    for batch in (options.batch, SMALL_BATCH):
        for name in options.only:
            report_batch(name, batch, options.repeat)
    print(f"\n{SCAN_STEPS} steps of lax.scan at {SMALL_BATCH}    JAX      native   faster")
    for name in [name for name in LOOPED if name in options.only]:
        report_loop(name, max(3, options.repeat // 6))
    print("\ncompiling {:,} operations takes {:.2f} s".format(*compile_time()))


if __name__ == "__main__":
    main()
