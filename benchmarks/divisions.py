"""Times of all ways in which threads of a GPU can divide the Jacobians of functions of middle size.

    python benchmarks/divisions.py [--only NAME ...] [--jobs 10] [--output FILE]

The estimates in `gpu_times.py` are fitted to these times. The kernels are elimination in one thread per point, in
portions, and passes of JAX's modes in several threads; XLA runs elimination and the modes. Calls are made in a loop,
as in `middle.py --calls 60 --together 2`, and times are microseconds per call. Errors are those against `jax.jacfwd`.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import ways
from together import results_of
from versus import in_a_loop, in_turns

from alphagrad.bench.case import Case
from alphagrad.tasks import MIDDLE
from graphax.errors import GraphaxError
from graphax.gpu_times import LONGEST_CODE
from graphax.native import divisions, primitive
from graphax.native.portions import Portions, divided, part, work_of
from graphax.native.sharing import shared_loop
from graphax.native.statements import Statements

NAMES = ("Battery", "Cable", "Kinetics_10", "Kinetics_53", "Multibody", "Skinning", "Radiation", "KalmanUpdate_20")
BATCHES = (1, 64, 4096)
CALLS, TOGETHER = 60, 2
ROUNDS, SECONDS = 7, 2.0
LOOP, ALONE, MOST_PORTIONS = "steps of a loop", "one thread", 6
MODES = {"jax.jacfwd": jax.jacfwd, "jax.jacrev": jax.jacrev}


def chosen(name: str, program: Statements) -> divisions.Division:
    """A division by its name; raises `LookupError` if a program cannot be divided like this."""
    if name == ALONE:
        return None
    if name == LOOP:
        loop = shared_loop(program)
        if loop is None:
            raise LookupError(name)
        return loop
    found = list(divided(program))[int(name.removeprefix("portions "))]
    work = work_of(found)
    if work.code + work.others > LONGEST_CODE:
        raise LookupError(name)
    return Portions(tuple(part(program, each.elements) for each in found), work)


@contextmanager
def forced(name: str) -> Iterator[list[tuple[divisions.Division, Statements]]]:
    """Kernels that are lowered in this context divide points as named. Yields the divisions and their programs."""
    used: list[tuple[divisions.Division, Statements]] = []

    def best(program: Statements, points: int) -> divisions.Division:
        used.append((chosen(name, program), program))
        return used[-1][0]

    usual, primitive.best_division = primitive.best_division, best
    try:
        yield used
    finally:
        primitive.best_division = usual


def prepared(name: str) -> Callable[[], Iterator[dict[str, Any]]]:
    """Compile everything for one function."""
    cases = [_prepared(Case(MIDDLE[name], batch)) for batch in BATCHES]

    def measure() -> Iterator[dict[str, Any]]:
        for row, calls in cases:
            yield row | {"times": in_turns(calls, rounds=ROUNDS, seconds=SECONDS)}

    return measure


def _prepared(case: Case) -> tuple[dict[str, Any], dict[str, Callable[[], Any]]]:
    task, args = case.task, [jnp.asarray(x) for x in case.points]
    ours = ways.ways(task.function, task.argnums)
    row: dict[str, Any] = {"function": task.name, "batch": case.batch, "calls": CALLS, "work": {}, "error": {}}
    calls: dict[str, Callable[[], Any]] = {}

    def add(label: str, function: Callable) -> None:
        compiled = jax.jit(in_a_loop(case.over_batch(function), CALLS, TOGETHER))
        result = jax.tree.leaves(jax.block_until_ready(compiled(*args)))[0]
        exact = result if not calls else jax.tree.leaves(calls["jax.jacfwd"]())[0]
        row["error"][label] = float(jnp.max(jnp.abs(result - exact)) / jnp.max(jnp.abs(exact)))
        calls[label] = lambda: compiled(*args)

    for label, mode in MODES.items():
        add(label, mode(task.function, task.argnums))
    add(ways.XLA, ours.pop(ways.XLA))
    for way, function in ours.items():
        names = [ALONE, *(f"portions {n}" for n in range(MOST_PORTIONS))] if way == ways.KERNEL else [LOOP]
        for name in names:
            with suppress(LookupError, GraphaxError), forced(name) as used:
                add(f"{way}, {name}", function)
                division, program = used[-1]
                row["work"][f"{way}, {name}"] = asdict(divisions.work(program, division))
    return row, calls


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=list(NAMES))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args(arguments)
    if jax.default_backend() != "gpu":
        raise SystemExit("only threads of a GPU divide points, and JAX has none here")
    rows = []
    for row in results_of(prepared, options.only, options.jobs):
        rows.append(row)
        print(f"{row['function']}, {row['batch']:,} points")
        for label, seconds in row["times"].items():
            print(f"    {label:32}{1e6 * seconds / CALLS:9.1f}   error {row['error'][label]:.1e}", flush=True)
        if options.output:
            options.output.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
