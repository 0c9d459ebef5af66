"""Running a finder on a problem within a budget, and proving what it found."""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import count

import numpy as np

from graphax import ComputationGraph, Order

from ..certificates.prove import Prover
from ..elimination.objective import Objective
from ..elimination.problem import Problem
from .budget import Budget, Progress, Reporter
from .finder import Step, cheapest
from .portfolio import FINDERS, warm_up
from .result import SearchResult

# Seconds that a search with time to spare first looks for orders, before it works on a proof.
FIRST_SLICE = 1.0
# How much longer than for orders it works on a proof once orders do not get better.
PROOF_SHARE = 4


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
    search = _Search(graph, objective, method, budget, seed, list(starts), Reporter(progress))
    try:
        search.run()
    except KeyboardInterrupt:
        search.stopped = "interrupted"
    return search.result()


class _Search:
    """A search under way: the best order and bound so far."""

    def __init__(
        self,
        graph: ComputationGraph,
        objective: Objective,
        method: str,
        budget: Budget,
        seed: int,
        starts: list[Order],
        reporter: Reporter,
    ):
        self._began = time.monotonic()
        self._problem = Problem(graph, objective)
        self._method, self._budget, self._seed, self._reporter = method, budget, seed, reporter
        given = [self._problem.nodes(order.vertices) for order in starts]
        # What is returned if the search is interrupted at once.
        self._nodes = cheapest(self._problem, [*given, np.arange(self._problem.size, dtype=np.int32)[::-1].copy()])
        self._key = self._problem.key(self._nodes)
        self._steps: Iterator[Step] = FINDERS[method](self._problem, seed, given)
        self._bound = _cut_bound(graph, objective)
        self._history = [(0.0, 0, self._key[0])]
        self._evaluations = 0
        self.stopped = "budget"

    def run(self) -> None:
        """Look for orders; if there is time, work on a proof in between."""
        if (self._budget.seconds is not None and self._budget.seconds <= 2 * FIRST_SLICE) or not self._provable():
            self._look(math.inf)
            return
        prover = Prover(self._problem.graph, self._problem.objective.counting)
        for turn in count():
            before, length = self._key[0], FIRST_SLICE * 2**turn
            exhausted = self._look(length)
            if self._is_over() or (exhausted and not prover.open):
                return
            self._prove(prover, length * (1 if self._key[0] < before else PROOF_SHARE))
            if self._is_over():
                return

    def _provable(self) -> bool:
        """Proofs take time of the clock, so a budget of evaluations alone, which is to be repeatable, has none."""
        limited = self._budget.seconds is None and self._budget.evaluations is not None
        return self._method == "auto" and self._problem.objective.minimize == "multiplications" and not limited

    def _look(self, seconds: float) -> bool:
        """Take steps of the finder for a while; returns whether it has no more."""
        until = time.monotonic() + seconds
        for step in self._steps:
            self._evaluations += step.evaluations
            if step.nodes is not None:
                self._offer(step.nodes)
            self._bound = max(self._bound, step.bound)
            self._reporter.report(self._standing)
            if self._is_over() or time.monotonic() >= until:
                return False
        self.stopped = "exhausted"
        return True

    def _prove(self, prover: Prover, seconds: float) -> None:
        left = math.inf if self._budget.seconds is None else self._budget.seconds - self._seconds()
        for _ in prover.work(min(seconds, left), self._key[0]):
            self._bound = max(self._bound, prover.proof.bound)
            self._reporter.report(self._standing)
        if prover.proof.order is not None:
            self._offer(self._problem.nodes(prover.proof.order))
        self._bound = max(self._bound, prover.proof.bound)

    def _offer(self, nodes: np.ndarray) -> None:
        key = self._problem.key(nodes)
        if key[0] < self._key[0]:
            self._history.append((self._seconds(), self._evaluations, key[0]))
        if key < self._key:
            self._nodes, self._key = nodes, key

    def _seconds(self) -> float:
        return time.monotonic() - self._began

    def _is_over(self) -> bool:
        return self._key[0] <= self._bound or self._budget.spent(self._seconds(), self._evaluations)

    def _standing(self) -> Progress:
        return Progress(self._method, self._key[0], self._bound, self._evaluations, self._seconds())

    def result(self) -> SearchResult:
        graph, objective, value = self._problem.graph, self._problem.objective, self._key[0]
        vertices = self._problem.vertices(self._nodes)
        return SearchResult(
            order=Order(vertices, graph.fingerprint, self._method, self._seed, value, self._bound, graph.simplified),
            cost=self._problem.cost(self._nodes),
            value=value,
            bound=self._bound,
            objective=objective,
            history=tuple(self._history),
            evaluations=self._evaluations,
            seconds=self._seconds(),
            stopped="optimal" if value <= self._bound else self.stopped,
            graph=graph,
        )


def _cut_bound(graph: ComputationGraph, objective: Objective) -> float:
    if objective.minimize != "weighted":
        return graph.lower_bound(objective.minimize, objective.counting)
    return objective.weights[0] * graph.lower_bound("multiplications", objective.counting)
