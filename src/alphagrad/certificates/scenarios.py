"""A mixed-integer program whose optimum is a lower bound on the cost of every elimination order.

Each vertex v has scenarios: some vertices that come before v, some that come after, and the minimum cost of eliminating
v then. They are the leaves of a decision tree, so every order agrees with exactly one scenario of each vertex. The
program chooses a scenario per vertex and, for pairs of vertices, which comes first, such that they agree and there is
no cycle. Splitting the scenarios in use makes the program ever more exact.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from threading import Thread
from typing import Any

import numpy as np

from .conditional_cuts import ConditionalCuts, Vertices

Pair = tuple[int, int]


@dataclass(frozen=True)
class Scenario:
    """Known relations of other vertices to an eliminated vertex, and the minimum cost under these relations."""

    before: Vertices
    after: Vertices
    cost: int


@dataclass(frozen=True, eq=False)
class Solution:
    """The result of the solver.

    Attributes:
        bound: a lower bound on the cost of every order, up to rounding.
        first: per pair (a, b) with a < b, the degree to which a comes before b, from 0 to 1.
        shares: per vertex, the degree to which each of its scenarios is chosen.
        complete: whether the solution is an optimum; if not, the time ran out.
    """

    bound: float
    first: dict[Pair, float]
    shares: dict[int, list[float]]
    complete: bool

    def precedence(self, a: int, b: int) -> float:
        """The degree to which a comes before b; one half if it is open."""
        return self.first.get((a, b), 0.5) if a < b else 1.0 - self.first.get((b, a), 0.5)


class ScenarioProgram:
    """The scenarios of all vertices, and the cycles excluded so far."""

    def __init__(self, cuts: ConditionalCuts):
        self.cuts = cuts
        self.vertices = cuts.graph.intermediates
        nothing: Vertices = frozenset()
        self.scenarios = {v: [Scenario(nothing, nothing, cuts.bound(v))] for v in self.vertices}
        self.cycles: set[tuple[int, ...]] = set()

    @property
    def size(self) -> int:
        return sum(map(len, self.scenarios.values()))

    def split(self, vertex: int, number: int, decisions: Iterable[tuple[int, bool]]) -> None:
        """Split a scenario by decisions (another vertex, whether it comes before).

        In one new scenario, all decisions hold. In each of the others, another decision is the first that does not
        hold.
        """
        parent = self.scenarios[vertex][number]
        before, after = parent.before, parent.after
        leaves = []
        for other, is_before in decisions:
            with_before, with_after = (before | {other}, after), (before, after | {other})
            leaves.append(with_after if is_before else with_before)
            before, after = with_before if is_before else with_after
        leaves.append((before, after))
        new = [Scenario(b, a, max(parent.cost, self.cuts.bound(vertex, b, a))) for b, a in leaves]
        self.scenarios[vertex][number : number + 1] = new

    def solve(self, seconds: float, integral: bool) -> Solution | None:
        """The optimum, or its relaxation to fractions; None if the time did not suffice."""
        pairs = {pair: n for n, pair in enumerate(sorted(self._pairs()))}
        program = _LinearProgram(len(pairs))
        places = {v: program.add_choice([s.cost for s in self.scenarios[v]]) for v in self.vertices}
        for vertex in self.vertices:
            self._agree(program, vertex, places[vertex], pairs)
        for cycle in (*self.cycles, *_triangles(pairs)):
            _forbid(program, cycle, pairs)
        integers = len(pairs) if integral else 0
        result = program.solve(seconds, integers)
        bound = result.mip_dual_bound if integers else result.fun if result.status == 0 else None
        if bound is None or not np.isfinite(bound):
            return None
        if result.x is None:
            return Solution(bound, {}, {}, False)
        first = {pair: float(result.x[n]) for pair, n in pairs.items()}
        shares = {v: result.x[place : place + len(self.scenarios[v])].tolist() for v, place in places.items()}
        return Solution(bound, first, shares, result.status == 0)

    def _pairs(self) -> set[Pair]:
        scenarios = ((v, s) for v in self.vertices for s in self.scenarios[v])
        pairs = {(min(v, w), max(v, w)) for v, s in scenarios for w in s.before | s.after}
        return pairs | {(min(arc), max(arc)) for cycle in self.cycles for arc in _arcs(cycle)}

    def _agree(self, program: "_LinearProgram", vertex: int, place: int, pairs: dict[Pair, int]) -> None:
        """Require that a scenario is chosen no more than each of its relations holds."""
        shares: dict[tuple[int, int], list[int]] = {}
        for number, scenario in enumerate(self.scenarios[vertex], start=place):
            arcs = [(w, vertex) for w in scenario.before] + [(vertex, w) for w in scenario.after]
            for arc in arcs:
                shares.setdefault(arc, []).append(number)
        for arc, numbers in sorted(shares.items()):
            variable, sign, constant = _first(arc, pairs)
            program.add_row([*((n, 1) for n in numbers), (variable, -sign)], constant)


def _arcs(cycle: tuple[int, ...]) -> Iterable[Pair]:
    return pairwise((*cycle, cycle[0]))


def _first(arc: Pair, pairs: dict[Pair, int]) -> tuple[int, int, int]:
    """The variable that says whether the arc holds, with its sign and a constant."""
    a, b = arc
    return (pairs[a, b], 1, 0) if a < b else (pairs[b, a], -1, 1)


def _triangles(pairs: dict[Pair, int]) -> Iterable[tuple[int, ...]]:
    """Yield both directions around every three vertices that are pairwise compared."""
    above: dict[int, set[int]] = {}
    for a, b in pairs:
        above.setdefault(a, set()).add(b)
    for a, b in pairs:
        for c in sorted(above[a] & above.get(b, set())):
            yield a, b, c
            yield a, c, b


def _forbid(program: "_LinearProgram", cycle: tuple[int, ...], pairs: dict[Pair, int]) -> None:
    """Require that not all arcs of a cycle hold."""
    terms = [_first(arc, pairs) for arc in _arcs(cycle)]
    program.add_row([(n, sign) for n, sign, _ in terms], len(cycle) - 1 - sum(constant for *_, constant in terms))


class _LinearProgram:
    """Variables from 0 to 1, a cost to minimise, and rows with an upper bound or a fixed value."""

    def __init__(self, variables: int):
        self._cost = [0.0] * variables
        self._entries: list[tuple[int, int, float]] = []
        self._lower: list[float] = []
        self._upper: list[float] = []

    def add_choice(self, costs: list[int]) -> int:
        """Add variables that sum to one, and return the number of the first."""
        place = len(self._cost)
        self._cost += costs
        self.add_row([(place + n, 1) for n in range(len(costs))], 1, 1)
        return place

    def add_row(self, terms: list[tuple[int, int]], upper: float, lower: float = -np.inf) -> None:
        self._entries += [(len(self._upper), variable, factor) for variable, factor in terms]
        self._lower.append(lower)
        self._upper.append(upper)

    def solve(self, seconds: float, integers: int):
        """Solve with scipy, with the first ``integers`` variables restricted to whole numbers."""
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array

        rows, columns, values = zip(*self._entries, strict=True)
        matrix = csr_array((values, (rows, columns)), shape=(len(self._upper), len(self._cost)))
        return _interruptible(
            milp,
            np.array(self._cost),
            constraints=LinearConstraint(matrix, self._lower, self._upper),
            bounds=Bounds(0, 1),
            integrality=np.arange(len(self._cost)) < integers,
            options={"time_limit": max(0.0, seconds), "mip_rel_gap": 0.0},
        )


def _interruptible(function: Callable, *args: Any, **kwargs: Any) -> Any:
    """Call a function that ignores Ctrl-C such that the caller can still be interrupted."""
    results: list[Any] = []
    thread = Thread(target=lambda: results.append(function(*args, **kwargs)), daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.1)
    return results[0]
