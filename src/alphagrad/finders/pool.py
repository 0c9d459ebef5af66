"""Search on many workers: independent trials on any `concurrent.futures.Executor`.

A trial is a search with its own seed and a fixed number of evaluations, so its result does not depend on where or when
it runs. The best of the finished trials counts; among equals, the first. If a worker dies, its trials are lost. Our own
pool is then replaced, and these trials are submitted again.
"""

import math
import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from dataclasses import replace

from ..errors import SearchError
from .budget import Budget, Progress, Reporter
from .result import SearchResult
from .run import Trial, run

# The evaluations of one trial: about a second on a small graph.
TRIAL = 200_000
# The seconds that interrupted workers have to respond.
GRACE = 2.0
# The number of our own pools that may break before the search gives up on them.
REPLACEMENTS = 5


def nth_trial(search: Trial, number: int, seconds_left: float) -> Trial | None:
    """The trial with this number; None if the budget has no room for it."""
    evaluations: int | None = TRIAL
    if search.budget.evaluations is not None:
        evaluations = min(TRIAL, search.budget.evaluations - number * TRIAL)
    elif search.method == "auto" and number == 0:
        # The first worker continues to the end, because it also works on a proof.
        evaluations = None
    if (evaluations is not None and evaluations <= 0) or seconds_left <= 0:
        return None
    budget = Budget(None if seconds_left == math.inf else seconds_left, evaluations)
    # The portfolio opens the same way every time, so only the first trial runs it; the others continue from its start.
    method = "anneal" if search.method == "auto" and number else search.method
    return replace(search, method=method, budget=budget, seed=search.seed + 7919 * number)


class Workers:
    """An executor. If none is given, it is our own process pool, which is replaced when it breaks."""

    def __init__(self, executor: Executor | None, count: int):
        self._given, self._count, self._left = executor, count, REPLACEMENTS
        self._pool = None if executor is not None else self._new_pool()

    def _new_pool(self) -> ProcessPoolExecutor:
        # Forking a process in which JAX has started threads can deadlock.
        return ProcessPoolExecutor(self._count, mp_context=multiprocessing.get_context("spawn"))

    def submit(self, trial: Trial) -> Future:
        return (self._given or self._pool).submit(run, trial)  # type: ignore[union-attr]

    def repair(self) -> bool:
        """Replace a broken pool. Returns False if the pool is not ours or has broken too often."""
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
    executor: Executor | None, workers: int, search: Trial, progress: Callable[[Progress], None] | None
) -> SearchResult:
    """Search by trials on ``executor``, or on ``workers`` processes of our own."""
    opening = run(replace(search, method="presets", budget=Budget()))
    search = replace(search, starts=(*search.starts, opening.order))
    crew = Workers(executor, workers)
    try:
        return _Trials(search, opening, Reporter(progress)).run(crew, workers)
    finally:
        crew.close()


class _Trials:
    """The trials of one search: those in progress, and the results so far."""

    def __init__(self, search: Trial, opening: SearchResult, reporter: Reporter):
        self._search, self._opening, self._reporter = search, opening, reporter
        self._found: dict[int, SearchResult] = {}
        self._under_way: dict[Future, int] = {}
        self._again: list[int] = []
        self._next = 0
        self._deserted = False
        self._began = time.monotonic()

    def run(self, crew: Workers, workers: int) -> SearchResult:
        stopped = "budget"
        try:
            while not self._result().optimal and not self._deserted:
                self._hand_out(crew, workers)
                if not self._under_way or self._seconds_left() < -1.0:
                    break
                done, _ = wait(self._under_way, timeout=0.1, return_when=FIRST_COMPLETED)
                self._collect(done, crew)
                self._reporter.report(self._standing)
        except KeyboardInterrupt:
            stopped = "interrupted"
            # Ctrl-C in a terminal also reaches the workers, which respond with what they have.
            self._collect(wait(self._under_way, timeout=GRACE).done, crew)
        for future in self._under_way:
            future.cancel()
        if self._deserted and not self._found:
            raise SearchError("the workers died before any of them found an order; see their own messages")
        return self._result("workers died" if self._deserted else stopped)

    def _hand_out(self, crew: Workers, workers: int) -> None:
        while len(self._under_way) < workers:
            number = self._again[0] if self._again else self._next
            trial = nth_trial(self._search, number, self._seconds_left())
            if trial is None:
                return
            try:
                self._under_way[crew.submit(trial)] = number
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

    def _seconds_left(self) -> float:
        return self._search.budget.most_seconds - (time.monotonic() - self._began)

    def _standing(self) -> Progress:
        now = self._result()
        return Progress(now.order.finder, now.value, now.bound, now.evaluations, now.seconds)

    def _result(self, stopped: str = "budget") -> SearchResult:
        """The best result and the best bound so far. Ties go to the trial with the lowest number."""
        found = [self._found[number] for number in sorted(self._found)]
        best = min([self._opening, *found], key=lambda result: (result.value, result.cost.additions, result.cost.peak))
        bound = max(result.bound for result in (self._opening, *found))
        return replace(
            best,
            graph=self._search.graph,
            bound=bound,
            evaluations=sum(result.evaluations for result in found),
            seconds=time.monotonic() - self._began,
            stopped="optimal" if best.value <= bound else stopped,
            order=replace(best.order, bound=bound, finder=self._search.method),
        )
