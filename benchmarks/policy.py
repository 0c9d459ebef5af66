"""Does the shipped policy play functions it has never seen? Against Markowitz, and as the start of a second of search.

    python benchmarks/policy.py [--generated 100] [--seconds 1] [--countings raw folded]

Prints a line for each function: what Markowitz's order, the policy's order, a second of annealing from Markowitz's and
one from the policy's cost. None of the functions was trained on.
"""

import argparse
import statistics
from dataclasses import dataclass

from unseen import graph_of

import alphagrad
from alphagrad.elimination.objective import Objective
from alphagrad.elimination.problem import Problem
from alphagrad.policy.network import shipped
from alphagrad.policy.play import policy_order
from alphagrad.tasks import TASKS, UNSEEN
from graphax import ComputationGraph


@dataclass(frozen=True)
class Outcome:
    markowitz: float
    policy: float
    annealed: float
    policy_annealed: float

    @staticmethod
    def of(graph: ComputationGraph, counting: str, seconds: float) -> "Outcome":
        def found(method: str, **options) -> float:
            return alphagrad.search(
                graph, counting=counting, method=method, budget=seconds, record=False, **options
            ).value

        problem = Problem(graph, Objective(counting=counting))
        return Outcome(
            graph.cost("markowitz", counting).multiplications,
            problem.value(policy_order(problem, shipped())),
            found("anneal", start="markowitz"),
            found("policy+anneal"),
        )


def summary(outcomes: list[Outcome]) -> str:
    better = sum(o.policy < o.markowitz for o in outcomes) / len(outcomes)
    ratio = statistics.mean(o.policy / o.markowitz for o in outcomes)
    searched = statistics.mean(o.policy_annealed / o.annealed for o in outcomes)
    worse = sum(o.policy_annealed > o.annealed for o in outcomes)
    won = sum(o.policy_annealed < o.annealed for o in outcomes)
    return (
        f"policy / Markowitz {ratio:.3f} in the mean, better on {better:.0%}; with search "
        f"{searched:.4f} in the mean, better on {won}, worse on {worse} of {len(outcomes)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--generated", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--countings", nargs="+", default=["raw", "folded"])
    options = parser.parse_args()
    generated = [f"generated_{1000 + number}" for number in range(options.generated)]
    for counting in options.countings:
        for kind, names in {"tasks": TASKS, "other fields": UNSEEN, "generated": generated}.items():
            outcomes = []
            for name in names:
                graph = TASKS[name].graph() if name in TASKS else graph_of(name)
                outcome = Outcome.of(graph, counting, options.seconds)
                outcomes.append(outcome)
                print(
                    f"{counting:7} {name:22} Markowitz {outcome.markowitz:7g}  policy {outcome.policy:7g}  annealed "
                    f"{outcome.annealed:7g}  policy+anneal {outcome.policy_annealed:7g}",
                    flush=True,
                )
            print(f"{counting}, {kind}: {summary(outcomes)}", flush=True)


if __name__ == "__main__":
    main()
