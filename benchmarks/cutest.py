"""Derivatives of the CUTEst problems in JAX (package `sif2jax`): Jacobians of constraints and Hessians of objectives.

    python benchmarks/cutest.py [--only NAME ...] [--jobs 2] [--output cutest.jsonl] [--largest 4194304]

Every case is compared with JAX in float64 at its start: `jax.jacfwd` and `jax.jacrev` for Jacobians, `jax.hessian` for
Hessians. A ratio above 1 is faster than the better of them. A case that breaks a promise is measured three times. What
is in the output already is not measured again, so that an interrupted run goes on. Importing `sif2jax` takes a minute.
"""

import argparse
import importlib
import importlib.util
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from versus import OURS, compare, mean

TOLERANCE = 1e-8
MEASUREMENTS = 3
# What is promised: how slow a long call may be, how much slower a short one, and what is long.
SLOWEST, SLOWER_BY, LONG = 0.9, 5e-6, 50e-6
MEAN, FIRST_MEAN, FIRST_WORST = 1.5, 1.5, 3.0


@dataclass(frozen=True)
class Case:
    """A derivative of one problem."""

    name: str
    kind: str
    function: Callable
    start: Any
    entries: int

    @property
    def key(self) -> str:
        return f"{self.name} {self.kind}"


@cache
def _root() -> Path:
    found = importlib.util.find_spec("sif2jax")
    if found is None or found.origin is None:
        raise SystemExit("this needs the package sif2jax: pip install sif2jax")
    return Path(found.origin).parent


def problems(only: Sequence[str] | None) -> list[Any]:
    """All problems, or some by name. Each is made where it is defined: importing the whole package takes a minute."""
    if not only:
        import sif2jax

        return list(sif2jax.problems)
    root = _root()
    for name in ("sif2jax", "sif2jax.cutest", *(f"sif2jax.cutest.{folder.name}" for folder in root.glob("cutest/_*/"))):
        if name not in sys.modules:
            sys.modules[name] = package = types.ModuleType(name)
            package.__path__ = [str(root.joinpath(*name.split(".")[1:]))]
    found = {}
    for path in root.glob("cutest/_*/*.py"):
        for name in set(only) & set(re.findall(r"^class (\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE)):
            found[name] = getattr(importlib.import_module(f"sif2jax.cutest.{path.parent.name}.{path.stem}"), name)()
    missing = sorted(set(only) - set(found))
    if missing:
        raise SystemExit(f"sif2jax has no problems called {', '.join(missing)}")
    return list(found.values())


def cases(only: Sequence[str] | None) -> list[Case]:
    """The derivatives of problems, small ones first."""
    import jax

    found = []
    for problem in problems(only):
        start = problem.y0
        size = sum(np.size(leaf) for leaf in jax.tree.leaves(start))
        if hasattr(problem, "constraint"):
            results = jax.tree.leaves(jax.eval_shape(problem.constraint, start))
            entries = size * sum(math.prod(x.shape) for x in results)
            found.append(Case(type(problem).__name__, "Jacobian", problem.constraint, start, entries))
        results = jax.tree.leaves(jax.eval_shape(problem.objective, start, problem.args))
        entries = size * size * sum(math.prod(x.shape) for x in results)
        objective = partial(_objective, problem)
        found.append(Case(type(problem).__name__, "Hessian", objective, start, entries))
    return sorted(found, key=lambda case: (case.entries, case.key))


def _objective(problem: Any, y: Any) -> Any:
    return problem.objective(y, problem.args)


def derivatives(case: Case) -> dict[str, Callable]:
    """JAX's ways to a derivative, and ours."""
    import jax

    import graphax as gx

    f = case.function
    if case.kind == "Jacobian":
        return {"jacfwd": jax.jacfwd(f), "jacrev": jax.jacrev(f), OURS: gx.jacve(f)}
    return {"hessian": jax.hessian(f), OURS: gx.hessve(f)}


def measured(case: Case) -> dict[str, Any]:
    import jax

    ways = derivatives(case)
    # What tracing the function itself leaves behind is there for everyone.
    jax.eval_shape(case.function, case.start)
    found = compare(ways, [case.start], TOLERANCE)
    for _ in range(MEASUREMENTS - 1):
        if is_kept(found.as_dict()):
            break
        found = found.timed_again()
    return found.as_dict()


def is_kept(row: dict[str, Any]) -> bool:
    """Whether a case is as fast as promised."""
    ours = row["times"]["graphax"]
    theirs = ours * row["ratio"]
    return row["ratio"] >= SLOWEST if theirs > LONG else ours - theirs <= SLOWER_BY


def work(options: argparse.Namespace) -> None:
    """Measure the cases of one shard, and add a line to the output for each."""
    import jax

    jax.config.update("jax_enable_x64", True)
    known = done(options.output)
    for number, case in enumerate(cases(options.only)):
        if number % options.jobs != options.shard or case.key in known:
            continue
        head = {"case": case.key, "entries": case.entries}
        if case.entries > options.largest:
            write(options.output, head | {"skipped": "too large for a dense array"})
            continue
        # What kills the process is not tried again.
        write(options.output, head | {"failed": "the process died"})
        try:
            row = measured(case)
        except Exception as error:  # noqa: BLE001  whatever goes wrong is a finding
            row = {"failed": f"{type(error).__name__}: {str(error).strip()[:300]}"}
        write(options.output, head | row)
        jax.clear_caches()


def write(path: Path, row: dict[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def done(path: Path) -> dict[str, dict[str, Any]]:
    """The rows so far; of several for one case, the last."""
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {row["case"]: row for row in rows}


def supervise(options: argparse.Namespace) -> None:
    """Run the shards, each in a process of its own, which is started again if it dies."""
    with tempfile.TemporaryDirectory() as cache:
        # Kernels of earlier runs would hide what compiling them takes.
        environment = os.environ | {"GRAPHAX_CACHE": cache}
        command = [sys.executable, __file__, *sys.argv[1:]]

        def started(shard: int) -> subprocess.Popen:
            return subprocess.Popen([*command, "--shard", str(shard)], env=environment)

        running = {shard: started(shard) for shard in range(options.jobs)}
        try:
            begin = time.monotonic()
            while running:
                time.sleep(5)
                for shard, process in list(running.items()):
                    if process.poll() is not None:
                        del running[shard]
                        if process.returncode != 0:
                            running[shard] = started(shard)
                print(
                    f"\r{time.monotonic() - begin:5.0f} s: {len(done(options.output)):,} cases", end="", file=sys.stderr
                )
        finally:
            for process in running.values():
                process.terminate()


def report(rows: dict[str, dict[str, Any]]) -> tuple[str, bool]:
    timed = {key: row for key, row in rows.items() if "ratio" in row}
    slow = {key: row for key, row in timed.items() if not is_kept(row)}
    wrong = {key: row for key, row in timed.items() if row["wrong"]}
    failed = {key: row["failed"] for key, row in rows.items() if "failed" in row}
    skipped = sum("skipped" in row for row in rows.values())
    ratio = mean([row["ratio"] for row in timed.values()])
    firsts = [row["first_ratio"] for row in timed.values()]
    lines = [
        f"{len(timed):,} cases measured, {skipped} too large for a dense array, {len(failed)} failed",
        f"geometric mean of the ratios {ratio:.2f}; first call {mean(firsts):.2f} times JAX's in the mean, "
        f"{max(firsts, default=0):.2f} at worst",
        f"{len(wrong)} not exact, {len(slow)} too slow",
    ]
    lines += [f"  {key}: {reason}" for key, reason in failed.items()]
    lines += [f"  {key}: {row['wrong']}" for key, row in wrong.items()]
    for key, row in sorted(slow.items(), key=lambda item: item[1]["ratio"]):
        ours = 1e6 * row["times"]["graphax"]
        lines.append(f"  {key}: {row['ratio']:.2f}, {ours:.1f} µs instead of {ours * row['ratio']:.1f}")
    kept = not (slow or wrong or failed) and ratio >= MEAN
    kept = kept and mean(firsts) <= FIRST_MEAN and max(firsts, default=0) <= FIRST_WORST
    return "\n".join(lines), kept


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", help="names of problems")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path, default=Path("cutest.jsonl"))
    parser.add_argument("--largest", type=int, default=1 << 22, help="entries of a dense derivative")
    parser.add_argument("--shard", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.shard is not None:
        work(options)
        return 0
    try:
        supervise(options)
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on", file=sys.stderr)
    text, kept = report(done(options.output))
    print(text)
    return int(not kept)


if __name__ == "__main__":
    sys.exit(main())
