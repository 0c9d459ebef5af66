"""Bounds, certificates and searches on small graphs, compared with all possible orders."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

import alphagrad
import graphax as gx

from .attempt import CRASHED, RIGHT, WRONG, Attempt, Outcome
from .case import Case
from .expressions import CONSTANTS, random_body
from .structures_and_orders import graph_of

MOST_VERTICES = 6
OBJECTIVES = (("multiplications", "folded"), ("multiplications", "raw"), ("operations", "folded"), ("peak", "folded"))
METHODS = ("auto", "presets", "greedy", "beam", "anneal", "temper", "windows", "exact", "policy", "policy+anneal")
SCALAR = (
    "jnp.sin({a})",
    "{a} * {b}",
    "{a} * {b}",
    "{a} + {b}",
    "{a} / {b}",
    "{a} - 2.0 * {b}",
    "jnp.exp({a})",
    "3.0 * {a}",
)


@dataclass(frozen=True)
class Searched:
    """A function whose graph is small enough to try all orders."""

    case: Case
    minimize: str
    counting: str
    method: str
    seed: int

    def check(self) -> Outcome:
        try:
            problem, numbers = self._problem()
        except Exception as error:  # noqa: BLE001  every exception is an outcome
            return Outcome(CRASHED, what=f"{type(error).__name__}: {error}", kind=type(error).__name__)
        if problem is None:
            return Outcome(RIGHT, numbers)
        return Outcome(WRONG, numbers, problem, problem.split(":")[0])

    def _problem(self) -> tuple[str | None, int]:
        graph = graph_of(self.case)
        values = [self._value(graph.cost(order, self.counting)) for order in permutations(graph.intermediates)]
        best, bound = min(values), graph.lower_bound(self.minimize, self.counting)
        if bound > best:
            return f"the lower bound is too high: {bound} of {self.minimize}, {self.counting}, optimum {best}", len(
                values
            )
        result = alphagrad.search(
            graph,
            budget=alphagrad.Budget(seconds=2.0, evaluations=200),
            minimize=self.minimize,
            counting=self.counting,
            method=self.method,
            seed=self.seed,
            record=False,
        )
        own = graph.cost(result.order, self.counting)
        checks = {
            f"the bound of the search is too high: {result.bound}, optimum {best}": result.bound > best,
            f"the search found less than the optimum: {result.value}, optimum {best}": result.value < best,
            f"the search calls an order optimal: of {result.value}, optimum {best}": result.optimal
            and result.value != best,
            f"the search counts otherwise: {result.cost}, Plan.cost {own}": result.cost != own,
            f"the value is another: {result.value}, {own}": result.value != self._value(own),
        }
        return next((text for text, wrong in checks.items() if wrong), None), len(values) + 4

    def _value(self, cost: gx.Cost) -> int:
        return getattr(cost, self.minimize)

    def simpler(self, outcome: Outcome) -> Iterator[Attempt]:
        for case in self.case.simpler(outcome):
            yield replace(self, case=case)

    def source(self) -> str:
        return (
            self.case.source()
            + "import itertools\n\nimport alphagrad\n\n"
            + f"graph = {self.case.way.replace('jac(f', 'gx.build_graph(f, *args').removesuffix('(*args)')}\n"
            + "orders = itertools.permutations(graph.intermediates)\n"
            + f'best = min(graph.cost(order, "{self.counting}").{self.minimize} for order in orders)\n'
            + f'print("optimum", best, "bound", graph.lower_bound("{self.minimize}", "{self.counting}"))\n'
            + f'print(alphagrad.search(graph, budget=2, minimize="{self.minimize}", counting="{self.counting}", '
            + f'method="{self.method}", seed={self.seed}, record=False))\n'
        )


def attempts(seed: int, number: int) -> list[Searched]:
    """One graph, of single numbers or of arrays, and one objective."""
    rng = np.random.default_rng((seed, number, 9))
    for _ in range(20):
        case = _random_case(rng, scalars=number % 2 == 0)
        try:
            count = len(graph_of(case).intermediates)
        except Exception:  # noqa: BLE001  other areas report what cannot be traced
            continue
        if 1 <= count <= MOST_VERTICES:
            break
    else:
        return []
    minimize, counting = OBJECTIVES[rng.integers(len(OBJECTIVES))]
    method = str(rng.choice(METHODS)) if rng.random() < 0.6 else "auto"
    return [Searched(case, minimize, counting, method, int(rng.integers(100)))]


def _random_case(rng: np.random.Generator, scalars: bool) -> Case:
    shapes = {name: () if scalars else (int(rng.integers(1, 4)),) for name in ("x", "y")}

    def scalar(rng: np.random.Generator, known: dict[str, tuple[int, ...]]) -> str:
        a, b = rng.choice(list(known), 2)
        return str(rng.choice(SCALAR)).format(a=a, b=b)

    body = random_body(rng, shapes, int(rng.integers(2, 8)), scalar) if scalars else random_body(rng, shapes, 5)
    names = list(body.shapes)[2:] or ["x"]
    results = [str(name) for name in rng.choice(names, min(len(names), int(rng.integers(1, 4))), replace=False)]
    result = f"({', '.join(dict.fromkeys([*results, names[-1]]))},)"
    args = tuple(rng.uniform(0.2, 1.0, shapes[name]) for name in shapes)
    return Case(("x", "y"), body.lines, result, args, "jac(f, argnums=(0, 1))(*args)", before=CONSTANTS)
