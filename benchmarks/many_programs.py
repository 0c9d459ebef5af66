"""Checks many random programs, one after another. `moves`, `loop_programs` and `solve_programs` share this module."""

import argparse
import sys
from collections.abc import Callable

import jax


def check_many(check: Callable[[int], None], description: str, programs: int) -> int:
    """Run a check for many seeds, given on the command line. The exit code is 1 if any of them failed."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--programs", type=int, default=programs)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    wrong = 0
    for done, number in enumerate(range(arguments.seed, arguments.seed + arguments.programs), 1):
        try:
            check(number)
        except Exception as error:  # noqa: BLE001  any exception is counted, and the next program runs
            wrong += 1
            print(f"program {number}: {type(error).__name__}: {str(error).strip()[:200]!r}", flush=True)
        if done % 50 == 0:
            print(f"{done:,} programs, {wrong} wrong", file=sys.stderr, flush=True)
            jax.clear_caches()
    print(f"{arguments.programs:,} programs, {wrong} wrong")
    return int(wrong > 0)
