"""Comparable timings: contenders take turns, so that other load on the machine affects all of them equally."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

# The minimum number of runs per contender, even if they take long.
FEWEST = 3


@dataclass(frozen=True)
class Timing:
    """Seconds of one contender: the median, and the interval that contains 95 % of the runs."""

    median: float
    low: float
    high: float
    runs: int

    @staticmethod
    def of(seconds: list[float]) -> "Timing":
        low, median, high = (float(x) for x in np.percentile(seconds, (2.5, 50, 97.5)))
        return Timing(median, low, high, len(seconds))


def take_turns(
    calls: Mapping[str, Callable[[], None]],
    seconds: Mapping[str, list[float]],
    repeat: int,
    limit: float,
    tick: Callable[[int], None] = lambda turn: None,
) -> None:
    """Run each call ``repeat`` times, taking turns, and append the time of each run to its ``seconds``.

    Every round has a different order, so that no contender always runs right after the same other one. A contender that
    has used up its share of ``limit`` seconds is left out of further rounds.
    """
    share = limit / max(1, len(calls))
    names, rng = list(calls), np.random.default_rng(0)
    for turn in range(repeat):
        tick(turn)
        for name in (names[place] for place in rng.permutation(len(names))):
            if turn < FEWEST or sum(seconds[name]) < share:
                start = time.perf_counter()
                calls[name]()
                seconds[name].append(time.perf_counter() - start)
