"""What `order="auto"` gains by refining the best preset, and how long that takes.

    python benchmarks/orders.py [--generated 20] [--search 3] [--largest 1000] [--only NAME ...]

Every function is planned in its own process, because caches of structures would help later functions. A line has the
multiplications of the best preset, of auto and of a search, the milliseconds for the presets and for refining, and the
share of refining in the estimated time of the first call. Graphs with more vertices than ``--largest`` are not
searched. The search minimises operations, as auto does.
"""

import argparse
import math
import statistics
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context

import jax
from unseen import graph_of

import alphagrad
from alphagrad.tasks import MIDDLE, SCIENTIFIC, TASKS, UNSEEN
from graphax import ComputationGraph
from graphax.presets import cheapest_preset, is_refined, preset_vertices
from graphax.prices import Prices, Tally
from graphax.refine import first_call, refined


@dataclass(frozen=True)
class Outcome:
    """Counts are (operations, multiplications); times are in seconds."""

    name: str
    size: int
    preset: tuple[int, int]
    auto: tuple[int, int]
    searched: tuple[int, int] | None
    choosing: float
    refining: float
    estimated: float

    def gain(self, which: int) -> float:
        """The cost of auto relative to the best preset, in operations (0) or multiplications (1)."""
        return self.auto[which] / self.preset[which] if self.preset[which] else 1.0

    @property
    def can_gain(self) -> bool:
        known = min(self.auto, self.searched or self.auto)
        return known[0] < self.preset[0]


def graph_named(name: str) -> ComputationGraph:
    """The graph that `jacve` works on, without common subexpressions."""
    known = TASKS | UNSEEN | MIDDLE | SCIENTIFIC
    return known[name].graph(simplify=True) if name in known else graph_of(name)


def count(graph: ComputationGraph, vertices: tuple[int, ...]) -> tuple[int, int]:
    cost = graph.cost(vertices)
    return cost.operations, cost.multiplications


def measure(name: str, search: float, largest: int) -> Outcome:
    jax.config.update("jax_enable_x64", True)
    graph = graph_named(name)
    began = time.perf_counter()
    prices = Prices(graph)
    preset = cheapest_preset(graph, prices)
    chosen = time.perf_counter()
    # Large graphs are not refined.
    auto = refined(graph, prices, preset) if is_refined(graph, prices) else preset
    ended = time.perf_counter()
    assert auto == preset_vertices("auto", graph)
    tally = Tally(prices)
    operations = sum(map(tally.eliminate, preset))
    found = None
    if search and len(graph.intermediates) <= largest:
        order = alphagrad.search(graph, minimize="operations", budget=search, record=False).order
        found = count(graph, order.vertices)
    return Outcome(
        name,
        len(preset),
        count(graph, preset),
        count(graph, auto),
        found,
        chosen - began,
        ended - chosen,
        first_call(graph, operations, tally.written),
    )


def line(outcome: Outcome) -> str:
    searched = f"{outcome.searched[1]:9,}" if outcome.searched else f"{'':9}"
    return (
        f"{outcome.name:20} {outcome.size:8} {outcome.preset[1]:9,} {outcome.auto[1]:9,} {searched} "
        f"{outcome.gain(1):6.3f} {1e3 * outcome.choosing:8.1f} {1e3 * outcome.refining:8.1f} "
        f"{outcome.refining / outcome.estimated:7.1%}"
    )


def mean(ratios: Iterable[float]) -> float:
    """The geometric mean of all ratios that are not zero."""
    logs = [math.log(ratio) for ratio in ratios if ratio]
    return math.exp(statistics.fmean(logs)) if logs else 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--generated", type=int, default=20)
    parser.add_argument("--search", type=float, default=3.0)
    parser.add_argument("--largest", type=int, default=1000)
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    generated = (f"generated_{1000 + number}" for number in range(options.generated))
    names = options.only or [*TASKS, *UNSEEN, *SCIENTIFIC, *MIDDLE, *generated]
    print(f"{'function':20} vertices    preset      auto    search  ratio  presets   refine   share")
    task = partial(measure, search=options.search, largest=options.largest)
    outcomes = []
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        for outcome in pool.map(task, names):
            outcomes.append(outcome)
            print(line(outcome), flush=True)
    gaining = [outcome for outcome in outcomes if outcome.can_gain]
    for which, counted in enumerate(("operations", "multiplications")):
        every, some = (mean(outcome.gain(which) for outcome in group) for group in (outcomes, gaining))
        print(f"{counted}: {every:.3f} of the best preset; {some:.3f} on the {len(gaining)} that can gain")
    searched = [outcome for outcome in outcomes if outcome.searched]
    for who, costs in (("auto", [o.auto for o in searched]), ("search", [o.searched for o in searched])):
        ratios = [cost[1] / o.preset[1] for cost, o in zip(costs, searched, strict=True) if cost and o.preset[1]]
        print(f"where searched, {who}: {mean(ratios):.3f} of the multiplications of the best preset")
    shares = [outcome.refining / outcome.estimated for outcome in outcomes]
    print(f"refining takes {statistics.fmean(shares):.1%} of the estimated first call, at most {max(shares):.1%}")


if __name__ == "__main__":
    main()
