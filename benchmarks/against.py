"""Times of this checkout relative to another one, measured alternately.

    git worktree add ../before <commit>
    python benchmarks/against.py ../before [--rounds 5] [--tasks RoeFlux_1d,RobotArm_6DOF]

For both checkouts, it measures the import, planning (tracing, planning and writing the derivative program, without
caches), searching (a number of evaluations), compiling a kernel, and running it at two batch sizes on one thread.
Processes take turns, and the fastest of all rounds counts, because the machine may be shared. The exit code is 1 if a
ratio is above ``--most``.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BATCHES = 512, 16_384


def measured(names: list[str]) -> dict[str, float]:
    """Seconds by the name of the measurement, for the checkout that is imported here."""
    start = time.perf_counter()
    import graphax as gx

    times = {"import graphax": time.perf_counter() - start}
    assert gx.jacve
    times["import graphax and jacve"] = time.perf_counter() - start
    import jax
    import jax.numpy as jnp
    import numpy as np

    import alphagrad
    from alphagrad.bench.orders import order_of
    from alphagrad.tasks import TASKS
    from graphax.native import set_threads
    from graphax.rule import clear_caches

    set_threads(1)
    budget = alphagrad.Budget(evaluations=2_000)
    for name in names:
        task = TASKS[name]
        args, order = task.arguments(), order_of("best", task)

        def jacobian(backend: str, task=task, order=order):
            return gx.jacve(task.function, argnums=task.argnums, order=order, backend=backend)

        def plan(jacobian=jacobian, args=args) -> None:
            clear_caches()
            jax.make_jaxpr(jacobian("xla"))(*args)

        times[f"{name}: plan"] = fastest(plan, 5)
        times[f"{name}: search"] = fastest(lambda task=task: alphagrad.search(task, budget=budget, seed=0), 3)
        mapped = jax.vmap(jacobian("native"))
        rng = np.random.default_rng(0)
        for batch in BATCHES:
            points = [
                jnp.asarray(np.asarray(a) * rng.uniform(0.9, 1.1, (batch, *np.shape(a))), np.float32) for a in args
            ]
            start = time.perf_counter()
            compiled = jax.jit(mapped).lower(*points).compile()
            times.setdefault(f"{name}: compile", time.perf_counter() - start)
            times[f"{name}: {batch:,} points"] = fastest(
                lambda compiled=compiled, points=points: jax.block_until_ready(compiled(*points)), 400
            )
    return times


def fastest(call, repetitions: int) -> float:
    best = float("inf")
    for _ in range(repetitions):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def run(checkout: Path, tasks: str) -> dict[str, float]:
    """The measurements of a checkout, in a separate process with empty caches."""
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {
            "PYTHONPATH": str(checkout.resolve() / "src"),
            "GRAPHAX_CACHE": cache,
            "ALPHAGRAD_CACHE": cache,
        }
        command = [sys.executable, __file__, str(checkout), "--tasks", tasks, "--child"]
        child = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(child.stdout.splitlines()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", type=Path, help="the root of the other checkout")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tasks", default="RoeFlux_1d,RobotArm_6DOF,HumanHeartDipole,BlackScholes,RoeFlux_3d")
    parser.add_argument("--most", type=float, default=1.1, help="the largest ratio that does not count as a regression")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(measured(arguments.tasks.split(","))))
        return 0
    if not (arguments.other / "src" / "graphax").is_dir():
        parser.error(f"{arguments.other} is not a checkout: it has no src/graphax")
    here = Path(__file__).resolve().parents[1]
    best: dict[str, dict[str, float]] = {"this": {}, "other": {}}
    for number in range(arguments.rounds):
        for name, checkout in (("this", here), ("other", arguments.other)):
            for what, seconds in run(checkout, arguments.tasks).items():
                best[name][what] = min(best[name].get(what, float("inf")), seconds)
        print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr, flush=True)
    print("| what | other [ms] | this [ms] | ratio |\n|---|--:|--:|--:|")
    worst = 0.0
    for what, seconds in best["this"].items():
        ratio = seconds / best["other"][what]
        worst = max(worst, ratio)
        print(f"| {what} | {best['other'][what] * 1e3:.3f} | {seconds * 1e3:.3f} | {ratio:.2f} |")
    print(f"\nlargest ratio {worst:.2f}")
    return int(worst > arguments.most)


if __name__ == "__main__":
    sys.exit(main())
