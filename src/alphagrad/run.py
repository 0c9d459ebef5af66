"""Running a finder on a problem within a budget."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from graphax import ComputationGraph, Order

from .budget import Budget, Progress, Reporter
from .finders.objective import Objective
from .finders.portfolio import FINDERS, warm_up
from .finders.problem import Problem
from .result import SearchResult


@dataclass(frozen=True)
class Best:
    """The best order so far, in nodes, and what makes it so."""

    nodes: np.ndarray
    key: tuple[float, int, int]


def run(
    graph: ComputationGraph,
    objective: Objective,
    method: str,
    budget: Budget,
    seed: int,
    starts: Iterable[Order] = (),
    progress: Callable[[Progress], None] | None = None,
) -> SearchResult:
    """Search in this process."""
    warm_up(method)
    problem = Problem(graph, objective)
    began = time.monotonic()
    reporter = Reporter(progress)
    given = [problem.nodes(order.vertices) for order in starts]
    best = _first(problem, given)
    bound = _cut_bound(graph, objective)
    history = [(0.0, 0, best.key[0])]
    evaluations, stopped = 0, "exhausted"
    seconds = time.monotonic() - began

    def standing() -> Progress:
        return Progress(method, best.key[0], bound, evaluations, seconds)

    try:
        for step in FINDERS[method](problem, seed, given):
            evaluations += step.evaluations
            if step.nodes is not None:
                found = Best(step.nodes, problem.key(step.nodes))
                if found.key < best.key:
                    if found.key[0] < best.key[0]:
                        history.append((time.monotonic() - began, evaluations, found.key[0]))
                    best = found
            bound = max(bound, step.bound)
            seconds = time.monotonic() - began
            reporter.report(standing)
            if best.key[0] <= bound or budget.spent(seconds, evaluations):
                stopped = "budget"
                break
    except KeyboardInterrupt:
        stopped = "interrupted"
    stopped = "optimal" if best.key[0] <= bound else stopped
    cost = problem.cost(best.nodes)
    value = best.key[0]
    order = Order(
        problem.vertices(best.nodes), graph.fingerprint, method, seed, value, bound, simplified=graph.simplified
    )
    return SearchResult(order, cost, value, bound, objective, tuple(history), evaluations, seconds, stopped, graph)


def _cut_bound(graph: ComputationGraph, objective: Objective) -> float:
    if objective.minimize != "weighted":
        return graph.lower_bound(objective.minimize, objective.counting)
    return objective.weights[0] * graph.lower_bound("multiplications", objective.counting)


def _first(problem: Problem, given: list[np.ndarray]) -> Best:
    """What is returned if the search is interrupted at once."""
    ascending = np.arange(problem.size, dtype=np.int32)
    candidates = [*given, ascending[::-1].copy()]
    keys = [problem.key(nodes) for nodes in candidates]
    best = keys.index(min(keys))
    return Best(candidates[best], keys[best])
