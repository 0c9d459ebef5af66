"""Attempts and their outcomes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

RIGHT, WRONG, CRASHED, REFUSED = "right", "wrong", "crashed", "refused"


@dataclass(frozen=True)
class Outcome:
    """The outcome of one attempt.

    Attributes:
        verdict: "right", "wrong", "crashed" (an unexpected exception) or "refused" (a named error, or JAX's own).
        numbers: the number of compared numbers.
        what: what is wrong, or the exception.
        kind: findings of the same area and kind count as the same bug.
        where: (leaf, flat index) of a wrong entry.
    """

    verdict: str
    numbers: int = 0
    what: str = ""
    kind: str = ""
    where: tuple[int, int] | None = None

    @property
    def failed(self) -> bool:
        return self.verdict in (WRONG, CRASHED)


class Attempt(Protocol):
    """Something tried on the library."""

    def check(self) -> Outcome:
        """Run the attempt."""

    def simpler(self, outcome: Outcome) -> Iterator["Attempt"]:
        """Simpler attempts that may fail in the same way, the most promising first."""

    def source(self) -> str:
        """A script that does the same with only the library and JAX."""
