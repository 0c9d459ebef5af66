"""How much of the best known cost the lower bound of a search proves, for all tasks.

    python benchmarks/bounds.py [--seconds 4] [--countings raw folded] [--only NAME ...]

For each task it prints the best cost of a search, the bound that the search has proven, and their ratio. Then follow
the mean ratio of graphs with up to 60 vertices, and the functions of arrays whose bound is less than half of the cost.
"""

import argparse
import statistics
from dataclasses import dataclass

import alphagrad
from alphagrad.tasks import SCIENTIFIC, TASKS, UNSEEN
from graphax.bound import single_elements

SMALL = 60


@dataclass(frozen=True)
class Outcome:
    name: str
    counting: str
    vertices: int
    of_arrays: bool
    value: float
    bound: float

    @property
    def ratio(self) -> float:
        return self.bound / self.value if self.value else 1.0

    @staticmethod
    def of(name: str, counting: str, seconds: float) -> "Outcome":
        graph = (TASKS | UNSEEN | SCIENTIFIC)[name].graph()
        found = alphagrad.search(graph, counting=counting, budget=seconds, record=False)
        return Outcome(name, counting, len(graph.intermediates), not single_elements(graph), found.value, found.bound)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=4.0, help="the time of each search")
    parser.add_argument("--countings", nargs="+", default=["raw", "folded"], choices=["raw", "folded"])
    parser.add_argument("--only", nargs="+", default=[*TASKS, *UNSEEN, *SCIENTIFIC], metavar="NAME")
    options = parser.parse_args()
    for counting in options.countings:
        outcomes = []
        for name in options.only:
            outcomes.append(Outcome.of(name, counting, options.seconds))
            now = outcomes[-1]
            print(f"{name:22}{now.vertices:4}{counting:>8}{now.value:10,g}{now.bound:10,g}{now.ratio:7.2f}", flush=True)
        small = [each.ratio for each in outcomes if each.vertices <= SMALL]
        if small:
            print(
                f"{counting}: mean ratio {statistics.mean(small):.3f} of {len(small)} graphs of up to {SMALL} vertices"
            )
        weak = [f"{each.name} ({each.ratio:.2f})" for each in outcomes if each.of_arrays and each.ratio < 0.5]
        print(f"{counting}: less than half on {', '.join(weak) or 'none'}")


if __name__ == "__main__":
    main()
