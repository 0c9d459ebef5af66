"""How fast the native backend is, beside JAX's two modes and beside the floor.

    python benchmarks/native.py [--batch 65536] [--repeat 31] [--only RoeFlux_1d ...]

The floor of a task is a jitted function with the same inputs and outputs, each output an input times a constant: what
handing back the Jacobian costs by itself. Functions take turns, and a row is made of medians, so ratios mean more than
times where the machine is shared. Everything is float32, under `jax.jit` and `jax.vmap`, with the best order on record.
"""

import argparse
import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np

import graphax as gx
from alphagrad.finders.objective import Objective
from alphagrad.records import best_known
from alphagrad.tasks import TASKS
from graphax.native import set_threads

SCALAR = ("RoeFlux_1d", "RobotArm_6DOF", "HumanHeartDipole", "PropaneCombustion", "BlackScholes", "random_g")
LOOPED = ("RoeFlux_1d", "RobotArm_6DOF")
SMALL_BATCH = 512
SCAN_STEPS = 1000


def best_order(task):
    """The order of fewest multiplications, on the graph as traced or without common subexpressions."""
    graphs = [task.graph(simplify=simplified) for simplified in (True, False)]
    orders = [order for graph in graphs if (order := best_known(graph, Objective.of("multiplications")))]
    return min(orders, key=lambda order: order.cost)


def points(task, batch):
    rng = np.random.default_rng(0)
    arguments = zip(task.arguments(), task.batch_axes, strict=True)
    return [
        jnp.asarray(x if axis is None else x * (1 + 0.02 * rng.normal(size=(batch, *x.shape))), jnp.float32)
        for x, axis in arguments
    ]


def batched(task, jacobian):
    return jax.jit(jax.vmap(jacobian, in_axes=task.batch_axes))


def jacobians(task):
    """JAX's modes, and the native backend with the best order and in reverse."""
    kinds = {"jacfwd": jax.jacfwd, "jacrev": jax.jacrev}
    found = {name: batched(task, kind(task.function, task.argnums)) for name, kind in kinds.items()}
    for name, order in (("native", best_order(task)), ("reverse", "rev")):
        found[name] = batched(task, gx.jacve(task.function, order, argnums=task.argnums, backend="native"))
    return found


def floor(task, args):
    """Each output an input times a constant."""
    results = jax.eval_shape(batched(task, jax.jacfwd(task.function, task.argnums)), *args)

    def trivial(*args):
        outputs = []
        for number, result in enumerate(jax.tree.leaves(results)):
            source = args[number % len(args)].ravel()[: result.shape[0]] * (1.5 + number)
            outputs.append(jnp.broadcast_to(source.reshape(-1, *(1,) * (result.ndim - 1)), result.shape))
        return outputs

    return jax.jit(trivial)


def medians(functions, args, repeat):
    """Milliseconds of each function; they take turns."""
    for function in functions.values():
        jax.block_until_ready(function(*args))
    times = {name: [] for name in functions}
    for _ in range(repeat):
        for name, function in functions.items():
            start = time.perf_counter()
            jax.block_until_ready(function(*args))
            times[name].append(time.perf_counter() - start)
    return {name: 1e3 * statistics.median(values) for name, values in times.items()}


def relative_error(task, function, args):
    """The largest error of any entry against float64, relative to the largest entry of its array."""
    with jax.enable_x64(True):
        exact = batched(task, jax.jacrev(task.function, task.argnums))(*(np.asarray(x, np.float64) for x in args))
        exact = [np.asarray(x) for x in jax.tree.leaves(exact)]
    got = [np.asarray(x, np.float64) for x in jax.tree.leaves(function(*args))]
    scales = [np.max(np.abs(want)) or 1.0 for want in exact]
    return max(np.max(np.abs(a - b)) / scale for a, b, scale in zip(got, exact, scales, strict=True))


def looped(task, jacobian):
    """A thousand Jacobians, each at points moved by the one before; every entry at every point counts."""
    mapped = jax.vmap(jacobian)

    def step(points, _):
        rows = mapped(*points)
        moved = [x + 1e-9 * sum(row[number] for row in rows) for number, x in enumerate(points)]
        return tuple(moved), None

    return jax.jit(lambda *args: jax.lax.scan(step, args, length=SCAN_STEPS)[0])


def compile_time(operations=1000):
    """Seconds from statements to machine code, for a chain of about so many operations."""
    from graphax import _jax
    from graphax.native.host import host, machine_code
    from graphax.native.kernel import Layout, kernel_code
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
    code = kernel_code(statements, Layout(host().vector_bits // 32, (True, True)))
    machine_code(code)
    return statements.operations, time.perf_counter() - start


def report_batch(name, batch, repeat):
    task = TASKS[name]
    args = points(task, batch)
    functions = {"floor": floor(task, args), **jacobians(task)}
    t = medians({key: f for key, f in functions.items() if key != "reverse"}, args, repeat)
    theirs = min(t["jacfwd"], t["jacrev"])
    before = set_threads(1)
    alone = medians({key: functions[key] for key in ("native", "reverse")}, args, repeat)
    set_threads(before)
    errors = [relative_error(task, functions[key], args) for key in ("native", "jacrev")]
    print(
        f"{name:18} {batch:6}  {t['floor']:7.3f} {theirs:8.3f} {t['native']:7.3f}   {theirs / t['native']:6.1f}x "
        f"{t['native'] / t['floor']:6.2f}x   {alone['native']:7.3f} {alone['reverse'] / alone['native']:5.2f}x   "
        f"{errors[0]:.1e} {errors[0] / max(errors[1], 1e-12):5.2f}x",
        flush=True,
    )


def report_loop(name, repeat):
    task = TASKS[name]
    args = points(task, SMALL_BATCH)
    kinds = {
        "jacfwd": jax.jacfwd(task.function, task.argnums),
        "jacrev": jax.jacrev(task.function, task.argnums),
        "native": gx.jacve(task.function, best_order(task), argnums=task.argnums, backend="native"),
    }
    t = medians({key: looped(task, kind) for key, kind in kinds.items()}, args, repeat)
    theirs = min(t["jacfwd"], t["jacrev"])
    print(f"{name:18} {theirs:8.1f} ms {t['native']:8.1f} ms {theirs / t['native']:6.1f}x", flush=True)


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
