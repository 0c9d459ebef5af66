"""Attack the library in eleven areas, with JAX as the oracle, and count wrong results.

    python benchmarks/adversary.py [--areas a,b] [--seconds 600] [--seed 0] [--jobs 2] [--output adversary.json]
                                   [--repros FOLDER] [--list]
    python benchmarks/adversary.py --areas AREA --seed SEED --attempt NUMBER

Every attempt is determined by the seed and its number, so the second form repeats a finding. The exit code is 1 if
anything was wrong or crashed.
"""

import argparse
import sys
import time
from pathlib import Path

from attacks.areas import AREAS
from attacks.report import Tally, table, write_repros, written
from attacks.supervisor import Supervisor, chosen_areas


class Progress:
    """One changing line on a terminal, or one line per minute elsewhere."""

    def __init__(self):
        self.start = self.last = time.monotonic()

    def __call__(self, tallies: dict[str, Tally]) -> None:
        terminal = sys.stderr.isatty()
        now = time.monotonic()
        if now - self.last < (0.5 if terminal else 60):
            return
        self.last = now
        programs, numbers, wrong, crashed = (
            sum(getattr(tally, name) for tally in tallies.values())
            for name in ("programs", "numbers", "wrong", "crashed")
        )
        text = (
            f"{now - self.start:5.0f} s: {programs:,} programs, {numbers:,} numbers, {wrong} wrong, {crashed} crashed"
        )
        print(f"\r{text}" if terminal else text, end="" if terminal else "\n", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--areas", help="names, separated by commas; all by default")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path, help="write counts and findings to this file, as JSON")
    parser.add_argument("--repros", type=Path, help="write a script for each finding to this folder")
    parser.add_argument("--attempt", type=int, help="repeat only this attempt")
    parser.add_argument("--list", action="store_true", help="print the areas")
    options = parser.parse_args()
    if options.list:
        print("\n".join(AREAS))
        return 0
    try:
        areas = chosen_areas(options.areas)
    except ValueError as error:
        parser.error(str(error))
    supervisor = Supervisor(
        areas, options.seconds, options.seed, options.jobs, only=options.attempt, progress=Progress()
    )
    try:
        supervisor.run()
    except KeyboardInterrupt:
        print("interrupted; the findings so far:", file=sys.stderr)
    for finding in supervisor.findings:
        print(f"\n{finding.area}, attempt {finding.attempt}, {finding.verdict}: {finding.what}\n  {finding.command}")
        if options.attempt is not None:
            print(finding.source)
    print(f"\n{table(supervisor.tallies)}")
    if options.output:
        written(options.output, options.seed, options.seconds, supervisor.tallies, supervisor.findings)
    if options.repros:
        write_repros(options.repros, supervisor.findings)
    return int(any(tally.wrong or tally.crashed for tally in supervisor.tallies.values()))


if __name__ == "__main__":
    sys.exit(main())
