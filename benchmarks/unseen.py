"""How good one second of search is: the default search on unseen functions, against presets and long searches.

    python benchmarks/unseen.py [--generated 50] [--short 1] [--long 60] [--counting folded] [--workers 1]

It prints a line for each function, and a summary: how often a preset wins, and the gaps to the best known order.
"""

import argparse
import statistics
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context

import alphagrad
from alphagrad.tasks import UNSEEN, random_function
from graphax import PRESETS, build_graph


@dataclass(frozen=True)
class Outcome:
    name: str
    size: int
    best_preset: float
    short: float
    long: float
    bound: float

    @property
    def gap(self) -> float:
        best = min(self.short, self.long)
        return (self.short - best) / best if best else 0.0


def graph_of(name: str):
    if name in UNSEEN:
        return UNSEEN[name].graph()
    seed = int(name.removeprefix("generated_"))
    # Every other function has only scalars. Sizes vary.
    kinds = {"ranks": (0,)} if seed % 2 else {}
    function = random_function(
        seed, inputs=3 + seed % 9, outputs=2 + seed % 7, intermediates=30 + 5 * (seed % 20), **kinds
    )
    return build_graph(function, *function.args, argnums=tuple(range(len(function.args))))


def measure(name: str, short: float, long: float, counting: str) -> Outcome:
    graph = graph_of(name)
    presets = min(graph.cost(preset, counting).multiplications for preset in PRESETS)
    quick = alphagrad.search(graph, budget=short, counting=counting, record=False)
    slow = alphagrad.search(graph, budget=long, counting=counting, seed=1, start=quick.order, record=False)
    return Outcome(name, len(graph.intermediates), presets, quick.value, slow.value, slow.bound)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--generated", type=int, default=50)
    parser.add_argument("--short", type=float, default=1.0)
    parser.add_argument("--long", type=float, default=60.0)
    parser.add_argument("--counting", default="folded")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    names = [*UNSEEN, *(f"generated_{1000 + number}" for number in range(options.generated))]
    print(f"{'function':22} vertices  presets     {options.short:g} s     {options.long:g} s    bound      gap")
    outcomes = []
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        task = partial(measure, short=options.short, long=options.long, counting=options.counting)
        for outcome in pool.map(task, names):
            outcomes.append(outcome)
            print(
                f"{outcome.name:22} {outcome.size:8} {outcome.best_preset:8g} {outcome.short:8g} {outcome.long:8g} "
                f"{outcome.bound:8g} {outcome.gap:8.2%}",
                flush=True,
            )
    gaps = [outcome.gap for outcome in outcomes]
    lost = [outcome.name for outcome in outcomes if outcome.short > outcome.best_preset]
    won = [1 - outcome.short / outcome.best_preset for outcome in outcomes if outcome.best_preset]
    print(f"{len(outcomes)} functions; lost to a preset: {', '.join(lost) or 'none'}")
    print(f"gap to the best known: median {statistics.median(gaps):.2%}, largest {max(gaps):.2%}")
    print(f"better than the best preset by {statistics.mean(won):.1%} on average")


if __name__ == "__main__":
    main()
