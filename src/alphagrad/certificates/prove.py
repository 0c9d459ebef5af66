"""Lower bounds on multiplications that grow with the time spent on them, up to proofs of optimality."""

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from time import monotonic

from graphax import ComputationGraph
from graphax.bound import single_elements

from .conditional_cuts import ConditionalCuts, Vertices
from .cycles import shortest_cycles, violated_cycles
from .reduction import Core, reduced
from .scalar_graph import ScalarGraph
from .scenarios import Scenario, ScenarioProgram, Solution

# Costs are whole numbers and the solver is accurate to about 1e-6, so a bound this close above a number is rounded
# down.
_ROUNDING = 0.01
# Larger graphs are not searched: even the first program would take too long.
_LARGEST = 1000
# Shares and gains above this count as positive.
_SOME = 1e-6
# The relaxation is refined until it has not risen by this amount for this many rounds.
_RISE, _PATIENCE = 0.3, 5


@dataclass(frozen=True)
class Proof:
    """The result of a proof search: no order takes fewer multiplications than ``bound``, and ``order`` takes ``cost``.

    ``order`` and ``cost`` are None if no order was found on the way.
    """

    bound: int
    order: tuple[int, ...] | None = None
    cost: int | None = None

    @property
    def optimal(self) -> bool:
        return self.bound == self.cost


def prove(graph: ComputationGraph, counting: str = "folded", seconds: float = 10.0, upper: float = math.inf) -> Proof:
    """Search for a lower bound on the multiplications of every order.

    The search stops when the bound reaches ``upper``, the cost of a known order, or the cost of an order found on the
    way. Graphs of arrays, and graphs of more than a thousand vertices, get ``graph.lower_bound``. Given enough time,
    the result does not depend on the time.
    """
    prover = Prover(graph, counting)
    for _ in prover.work(seconds, upper):
        pass
    return prover.proof


class Prover:
    """A proof in progress, which can be worked on for a while at a time."""

    def __init__(self, graph: ComputationGraph, counting: str = "folded"):
        self._graph, self._counting = graph, counting
        self._bound = graph.lower_bound(counting=counting)
        self._upper = math.inf
        self._order: tuple[int, ...] | None = None
        self._cost: int | None = None
        self._deadline = math.inf
        self._open = 0 < len(graph.intermediates) <= _LARGEST and single_elements(graph)
        self._prepared = self._relaxed = False

    @property
    def proof(self) -> Proof:
        return Proof(self._bound, self._order, self._cost)

    @property
    def open(self) -> bool:
        """Whether more work may raise the bound."""
        return self._open and self._bound < self._upper

    def work(self, seconds: float, upper: float = math.inf) -> Iterator[None]:
        """Continue for some seconds, pausing after each solved program."""
        self._deadline, self._upper = monotonic() + seconds, min(upper, self._upper)
        if self.open and not self._prepared:
            self._prepare()
        while self.open and monotonic() < self._deadline:
            if self._relaxed:
                self._open = self._branch()
            else:
                yield from self._relax()
            yield

    def _prepare(self) -> None:
        self._core: Core = reduced(ScalarGraph(self._graph, self._counting), self._deadline)
        self._cuts = ConditionalCuts(self._core.graph)
        self._program = ScenarioProgram(self._cuts)
        self._prepared = True
        self._record(sum(leaves[0].cost for leaves in self._program.scenarios.values()))
        if not self._program.vertices:
            self._offer([])
            self._open = False

    def _is_over(self) -> bool:
        return self._bound >= self._upper or monotonic() >= self._deadline

    def _record(self, bound: float) -> None:
        self._bound = max(self._bound, self._core.settled + math.ceil(bound - _ROUNDING))

    def _offer(self, order: list[int]) -> None:
        """Record an order of the core if it is the best so far."""
        whole = (*self._core.eliminated, *order)
        cost = self._graph.cost(whole, self._counting).multiplications
        if self._cost is None or cost < self._cost:
            self._order, self._cost = whole, cost
            self._upper = min(self._upper, cost)

    def _solve(self, integral: bool) -> Solution | None:
        solution = self._program.solve(self._deadline - monotonic(), integral)
        if solution is not None:
            self._record(solution.bound)
        return solution

    def _relax(self) -> Iterator[None]:
        """Split scenarios that the fractional optimum uses, as long as this raises the optimum."""
        last, waited = -math.inf, 0
        while waited < _PATIENCE:
            solution = self._solve(integral=False)
            if solution is None or self._is_over():
                # A program that failed with time left would fail again.
                self._open = self._is_over()
                return
            waited = 0 if solution.bound > last + _RISE else waited + 1
            last = max(last, solution.bound)
            cycles = violated_cycles(solution) - self._program.cycles
            self._program.cycles |= cycles
            if not self._split_by_gain(solution) and not cycles:
                break
            yield
        self._relaxed = True

    def _split_by_gain(self, solution: Solution) -> bool:
        splits = []
        for vertex, shares in solution.shares.items():
            for number, share in enumerate(shares):
                if share > _SOME:
                    other = self._best_question(vertex, self._program.scenarios[vertex][number], share, solution)
                    splits += [] if other is None else [(vertex, number, other)]
        for vertex, number, other in reversed(splits):
            self._program.split(vertex, number, [(other, True)])
        return bool(splits)

    def _best_question(self, vertex: int, scenario: Scenario, share: float, solution: Solution) -> int | None:
        """The vertex whose position relative to ``vertex`` raises the cost most, as the solution has it; or None."""
        best, most = None, 0.0
        for other in sorted(self._cuts.relevant(vertex) - scenario.before - scenario.after):
            if self._is_over():
                break
            before = self._cuts.bound(vertex, scenario.before | {other}, scenario.after) - scenario.cost
            after = self._cuts.bound(vertex, scenario.before, scenario.after | {other}) - scenario.cost
            likely = solution.precedence(other, vertex)
            # If no question raises the cost here, the one that may raise it most elsewhere is the best.
            gain = share * (likely * before + (1 - likely) * after) + 1e-3 * (before + after)
            if gain > most + 1e-9:
                best, most = other, gain
        return best

    def _branch(self) -> bool:
        """Solve for whole numbers and split scenarios that do not hold for the order found; False if all hold."""
        solution = self._solve(integral=True)
        if solution is None or not solution.shares:
            # A program that failed with time left would fail again.
            return self._is_over()
        order, cycles = self._ordered(solution)
        self._program.cycles |= cycles
        if cycles:
            return True
        self._offer(order)
        # If all scenarios of an optimum hold, it is an optimal order. A solution that is not an optimum proves nothing.
        return self._split_by_order(order, solution) or not solution.complete

    def _ordered(self, solution: Solution) -> tuple[list[int], set[tuple[int, ...]]]:
        """An order that agrees with the solution, or the cycles that prevent one.

        Where there is a choice, the cheapest vertex comes first.
        """
        following: dict[int, set[int]] = {v: set() for v in self._program.vertices}
        sorter = TopologicalSorter(dict.fromkeys(following, ()))
        for a, b in solution.first:
            first, second = (a, b) if solution.precedence(a, b) > 0.5 else (b, a)
            following[first].add(second)
            sorter.add(second, first)
        # A sorter that found a cycle still yields vertices that do not depend on one.
        with suppress(CycleError):
            sorter.prepare()
        state, order, ready = self._core.graph.copy(), [], set(sorter.get_ready())
        while ready:
            vertex = min(ready, key=lambda v: (state.cost(v) - self._cuts.bound(v), v))
            ready.remove(vertex)
            state.eliminate(vertex)
            order.append(vertex)
            sorter.done(vertex)
            ready.update(sorter.get_ready())
        return order, shortest_cycles(following, set(following) - set(order))

    def _split_by_order(self, order: list[int], solution: Solution) -> bool:
        """Split scenarios of vertices whose elimination costs more in this order than the scenario claims."""
        changed = False
        for place, vertex in enumerate(order):
            before, after = frozenset(order[:place]), frozenset(order[place + 1 :])
            for number, scenario in reversed(list(enumerate(self._program.scenarios[vertex]))):
                chosen = solution.shares[vertex][number] > _SOME
                holds = scenario.before <= before and scenario.after <= after
                if chosen and holds and self._cuts.bound(vertex, before, after) > scenario.cost:
                    self._program.split(vertex, number, self._reasons(vertex, scenario, before, after))
                    changed = True
        return changed

    def _reasons(self, vertex: int, scenario: Scenario, before: Vertices, after: Vertices) -> list[tuple[int, bool]]:
        """A few relations that suffice for the cost, those that raise it most first."""
        target = self._cuts.bound(vertex, before, after)

        def cost(others: set[int]) -> int:
            return self._cuts.bound(vertex, scenario.before | others & before, scenario.after | others & after)

        needed = set(self._cuts.relevant(vertex) - scenario.before - scenario.after)
        for other in sorted(needed, key=lambda w: (-abs(w - vertex), w)):
            if cost(needed - {other}) >= target:
                needed.remove(other)
        chosen: list[int] = []
        while needed:
            other = max(sorted(needed), key=lambda w: cost({*chosen, w}))
            needed.remove(other)
            chosen.append(other)
        return [(other, other in before) for other in chosen]
