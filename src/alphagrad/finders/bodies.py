"""Search of graphs with loops: first an order of the graph, then orders of the bodies that its plan passes through.

A body is searched together with what is carried through it, as a graph like any other. So it has bounds and
certificates of its own, which hold for the way that the order of the graph takes through the loop.
"""

import time
from collections.abc import Callable
from dataclasses import replace

from graphax import ComputationGraph, Order

from .budget import Budget, Progress
from .result import SearchResult
from .run import Trial

Report = Callable[[Progress], None] | None
Find = Callable[[Trial, Report], SearchResult]

# Orders of a graph with loops are never certified, so a search without a limit evaluates this many orders.
WITHOUT_LIMIT = Budget(evaluations=200_000)


def search_bodies(trial: Trial, find: Find, progress: Report = None) -> SearchResult:
    """Search a graph, and then the bodies of its loops, by ``find``."""
    graph, objective = trial.graph, trial.objective
    if not graph.has_loops or objective.minimize == "peak":
        # The peak counts values held between the steps of a plan, which no order of a body changes.
        return find(trial, progress)

    def key(order: Order) -> tuple[float, int, int]:
        cost = graph.cost(order, objective.counting)
        return objective.value(cost), cost.additions, cost.peak

    # A start with an order for another body raises here, before any time is spent.
    known = sorted(trial.starts, key=key)
    began = time.monotonic()
    first = WITHOUT_LIMIT if trial.budget == Budget() else trial.budget.left(among=2)
    result = find(replace(trial, budget=first), progress)
    best = min((result.order, *known), key=key)
    result = replace(result, order=best)
    found = {} if result.stopped == "interrupted" else _search_each(trial, result, find, progress, began)
    orders = dict(best.bodies) | {vertex: body.order for vertex, body in found.items()}
    whole = replace(best, bodies=tuple(orders.items()))
    # Another order of a body may leave wider blocks behind, which make the rest of the graph more expensive.
    chosen = min((whole, best), key=key)
    return _joined(trial, result, chosen, found if chosen is whole else {}, time.monotonic() - began)


def _search_each(
    trial: Trial, result: SearchResult, find: Find, progress: Report, began: float
) -> dict[int, SearchResult]:
    """Search the bodies that an order passes through, by vertex. Equal bodies are searched once."""
    passings = list(trial.graph.plan(result.order).passings)
    evaluations = result.evaluations
    found: dict[int, SearchResult] = {}
    searched: dict[ComputationGraph, SearchResult] = {}
    for number, (vertex, passing) in enumerate(passings):
        body = passing.how.graph
        if body not in searched:
            share = trial.budget.left(time.monotonic() - began, evaluations, len(passings) - number)
            part = replace(trial, graph=body, budget=share, starts=(passing.how.order,), bound=0.0)
            searched[body] = search_bodies(part, find, _of_body(progress, vertex))
            evaluations += searched[body].evaluations
        found[vertex] = searched[body]
        if found[vertex].stopped == "interrupted":
            break
    return found


def _of_body(progress: Report, vertex: int) -> Report:
    """A progress callback whose reports name the body."""
    if progress is None:
        return None
    return lambda now: progress(replace(now, finder=f"{now.finder}, a step of the loop at vertex {vertex}"))


def _joined(
    trial: Trial, result: SearchResult, order: Order, found: dict[int, SearchResult], seconds: float
) -> SearchResult:
    """The joint result for a graph and its bodies."""
    cost = trial.graph.cost(order, trial.objective.counting)
    value = trial.objective.value(cost)
    searches = {id(body): body for body in found.values()}.values()
    evaluations = result.evaluations + sum(body.evaluations for body in searches)
    ends = [result.stopped, *(body.stopped for body in searches)]
    stopped = next((end for end in ("interrupted", "workers died", "budget") if end in ends), result.stopped)
    return replace(
        result,
        order=replace(order, finder=trial.method, seed=trial.seed, cost=value, bound=result.bound),
        cost=cost,
        value=value,
        history=result.history + (((seconds, evaluations, value),) if value < result.value else ()),
        evaluations=evaluations,
        seconds=seconds,
        stopped="optimal" if value <= result.bound else stopped,
        bodies=tuple(sorted(found.items())),
    )
