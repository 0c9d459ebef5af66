"""One process of attempts: ``python -m attacks.worker``, started by the supervisor.

It writes a line of JSON before and after each attempt, so that the supervisor knows which attempt killed it.
"""

import argparse
import json
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from .areas import AREAS
from .attempt import CRASHED, Attempt, Outcome
from .minimise import minimised

# Caches of compiled programs are cleared after this many attempts. Clearing them more often would cost compile time.
KEPT = 40
KINDS_MINIMISED = 12
LONGEST_SHRINKING = 15.0


def work(area: str, seed: int, numbers: Sequence[int], seconds: float, report: TextIO, skip: set[str]) -> None:
    """Run attempts until none are left or time is up, and write their outcomes."""
    import jax

    jax.config.update("jax_enable_x64", True)
    warnings.simplefilter("ignore")
    end = time.monotonic() + seconds
    known = set(skip)
    # Minimising findings must not take all the time.
    budget = min(LONGEST_SHRINKING, max(2.0, seconds / KINDS_MINIMISED))
    for count, number in enumerate(numbers):
        if time.monotonic() > end:
            break
        say(report, at=number)
        for place, attempt in enumerate(_attempts(area, seed, number)):
            say(report, at=number, place=place)
            outcome = attempt.check()
            say(report, outcome=outcome.verdict, numbers=outcome.numbers)
            if outcome.failed and outcome.kind not in known:
                known.add(outcome.kind)
                say(report, finding=_finding(attempt, outcome, number, place, budget))
        if count % KEPT == KEPT - 1:
            jax.clear_caches()
    say(report, done=True)


class _Broken:
    """An attempt that could not be created, which is a mistake of the adversary and must be reported."""

    def __init__(self, error: Exception):
        self.error = error

    def check(self) -> Outcome:
        text = f"the attempt cannot be made: {type(self.error).__name__}: {self.error}"
        return Outcome(CRASHED, what=text, kind=text[:60])

    def simpler(self, outcome: Outcome):
        return iter(())

    def source(self) -> str:
        return f"# {self.error}\n"


def _attempts(area: str, seed: int, number: int) -> Sequence[Attempt]:
    try:
        return AREAS[area].attempts(seed, number)
    except Exception as error:  # noqa: BLE001  shown as a crash
        return [_Broken(error)]


def _finding(attempt: Attempt, outcome: Outcome, number: int, place: int, seconds: float) -> dict[str, Any]:
    small, last = minimised(attempt, outcome, seconds)
    return {
        "attempt": number,
        "place": place,
        "verdict": outcome.verdict,
        "what": last.what,
        "kind": outcome.kind,
        "small_kind": last.kind,
        "source": small.source(),
    }


def say(report: TextIO, **facts: Any) -> None:
    report.write(json.dumps(facts) + "\n")
    report.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--area", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--first", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--report", type=Path, required=True)
    parser.add_argument("--skip", type=Path, help="a JSON list of known kinds")
    parser.add_argument(
        "--describe", action="store_true", help="write the source of the attempts, without running them"
    )
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.count)
    with options.report.open("w") as report:
        if options.describe:
            for number in numbers:
                for attempt in _attempts(options.area, options.seed, number):
                    say(report, source=attempt.source())
            return
        skip = set(json.loads(options.skip.read_text())) if options.skip else set()
        work(options.area, options.seed, numbers, options.seconds, report, skip)


if __name__ == "__main__":
    main()
