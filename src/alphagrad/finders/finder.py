"""The protocol of order finders."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..elimination.problem import Problem, TooLarge


@dataclass(frozen=True)
class Step:
    """The report of a finder at each pause.

    Attributes:
        nodes: an order that may be the best so far, or None.
        evaluations: the number of orders evaluated since the last step.
        bound: the best lower bound that the finder knows.
    """

    nodes: np.ndarray | None = None
    evaluations: int = 0
    bound: float = 0.0


class Finder(Protocol):
    """Looks for good orders, pausing every few milliseconds. It stops by itself only if there is nothing left to try.

    Its steps depend on its arguments alone, never on the clock, so the same seed gives the same steps.
    """

    def __call__(self, problem: Problem, seed: int, starts: list[np.ndarray]) -> Iterator[Step]: ...


def reverse(problem: Problem) -> np.ndarray:
    """The order that eliminates the last vertex first."""
    return np.arange(problem.size, dtype=np.int32)[::-1].copy()


def cheapest(problem: Problem, orders: list[np.ndarray]) -> np.ndarray:
    """The first of the cheapest orders; reverse order if there are none."""
    return min(orders, key=problem.key) if orders else reverse(problem)


def attempted(make: Callable[[], np.ndarray]) -> Step:
    """A step with an order, or without one if making it takes too much memory."""
    try:
        return Step(make(), 1)
    except TooLarge:
        return Step(None, 1)
