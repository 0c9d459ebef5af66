"""Search for better orders of all tasks and put them on the shelf that ships with the package.

    python benchmarks/best_known.py [--budget 20] [TASK ...]

It starts from the orders on the shelf, so it can be repeated with more time. A record is only replaced by a better
order, or by the same order with a higher bound.
"""

import argparse
from itertools import product

import alphagrad
from alphagrad import Objective
from alphagrad.finders import records
from alphagrad.tasks import TASKS, get

OBJECTIVES = (("multiplications", "raw"), ("multiplications", "folded"), ("operations", "folded"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", default=list(TASKS))
    parser.add_argument("--budget", type=float, default=20.0)
    options = parser.parse_args()
    shelf = records.shipped_shelf()
    for name, (minimize, counting), simplify in product(options.tasks, OBJECTIVES, (False, True)):
        graph, objective = get(name).graph(simplify=simplify), Objective.of(minimize, counting)
        known = records.read(shelf, graph, objective)
        if known and known.cost == known.bound:
            continue
        result = alphagrad.search(
            graph, minimize=minimize, counting=counting, budget=options.budget, start=known, record=False
        )
        news = "unchanged"
        if known is None or result.value < known.cost or (result.value == known.cost and result.bound > known.bound):
            records.write(shelf, result)
            news = "new"
        print(
            f"{name:20} {objective!s:28} {'simplified' * simplify:11} {result.value:g} {result.certificate} {news}",
            flush=True,
        )


if __name__ == "__main__":
    main()
