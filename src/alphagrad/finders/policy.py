"""The shipped policy as a finder: its own order first, then sampled orders."""

from collections.abc import Iterator
from functools import partial
from itertools import count

import numpy as np

from ..elimination.problem import Problem
from ..policy.network import shipped
from ..policy.play import policy_order
from ..policy.polish import answer
from .finder import Finder, Step, attempted

# The temperatures of sampled orders, in turn.
TEMPERATURES = (0.25, 0.5, 1.0)


def policy(problem: Problem, seed: int, starts: list[np.ndarray]) -> Iterator[Step]:
    """Yield the order of the policy, then endless games with noise."""
    network = shipped()
    yield attempted(partial(answer, problem, network))
    for number in count(1) if problem.size > 1 else ():
        temperature = TEMPERATURES[number % len(TEMPERATURES)]
        yield attempted(partial(policy_order, problem, network, seed * 1_000_003 + number, temperature))


def after_policy(finder: Finder) -> Finder:
    """A finder that also starts from the order of the policy."""

    def combined(problem: Problem, seed: int, starts: list[np.ndarray]) -> Iterator[Step]:
        first = next(policy(problem, seed, starts))
        yield first
        yield from finder(problem, seed, starts if first.nodes is None else [*starts, first.nodes])

    return combined
