"""The portfolio, which is the default search, and all finders by name."""

from collections.abc import Iterator
from functools import cache
from itertools import chain, islice, permutations

import numpy as np

from graphax import ComputationGraph
from graphax.bundles import AnyEdge
from graphax.graph import Vertex
from graphax.plan import Edge
from graphax.structure import dense

from ..elimination.objective import Objective
from ..elimination.problem import Problem
from .anneal import anneal, temper
from .beam import beam
from .exact import exact
from .finder import Finder, Step, cheapest
from .greedy import greedy, presets
from .policy import after_policy, policy
from .windows import windows

# Graphs up to the first size are searched exactly first; graphs up to the second size on the side.
SMALL, MODERATE = 16, 60
# The states of the exact search on the side, per order that annealing evaluates.
PROVING = 0.1
# The best order is polished after this many evaluations, and whenever their number has doubled.
FIRST_POLISH = 200_000
# Up to this size the policy is used; it looks at the neighbours of neighbours.
POLICY_LIMIT = 1000
# All orders of a graph with loops are tried if it has at most this many vertices.
FEW = 5


def auto(problem: Problem, seed: int, starts: list[np.ndarray]) -> Iterator[Step]:
    """Yield the learned policy, presets and greedy orders, then endless annealing.

    Small graphs are also searched exactly, and windows are reordered between rounds of annealing.
    """
    orders = list(starts)
    learned = islice(policy(problem, seed, starts), 1 if problem.size <= POLICY_LIMIT else 0)
    for step in chain(learned, presets(problem, seed, starts)):
        if step.nodes is not None:
            orders.append(step.nodes)
        yield step
    if problem.graph.has_loops and problem.size <= FEW:
        yield from (Step(np.array(nodes, np.int32), 1) for nodes in permutations(range(problem.size)))
        return
    best = cheapest(problem, orders)
    if problem.size <= SMALL:
        for step in exact(problem, seed, [best]):
            yield step
            if step.bound:
                return
    yield from _rounds(problem, seed, orders)


def _rounds(problem: Problem, seed: int, orders: list[np.ndarray]) -> Iterator[Step]:
    """Yield endless annealing, polishing the best order occasionally. Small graphs are searched exactly on the side."""
    best = cheapest(problem, orders)
    polish_at, looked, proving = FIRST_POLISH, 0, 0
    proof: Iterator[Step] = iter(())
    for step in anneal(problem, seed, orders):
        yield step
        looked += step.evaluations
        if step.nodes is not None:
            best = cheapest(problem, [best, step.nodes])
        if looked >= polish_at:
            yield from windows(problem, seed, [best])
            if polish_at == FIRST_POLISH and problem.size <= MODERATE:
                proof = exact(problem, seed, [best])
            polish_at *= 2
        if proving < PROVING * looked:
            for part in islice(proof, 1):
                proving += part.evaluations
                yield part


FINDERS: dict[str, Finder] = {
    "auto": auto,
    "presets": presets,
    "greedy": greedy,
    "beam": beam,
    "anneal": anneal,
    "temper": temper,
    "windows": windows,
    "exact": after_policy(exact),
    "policy": policy,
    "policy+anneal": after_policy(anneal),
    "policy+beam": after_policy(beam),
}


@cache
def warm_up(method: str) -> None:
    """Compile the kernels of a finder, so that a search with a time limit does not pay for it."""
    parts: tuple[Finder, ...] = (policy, presets, exact, windows, anneal) if method == "auto" else (FINDERS[method],)
    problem = Problem(_smallest_graph(), Objective())
    for part in parts:
        for _ in zip(range(3), part(problem, 0, []), strict=False):
            pass


def _smallest_graph() -> ComputationGraph:
    """A chain of two intermediate vertices."""
    kinds = {0: "input", 1: "intermediate", 2: "intermediate", 3: "output"}
    vertices = {number: Vertex(number, kind, (), np.dtype(float), kind) for number, kind in kinds.items()}
    edges: dict[Edge, AnyEdge] = {(number + 1, number): dense((), ()) for number in range(3)}
    return ComputationGraph(vertices, (0,), (3,), edges, 3, False, ())
