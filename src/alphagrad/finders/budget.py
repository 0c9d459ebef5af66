"""The budget of a search, and its progress reports."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Literal

from ..errors import SearchError

# The minimum time of a search for a part of a problem.
LEAST_SECONDS = 0.05


@dataclass(frozen=True)
class Budget:
    """The limit of a search: a number of seconds or evaluations, whichever comes first.

    Every search ends when its order is certified to be optimal. Without a limit, a search ends only then, or when it is
    interrupted. A search limited by evaluations alone gives the same order every time.
    """

    seconds: float | None = None
    evaluations: int | None = None

    def __post_init__(self) -> None:
        for name, limit in (("seconds", self.seconds), ("evaluations", self.evaluations)):
            if limit is not None and not isinstance(limit, Real):
                raise SearchError(f"the {name} of a budget must be a number, but are {limit!r}")
            if limit is not None and not limit > 0:
                raise SearchError(f"a budget must be more than zero, but has {limit:g} {name}")

    @staticmethod
    def of(given: "BudgetLike") -> "Budget":
        """Read ``budget=`` as users write it: seconds, a `Budget`, or ``"certified"``."""
        if isinstance(given, Budget):
            return given
        if isinstance(given, str) and given == "certified":
            return Budget()
        try:
            seconds = float(given)
        except (TypeError, ValueError):
            raise SearchError(
                f"cannot read {given!r} as a budget; it must be a number of seconds, "
                f'Budget(seconds=..., evaluations=...), or "certified"'
            ) from None
        return Budget(seconds)

    @property
    def most_seconds(self) -> float:
        return self.seconds or math.inf

    def left(self, seconds: float = 0.0, evaluations: int = 0, among: int = 1) -> "Budget":
        """The remaining budget, split among ``among`` searches. It is never empty."""
        return Budget(
            None if self.seconds is None else max((self.seconds - seconds) / among, LEAST_SECONDS),
            None if self.evaluations is None else max((self.evaluations - evaluations) // among, 1),
        )

    def spent(self, seconds: float, evaluations: int) -> bool:
        """Whether a search that has used this much must end."""
        return seconds >= self.most_seconds or evaluations >= (self.evaluations or math.inf)


BudgetLike = float | Budget | Literal["certified"]
"""How long a search may take: seconds, a `Budget`, or ``"certified"`` to continue until the order is proven optimal."""


@dataclass(frozen=True)
class Progress:
    """The state of a search: the best value found, and the lower bound."""

    finder: str
    best: float
    bound: float
    evaluations: int
    seconds: float

    @property
    def gap(self) -> float:
        """The largest possible improvement, as a fraction of the best value."""
        return (self.best - self.bound) / self.best if self.best > self.bound else 0.0

    @property
    def rate(self) -> float:
        """Evaluations per second."""
        return self.evaluations / self.seconds if self.seconds else 0.0

    def __str__(self) -> str:
        return (
            f"{self.finder}: best {self.best:g}, at least {self.bound:g}, {self.seconds:.1f} s, "
            f"{self.evaluations:,} orders ({self.rate:,.0f}/s)"
        )


class Reporter:
    """Calls ``progress`` at most every ``every`` seconds."""

    def __init__(self, progress: Callable[[Progress], None] | None, every: float = 0.1):
        self._progress = progress
        self._every = every
        self._next = 0.0

    def report(self, make: Callable[[], Progress]) -> None:
        if self._progress is not None and time.monotonic() >= self._next:
            self._progress(make())
            self._next = time.monotonic() + self._every
