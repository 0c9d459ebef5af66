"""Which count predicts time best? Rank correlations of the costs of orders with the times of their Jacobians.

    python benchmarks/cost_models.py [--tasks RoeFlux_1d ...] [--backend native] [--orders 20] [--seconds 20]

The orders are the presets, the best on record, and variations of that one with more and more vertices moved. A row is
for one task. It has the ratio of the slowest to the fastest order, the ratio of the most to the fewest multiplications,
and Spearman's correlation of each count, and of the model of this machine, with the minimum time of some rounds.
Everything is float32, under `jax.vmap`, and kernels have one thread. The model was fitted to orders of RoeFlux_1d and
RobotArm_6DOF, but not to the other tasks.
"""

import argparse
from collections.abc import Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import alphagrad
import graphax as gx
from alphagrad import tasks
from alphagrad.runtime.cost_model import measured, rank_correlation, this_machine
from alphagrad.runtime.workload import kernel_statements, workload
from graphax.native import set_threads
from graphax.table import table

TASKS = ("RoeFlux_1d", "RobotArm_6DOF", "random_g", "BlackScholes", "DoublePendulum", "HodgkinHuxley", "PengRobinson")
POINTS = 1 << 14
REPEAT = 200
COUNTS = {
    "raw mul": lambda folded, raw: raw.multiplications,
    "mul": lambda folded, raw: folded.multiplications,
    "mul + add": lambda folded, raw: folded.operations,
    "mul + add/4": lambda folded, raw: folded.multiplications + folded.additions / 4,
    "peak": lambda folded, raw: folded.peak,
}


def orders(graph: gx.ComputationGraph, count: int) -> Iterator[gx.Order]:
    """Good, usual and poor orders, without duplicates."""
    presets = [graph.plan(name).order for name in gx.PRESETS]
    best = alphagrad.best_known(graph)
    start = list(best.vertices if best else min(presets, key=lambda order: graph.cost(order).multiplications))
    rng = np.random.default_rng(0)
    moved = []
    for number in range(count - len(presets)):
        vertices = list(start)
        for _ in range(number * len(vertices) // count):
            vertices.insert(int(rng.integers(len(vertices))), vertices.pop(int(rng.integers(len(vertices)))))
        moved.append(tuple(vertices))
    yield from (gx.Order(vertices) for vertices in dict.fromkeys([*presets, *moved]))


def row(name: str, backend: str, count: int, seconds: float) -> list[str]:
    task = tasks.get(name)
    graph = task.graph()
    args = tuple(jnp.asarray(value, jnp.float32) for value in task.arguments())
    points = [jnp.broadcast_to(value, (POINTS, *value.shape)) + 0 for value in args]
    chosen = list(orders(graph, count))
    jacobians = [gx.jacve(task.function, order=order, argnums=task.argnums, backend=backend) for order in chosen]
    calls = {number: partial(jax.jit(jax.vmap(jacobian)), *points) for number, jacobian in enumerate(jacobians)}
    least = list(measured(calls, REPEAT, seconds).values())
    costs = [(graph.cost(order), graph.cost(order, "raw")) for order in chosen]
    model = this_machine("float32")
    works = [workload(kernel_statements(task.function, args, order, task.argnums)) for order in chosen]
    predictions = [[count(*cost) for cost in costs] for count in COUNTS.values()]
    predictions.append([model.predict(work) for work in works])
    ranks = [f"{rank_correlation(predicted, least):.2f}" for predicted in predictions]
    return [name, len(chosen), _spread(least), _spread([folded.multiplications for folded, _ in costs]), *ranks]


def _spread(numbers: list[float]) -> str:
    return f"{max(numbers) / min(numbers):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=TASKS)
    parser.add_argument("--backend", choices=("native", "xla"), default="native")
    parser.add_argument("--orders", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    # The model covers native kernels only.
    set_threads(1)
    rows = [row(name, options.backend, options.orders, options.seconds) for name in options.tasks]
    columns = ["task", "orders", "slowest/fastest", "most/fewest mul", *COUNTS, "model"]
    print(table(f"Rank correlation with the time of {POINTS:,} Jacobians, {options.backend}", columns, rows))


if __name__ == "__main__":
    main()
