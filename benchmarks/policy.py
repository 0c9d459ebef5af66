"""How well the shipped policy plays functions that it has never seen, compared with Markowitz and with a search.

    python benchmarks/policy.py [--generated 100] [--seconds 3] [--countings raw folded] [--only NAME ...]

For each function, it prints the costs of the Markowitz order, of the policy's answer and of the search, the ratio of
the last two, and the milliseconds of the answer once its structures are known. The policy was not trained on any of
these functions. The exit code is 1 if a promise is broken: on average at most 1.05 times the cost of the search, at
worst 1.25 times, never worse than Markowitz, and on average less than 20 ms for 100 vertices.
"""

import argparse
import statistics
import sys
import time
from dataclasses import dataclass

from unseen import graph_of

import alphagrad
from alphagrad.elimination.objective import Objective
from alphagrad.elimination.problem import Problem
from alphagrad.policy.network import shipped
from alphagrad.policy.polish import answer
from alphagrad.tasks import SCIENTIFIC, UNSEEN
from graphax import ComputationGraph
from graphax.presets import preset_vertices

MEAN, WORST, MILLISECONDS = 1.05, 1.25, 20.0


@dataclass(frozen=True)
class Outcome:
    name: str
    vertices: int
    markowitz: float
    policy: float
    searched: float
    seconds: float

    @property
    def ratio(self) -> float:
        """The cost of the answer relative to the search. A function may need no multiplication at all."""
        return self.policy / self.searched if self.searched else 1.0 + self.policy

    @property
    def milliseconds(self) -> float:
        """The milliseconds per 100 vertices. Smaller graphs get as many moves, so their time counts as it is."""
        return 1e5 * self.seconds / max(100, self.vertices)

    @staticmethod
    def of(name: str, counting: str, seconds: float) -> "Outcome":
        graph = graph_named(name)
        problem = Problem(graph, Objective(counting=counting))
        order = answer(problem, shipped())
        return Outcome(
            name,
            problem.size,
            graph.cost("markowitz", counting).multiplications,
            problem.value(order),
            alphagrad.search(graph, counting=counting, budget=seconds, record=False).value,
            timed(problem),
        )


def graph_named(name: str) -> ComputationGraph:
    return SCIENTIFIC[name].graph() if name in SCIENTIFIC else graph_of(name)


def timed(problem: Problem) -> float:
    """Seconds of an answer, including the time to find the Markowitz order again."""
    network, best = shipped(), float("inf")
    for _ in range(3):
        preset_vertices.cache_clear()
        began = time.perf_counter()
        answer(problem, network)
        best = min(best, time.perf_counter() - began)
    return best


def broken(outcomes: list[Outcome]) -> list[str]:
    """The promises that are broken, in words."""
    ratios = [outcome.ratio for outcome in outcomes]
    lost = [outcome.name for outcome in outcomes if outcome.policy > outcome.markowitz]
    slow = statistics.fmean(outcome.milliseconds for outcome in outcomes)
    found = {
        f"{statistics.fmean(ratios):.3f} > {MEAN} on average": statistics.fmean(ratios) > MEAN,
        f"{max(ratios):.3f} > {WORST} at worst": max(ratios) > WORST,
        f"worse than Markowitz: {', '.join(lost)}": bool(lost),
        f"{slow:.1f} ms for 100 vertices": slow >= MILLISECONDS,
    }
    return [words for words, is_broken in found.items() if is_broken]


def summary(outcomes: list[Outcome]) -> str:
    worst = max(outcomes, key=lambda outcome: outcome.ratio)
    means = (statistics.fmean(o.ratio for o in outcomes), statistics.fmean(o.milliseconds for o in outcomes))
    markowitz = statistics.fmean(o.markowitz / o.searched for o in outcomes if o.searched)
    return (
        f"{len(outcomes)} functions: policy / search {means[0]:.3f} on average, {worst.ratio:.3f} at worst "
        f"({worst.name}); Markowitz / search {markowitz:.3f}; {means[1]:.1f} ms for 100 vertices"
    )


def measured(names: list[str], counting: str, seconds: float) -> list[Outcome]:
    outcomes = []
    for name in names:
        outcome = Outcome.of(name, counting, seconds)
        outcomes.append(outcome)
        print(
            f"{counting:7} {name:22} {outcome.vertices:4}  Markowitz {outcome.markowitz:7g}  policy "
            f"{outcome.policy:7g}  search {outcome.searched:7g}  {outcome.ratio:6.3f} {1e3 * outcome.seconds:6.1f} ms",
            flush=True,
        )
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--generated", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--countings", nargs="+", default=["raw", "folded"])
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    generated = [f"generated_{1000 + number}" for number in range(options.generated)]
    groups = {"other fields": [*UNSEEN], "scientific": [*SCIENTIFIC], "generated": generated}
    if options.only:
        groups = {"chosen": options.only}
    failures = []
    for counting in options.countings:
        every = []
        for kind, names in groups.items():
            outcomes = measured(names, counting, options.seconds) if names else []
            every += outcomes
            if outcomes:
                print(f"{counting}, {kind}: {summary(outcomes)}", flush=True)
        print(f"{counting}: {summary(every)}", flush=True)
        failures += [f"{counting}: {words}" for words in broken(every)]
    sys.exit("broken promises: " + "; ".join(failures) if failures else 0)


if __name__ == "__main__":
    main()
