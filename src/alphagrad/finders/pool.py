"""Searching on many workers: independent trials on any `concurrent.futures.Executor`.

A trial is a search with a seed of its own and a fixed number of evaluations, so what it finds does not depend on where
or when it runs. Of the trials that finish, the best counts, and the first of equal ones. A worker that dies takes along
the trials it was working on; a pool of our own is replaced and those are given out again.
"""

import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace

from graphax import ComputationGraph, Order

from ..elimination.objective import Objective
from ..errors import SearchError
from .budget import Budget, Progress, Reporter
from .result import SearchResult
from .run import run

# Evaluations of one trial: a second or so on a small graph.
TRIAL = 200_000
# Seconds that interrupted workers are given to answer.
GRACE = 2.0
# How many pools of our own may break before the search gives up on them.
REPLACEMENTS = 5


@dataclass(frozen=True)
class Request:
    """What all trials have in common."""

    graph: ComputationGraph
    objective: Objective
    method: str
    budget: Budget
    seed: int
    starts: tuple[Order, ...]

    def trial(self, number: int, seconds_left: float | None) -> tuple | None:
        """The arguments of a trial; None if the budget has no room for it."""
        evaluations: int | None = TRIAL
        if self.budget.evaluations is not None:
            evaluations = min(TRIAL, self.budget.evaluations - number * TRIAL)
        elif self.method == "auto" and number == 0:
            # The first worker goes on to the end, because it works on a proof as well.
            evaluations = None
        if (evaluations is not None and evaluations <= 0) or (seconds_left is not None and seconds_left <= 0):
            return None
        # The portfolio opens the same way every time, so it is played once; the other trials go on from its start.
        method = "anneal" if self.method == "auto" and number else self.method
        seed = self.seed if number == 0 else self.seed + 7919 * number
        return self.graph, self.objective, method, Budget(seconds_left, evaluations), seed, self.starts


class Workers:
    """An executor; a process pool of our own if none is given, which is replaced when it breaks."""

    def __init__(self, executor: Executor | None, count: int):
        self._given, self._count, self._left = executor, count, REPLACEMENTS
        self._pool = None if executor is not None else self._new_pool()

    def _new_pool(self) -> ProcessPoolExecutor:
        # Forking a process in which JAX has started threads can deadlock.
        return ProcessPoolExecutor(self._count, mp_context=multiprocessing.get_context("spawn"))

    def submit(self, arguments: tuple) -> Future:
        return (self._given or self._pool).submit(run, *arguments)  # type: ignore[union-attr]

    def repair(self) -> bool:
        """Replace a broken pool; False if that is not ours to do, or happened too often."""
        self._left -= 1
        if self._given is not None or self._left < 0:
            return False
        self.close()
        self._pool = self._new_pool()
        return True

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)


def run_on(
    executor: Executor | None, workers: int, request: Request, progress: Callable[[Progress], None] | None
) -> SearchResult:
    """Search by trials on ``executor``, or on ``workers`` processes of our own."""
    opening = run(request.graph, request.objective, "presets", Budget(), request.seed, request.starts)
    request = replace(request, starts=(*request.starts, opening.order))
    crew = Workers(executor, workers)
    try:
        return _Trials(request, opening, Reporter(progress)).run(crew, workers)
    finally:
        crew.close()


class _Trials:
    """The trials of one search: which are under way, and what came back."""

    def __init__(self, request: Request, opening: SearchResult, reporter: Reporter):
        self._request, self._opening, self._reporter = request, opening, reporter
        self._found: dict[int, SearchResult] = {}
        self._under_way: dict[Future, int] = {}
        self._again: list[int] = []
        self._next = 0
        self._deserted = False
        self._began = time.monotonic()

    def run(self, crew: Workers, workers: int) -> SearchResult:
        stopped = "budget"
        try:
            while not self._best().optimal and not self._deserted:
                self._hand_out(crew, workers)
                if not self._under_way or (self._seconds_left() or 1.0) < -1.0:
                    break
                done, _ = wait(self._under_way, timeout=0.1, return_when=FIRST_COMPLETED)
                self._collect(done, crew)
                self._reporter.report(self._standing)
        except KeyboardInterrupt:
            stopped = "interrupted"
            # Ctrl-C reaches the workers of a terminal, too, and they answer with what they have.
            self._collect(wait(self._under_way, timeout=GRACE).done, crew)
        for future in self._under_way:
            future.cancel()
        if self._deserted and not self._found:
            raise SearchError("the workers died before any of them found an order; see their own messages")
        return self._summary("workers died" if self._deserted else stopped)

    def _hand_out(self, crew: Workers, workers: int) -> None:
        while len(self._under_way) < workers:
            number = self._again[0] if self._again else self._next
            arguments = self._request.trial(number, self._seconds_left())
            if arguments is None:
                return
            try:
                self._under_way[crew.submit(arguments)] = number
            except BrokenExecutor:
                self._deserted = not crew.repair()
                if self._deserted:
                    return
                continue
            if self._again:
                self._again.pop(0)
            else:
                self._next += 1

    def _collect(self, done: set[Future], crew: Workers) -> None:
        broken = False
        for future in done:
            number = self._under_way.pop(future)
            try:
                self._found[number] = future.result()
            except BrokenExecutor:
                broken = True
                self._again.append(number)
        if broken:
            self._again += self._under_way.values()
            self._under_way.clear()
            self._deserted = not crew.repair()

    def _seconds_left(self) -> float | None:
        limit = self._request.budget.seconds
        return None if limit is None else limit - (time.monotonic() - self._began)

    def _best(self) -> SearchResult:
        """The best so far with the best bound so far; ties go to the trial with the lowest number."""
        results = [self._opening, *(self._found[number] for number in sorted(self._found))]
        best = min(results, key=lambda result: (result.value, result.cost.additions, result.cost.peak))
        bound = max(result.bound for result in results)
        return replace(best, bound=bound, order=replace(best.order, bound=bound))

    def _standing(self) -> Progress:
        best = self._best()
        evaluations = sum(result.evaluations for result in self._found.values())
        return Progress(self._request.method, best.value, best.bound, evaluations, time.monotonic() - self._began)

    def _summary(self, stopped: str) -> SearchResult:
        best = self._best()
        now = self._standing()
        return replace(
            best,
            graph=self._request.graph,
            evaluations=now.evaluations,
            seconds=now.seconds,
            stopped="optimal" if best.optimal else stopped,
            order=replace(best.order, finder=self._request.method),
        )
