"""Makes failing attempts as small as possible."""

import time

from .attempt import Attempt, Outcome


def minimised(attempt: Attempt, outcome: Outcome, seconds: float = 20.0) -> tuple[Attempt, Outcome]:
    """The simplest attempt found that fails in the same way, and its outcome."""
    end = time.monotonic() + seconds
    shrinking = True
    while shrinking and time.monotonic() < end:
        shrinking = False
        for simpler in attempt.simpler(outcome):
            if time.monotonic() >= end:
                break
            found = simpler.check()
            if found.failed and _alike(found, outcome):
                attempt, outcome, shrinking = simpler, found, True
                break
    return attempt, outcome


def _alike(found: Outcome, outcome: Outcome) -> bool:
    """The same kind of failure: an exception of the same type, or wrong numbers rather than, say, a wrong dtype."""
    return (found.verdict, found.what[:5], found.where is None) == (
        outcome.verdict,
        outcome.what[:5] if outcome.where is None else found.what[:5],
        outcome.where is None,
    )
