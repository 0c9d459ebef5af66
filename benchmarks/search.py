"""The default search on the paper's tasks, on one core: the orders found, when, and what is proven.

    python benchmarks/search.py [--budget 10] [--seeds 5] [--certify]

For the four scalar tasks with raw counts, it prints the best count, the bound, and the seconds to reach the paper's
count. Then it prints folded counts, and the gain of all tasks over the best of forward, reverse and Markowitz.
``--certify`` continues until RoeFlux_1d is proven optimal.
"""

import argparse

import alphagrad
from alphagrad.tasks import TASKS

SCALAR = ("RoeFlux_1d", "RobotArm_6DOF", "HumanHeartDipole", "PropaneCombustion")
FOLDED = [(name, *kind) for name in SCALAR[:2] for kind in ((False, "multiplications"), (False, "operations"))]
FOLDED += [(name, True, "multiplications") for name in SCALAR[:2]]


def raw_counts(budget: float, seeds: int) -> None:
    print(f"raw multiplications, {budget:g} s: best, bound, seconds to reach the paper's count, seconds to the best")
    for name in SCALAR:
        for seed in range(seeds):
            result = alphagrad.search(TASKS[name], counting="raw", budget=budget, seed=seed, record=False)
            reached = next(seconds for seconds, _, value in result.history if value <= TASKS[name].paper.alphagrad)
            times = f"{reached:6.3f} {result.history[-1][0]:6.3f}"
            counts = f"{result.value:4g} {result.bound:4g}"
            print(f"  {name:18} seed {seed}: {counts} {times} {result.certificate}", flush=True)


def folded_counts(budget: float) -> None:
    print(f"folded, {budget:g} s")
    for name, simplify, minimize in FOLDED:
        result = alphagrad.search(TASKS[name], simplify=simplify, minimize=minimize, budget=budget, record=False)
        after = "after simplification" if simplify else ""
        print(f"  {name:18} {minimize:16} {result.value:4g} {result.certificate} {after}", flush=True)


def gains(budget: float) -> None:
    print(f"gain over the cheapest of forward, reverse and Markowitz, {budget:g} s; the paper's gain")
    for name, task in TASKS.items():
        graph = task.graph()
        for counting in ("raw", "folded"):
            known = min(graph.cost(order, counting).multiplications for order in ("fwd", "rev", "markowitz"))
            result = alphagrad.search(graph, counting=counting, budget=budget, record=False)
            paper = task.paper
            theirs = 1 - paper.alphagrad / min(paper.forward, paper.reverse, paper.markowitz) if paper else float("nan")
            gain = f"{known:6g} -> {result.value:6g} {1 - result.value / known:6.1%} {theirs:6.1%}"
            print(f"  {name:18} {counting:6} {gain}  {result.certificate}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=float, default=10.0)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--certify", action="store_true")
    options = parser.parse_args()
    raw_counts(options.budget, options.seeds)
    folded_counts(options.budget)
    gains(options.budget / 2)
    if options.certify:
        result = alphagrad.search(TASKS["RoeFlux_1d"], counting="raw", budget="certified", record=False)
        print(f"RoeFlux_1d: {result.value:g}, {result.certificate}, after {result.seconds:.0f} s")


if __name__ == "__main__":
    main()
