"""Runs a finder on a problem within a budget, and proves bounds on the result."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np

from graphax import ComputationGraph, Order
from graphax.bound import lower_bound

from ..certificates.prove import Prover
from ..elimination.objective import Objective
from ..elimination.problem import Problem
from .budget import Budget, Progress, Reporter
from .finder import Step, cheapest, reverse
from .portfolio import FINDERS, warm_up
from .result import SearchResult

# The seconds that a search with time to spare looks for orders before it works on a proof.
FIRST_SLICE = 1.0
# The factor by which proofs get more time than orders once orders no longer improve.
PROOF_SHARE = 4


@dataclass(frozen=True)
class Trial:
    """What to search, how, and for how long. ``bound`` is the bound proven so far."""

    graph: ComputationGraph
    objective: Objective
    method: str
    budget: Budget
    seed: int
    starts: tuple[Order, ...] = ()
    bound: float = 0.0


def run(trial: Trial, progress: Callable[[Progress], None] | None = None) -> SearchResult:
    """Search in this process."""
    warm_up(trial.method)
    search = _Search(trial, Reporter(progress))
    try:
        search.run()
    except KeyboardInterrupt:
        search.stopped = "interrupted"
    return search.result()


class _Search:
    """A search in progress, with the best order and bound so far."""

    def __init__(self, trial: Trial, reporter: Reporter):
        self._began = time.monotonic()
        self._trial, self._reporter = trial, reporter
        self._problem = Problem(trial.graph, trial.objective)
        given = [self._problem.nodes(order.vertices) for order in trial.starts]
        # The result if the search is interrupted at once.
        self._nodes = cheapest(self._problem, [*given, reverse(self._problem)])
        self._key = self._problem.key(self._nodes)
        self._steps: Iterator[Step] = FINDERS[trial.method](self._problem, trial.seed, given)
        self._bound = _bound(trial.graph, trial.objective, quick=True)
        if not self._is_repeatable:
            self._bound = max(self._bound, trial.bound)
        self._history = [(0.0, 0, self._key[0])]
        self._evaluations = 0
        self.stopped = "budget"

    def run(self) -> None:
        """Look for orders and, if there is time, work on a proof in between."""
        trial = self._trial
        # Proofs depend on the clock, so a repeatable search has none.
        if trial.budget.most_seconds <= 2 * FIRST_SLICE or trial.method != "auto" or self._is_repeatable:
            self._look(math.inf)
        elif trial.objective.minimize == "multiplications":
            self._look_and_prove()
        elif not self._look(FIRST_SLICE) and not self._is_over():
            self._bound = max(self._bound, _bound(trial.graph, trial.objective))
            self._look(math.inf)

    def _look_and_prove(self) -> None:
        prover: Prover | None = None
        for turn in count():
            before, length = self._key[0], FIRST_SLICE * 2**turn
            exhausted = self._look(length)
            if self._is_over():
                return
            prover = prover or Prover(self._trial.graph, self._trial.objective.counting)
            self._bound = max(self._bound, prover.proof.bound)
            if self._is_over() or (exhausted and not prover.open):
                return
            self._prove(prover, length * (1 if self._key[0] < before else PROOF_SHARE))
            if self._is_over():
                return

    @property
    def _is_repeatable(self) -> bool:
        """Whether the budget limits evaluations only, so that neither the clock nor records affect the result."""
        return self._trial.budget.seconds is None and self._trial.budget.evaluations is not None

    def _look(self, seconds: float) -> bool:
        """Take steps of the finder for a while. Returns whether the finder is exhausted."""
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
        left = self._trial.budget.most_seconds - self._seconds()
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
        return self._key[0] <= self._bound or self._trial.budget.spent(self._seconds(), self._evaluations)

    def _standing(self) -> Progress:
        return Progress(self._trial.method, self._key[0], self._bound, self._evaluations, self._seconds())

    def result(self) -> SearchResult:
        trial, graph, value = self._trial, self._trial.graph, self._key[0]
        bound = max(self._bound, trial.bound)
        vertices = self._problem.vertices(self._nodes)
        return SearchResult(
            order=graph.order(vertices, finder=trial.method, seed=trial.seed, cost=value, bound=bound),
            cost=self._problem.cost(self._nodes),
            value=value,
            bound=bound,
            objective=trial.objective,
            history=tuple(self._history),
            evaluations=self._evaluations,
            seconds=self._seconds(),
            stopped="optimal" if value <= bound else self.stopped,
            graph=graph,
        )


def _bound(graph: ComputationGraph, objective: Objective, quick: bool = False) -> float:
    if objective.minimize != "weighted":
        return lower_bound(graph, objective.minimize, objective.counting, quick)
    return objective.weights[0] * lower_bound(graph, "multiplications", objective.counting, quick)
