"""The portfolio: what a search does by default, and all finders by name."""

from collections.abc import Iterator

import numpy as np

from .anneal import anneal, temper
from .beam import beam
from .exact import exact
from .finder import Finder, Step, cheapest
from .greedy import corners, greedy, presets
from .problem import Problem
from .windows import windows

# Graphs up to this size are searched exactly first, larger ones up to the second only now and then.
SMALL, MODERATE = 16, 60


def auto(problem: Problem, seed: int, starts: list[np.ndarray]) -> Iterator[Step]:
    """Presets, greedy orders, then annealing, with exact search of small graphs and reordering of windows between."""
    orders = list(starts)
    for step in _opening(problem, seed, starts):
        if step.nodes is not None:
            orders.append(step.nodes)
        yield step
    best = cheapest(problem, orders)
    if problem.size <= SMALL:
        for step in exact(problem, seed, [best]):
            yield step
            if step.bound:
                return
    rounds = _rounds(problem, seed, best)
    yield from rounds


def _opening(problem: Problem, seed: int, starts: list[np.ndarray]) -> Iterator[Step]:
    yield from presets(problem, seed, starts)
    yield from corners(problem, seed, starts)


def _rounds(problem: Problem, seed: int, best: np.ndarray) -> Iterator[Step]:
    """Annealing without end; every now and then the best order is polished."""
    polish_at, looked = 200_000, 0
    tree = exact(problem, seed, [best]) if problem.size <= MODERATE else iter(())
    for step in anneal(problem, seed, [best]):
        yield step
        looked += step.evaluations
        if step.nodes is not None:
            best = step.nodes
        if looked >= polish_at:
            polish_at *= 2
            yield from windows(problem, seed, [best])
            yield from (part for part, _ in zip(tree, range(50), strict=False))


FINDERS: dict[str, Finder] = {
    "auto": auto,
    "presets": presets,
    "greedy": greedy,
    "beam": beam,
    "anneal": anneal,
    "temper": temper,
    "windows": windows,
    "exact": exact,
}
