"""Derivatives of the CUTEst problems in JAX (package `sif2jax`): Jacobians of constraints and Hessians of objectives.

    python benchmarks/cutest.py [--only NAME ...] [--jobs 2] [--output cutest.jsonl] [--largest 4194304]
        [--patience 120] [--seconds S]

Every case is compared with JAX in float64 at its starting point: with `jax.jacfwd` and `jax.jacrev` for Jacobians, and
with `jax.hessian` for Hessians. A ratio above 1 is faster than the better of these. A case that breaks a promise is
measured three times. An error counts if it is above 1e-8 of the largest entry, and above the difference between JAX's
compiled and uncompiled results for that entry. Importing `sif2jax` takes a minute.

The jobs are processes that share the cores evenly. Before its first case, a process computes a small derivative in
every way, so that no case pays for the start of JAX and LLVM.

A way that takes longer than ``--patience`` seconds is stopped. If it is a mode of JAX, the case continues without that
mode; if it is ours, the case has failed. A case for which JAX has no mode left is skipped. ``--seconds`` stops the run.
Cases in the output are not measured again, so the same command continues a stopped run.
"""

import argparse
import ast
import gc
import importlib
import importlib.util
import json
import math
import os
import re
import sys
import tempfile
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from shards import Step, Supervisor, note, pin
from versus import OURS, compare, forget, mean

TOLERANCE = 1e-8
TRACING, TOO_LARGE = "tracing", "too large for a dense array"
MEASUREMENTS = 3
# The promises: the least ratio of a long call, the seconds that a short call may be slower, and the limit between both.
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
    """All problems, or some by name. These are imported one by one, because importing the package takes a minute."""
    if not only:
        import sif2jax

        return list(sif2jax.problems)
    root = _root()
    for name in ("sif2jax", "sif2jax.cutest", *(f"sif2jax.cutest.{folder.name}" for folder in root.glob("cutest/_*/"))):
        if name not in sys.modules:
            sys.modules[name] = package = types.ModuleType(name)
            package.__path__ = [str(root.joinpath(*name.split(".")[1:]))]
    modules = _modules(root)
    missing = sorted(set(only) - set(modules))
    if missing:
        raise SystemExit(f"sif2jax has no problems called {', '.join(missing)}")
    return [getattr(importlib.import_module(modules[name]), name)() for name in only]


def _modules(root: Path) -> dict[str, str]:
    """The modules of all classes. If a class is defined twice, the one that its folder imports counts."""
    defined, imported = {}, {}
    for path in root.glob("cutest/_*/*.py"):
        folder, text = f"sif2jax.cutest.{path.parent.name}", path.read_text(encoding="utf-8")
        defined |= dict.fromkeys(re.findall(r"^class (\w+)\(", text, re.MULTILINE), f"{folder}.{path.stem}")
        for line in ast.parse(text).body if path.stem == "__init__" else ():
            if isinstance(line, ast.ImportFrom) and line.level == 1:
                imported |= {alias.name: f"{folder}.{line.module}" for alias in line.names}
    return defined | imported


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
    """JAX's ways to compute a derivative, and ours."""
    import jax

    import graphax as gx

    f = case.function
    if case.kind == "Jacobian":
        return {"jacfwd": jax.jacfwd(f), "jacrev": jax.jacrev(f), OURS: gx.jacve(f)}
    return {"hessian": jax.hessian(f), OURS: gx.hessve(f)}


def measured(case: Case, without: Sequence[str], at: Callable[[str], None]) -> dict[str, Any]:
    """The row of a case, without some ways of JAX. ``at`` is called with each step."""
    import jax

    ways = {name: way for name, way in derivatives(case).items() if name not in without}
    for _ in range(MEASUREMENTS):
        forget()
        # Trace the function once, so that its caches are the same for every way.
        at(TRACING)
        jax.eval_shape(case.function, case.start)
        found = compare(ways, [case.start], TOLERANCE, note=at)
        if found.first_ratio <= FIRST_WORST:
            break
    for _ in range(MEASUREMENTS - 1):
        if is_kept(found.as_dict()):
            break
        found = found.timed_again(at)
    return found.as_dict() | ({"without": list(without)} if without else {})


def warm_up() -> None:
    """Compute small derivatives in every way, including one as a kernel."""
    import jax
    import jax.numpy as jnp

    x = jnp.ones(3)
    for kind, function in (("Jacobian", jnp.cumprod), ("Hessian", lambda x: jnp.prod(jnp.sin(x)))):
        for way in derivatives(Case("warm-up", kind, function, x, 9)).values():
            jax.block_until_ready(jax.jit(way)(x))


def is_kept(row: dict[str, Any]) -> bool:
    """Whether a case is as fast as promised."""
    ours = row["times"]["graphax"]
    theirs = ours * row["ratio"]
    return row["ratio"] >= SLOWEST if theirs > LONG else ours - theirs <= SLOWER_BY


def work(options: argparse.Namespace) -> None:
    """Measure the cases of one shard, and add a line to the output for each."""
    pin(options.shard, options.jobs)
    import jax

    jax.config.update("jax_enable_x64", True)
    known = done(options.output)
    found = cases(options.only)
    warm_up()
    # Collecting garbage among all objects of `sif2jax` takes longer than most cases.
    gc.collect()
    gc.freeze()
    for number, case in enumerate(found):
        if number % options.jobs != options.shard or is_final(known.get(case.key, {})):
            continue
        without = known.get(case.key, {}).get("without", [])
        row = row_of(case, without, options, partial(note, options.note, case.key))
        write(options.output, {"case": case.key, "entries": case.entries} | row)


def row_of(
    case: Case, without: Sequence[str], options: argparse.Namespace, at: Callable[[str], None]
) -> dict[str, Any]:
    """The row of a case. If a way of JAX fails, it is left out, as it is if it takes too long."""
    if case.entries > options.largest:
        return {"skipped": TOO_LARGE}
    if set(derivatives(case)) <= {*without, OURS}:
        return {"skipped": f"JAX takes longer than {options.patience:g} s, or fails", "without": list(without)}
    steps = [TRACING]

    def begun(step: str) -> None:
        steps.append(step)
        at(step)

    try:
        return measured(case, without, begun)
    except Exception as error:  # noqa: BLE001  any exception is a finding
        if steps[-1] in (OURS, TRACING):
            return {"failed": f"{type(error).__name__}: {str(error).strip()[:300]}"}
        return row_of(case, [*without, steps[-1]], options, at)


def is_final(row: dict[str, Any]) -> bool:
    """Whether a row is the result of a case. Other rows only say which ways to leave out."""
    return not row.keys().isdisjoint(("ratio", "failed", "skipped"))


def blamed(output: Path, step: Step, reason: str) -> None:
    """Record that a shard died, or had to be stopped, at a way of a case."""
    row: dict[str, Any] = {"case": step.case}
    if step.way == OURS:
        row["failed"] = reason
    elif step.way == TRACING:
        row["skipped"] = f"tracing: {reason}"
    else:
        row["without"] = [*done(output).get(step.case, {}).get("without", []), step.way]
    write(output, row)


def write(path: Path, row: dict[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def done(path: Path) -> dict[str, dict[str, Any]]:
    """The rows so far. If a case has several, the last one counts."""
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {row["case"]: row for row in rows}


def supervise(options: argparse.Namespace) -> bool:
    """Run the shards. Returns whether they have finished."""
    with tempfile.TemporaryDirectory() as folder:
        # Kernels cached by earlier runs would hide compile times.
        os.environ["GRAPHAX_CACHE"] = folder

        def command(shard: int, notes: Path) -> list[str]:
            return [sys.executable, __file__, *sys.argv[1:], "--shard", str(shard), "--note", str(notes)]

        def tell(seconds: float) -> None:
            count = sum(map(is_final, done(options.output).values()))
            print(f"\r{seconds:5.0f} s: {count:,} cases", end="", file=sys.stderr)

        supervisor = Supervisor(command, Path(folder), options.patience, partial(blamed, options.output), tell)
        return supervisor.run(options.jobs, options.seconds)


def report(rows: dict[str, dict[str, Any]]) -> tuple[str, bool]:
    timed = {key: row for key, row in rows.items() if "ratio" in row}
    slow = {key: row for key, row in timed.items() if not is_kept(row)}
    wrong = {key: row for key, row in timed.items() if row["wrong"]}
    failed = {key: row["failed"] for key, row in rows.items() if "failed" in row}
    skipped = {key: row["skipped"] for key, row in rows.items() if "skipped" in row}
    large = sum(reason == TOO_LARGE for reason in skipped.values())
    ratio = mean([row["ratio"] for row in timed.values()])
    firsts = [row["first_ratio"] for row in timed.values()]
    lines = [
        f"{len(timed):,} cases measured, {large} too large for a dense array, {len(skipped) - large} beyond JAX, "
        f"{len(failed)} failed",
        f"geometric mean of the ratios {ratio:.2f}; first call {mean(firsts):.2f} times JAX's on average, "
        f"{max(firsts, default=0):.2f} at worst",
        f"{len(wrong)} not exact, {len(slow)} too slow",
    ]
    lines += [f"  {key} skipped: {reason}" for key, reason in skipped.items() if reason != TOO_LARGE]
    lines += [f"  {key} without {', '.join(row['without'])}" for key, row in timed.items() if row.get("without")]
    lines += [f"  {key} failed: {reason}" for key, reason in failed.items()]
    lines += [f"  {key}: {row['wrong']}" for key, row in wrong.items()]
    for key, row in sorted(slow.items(), key=lambda item: item[1]["ratio"]):
        ours = 1e6 * row["times"]["graphax"]
        lines.append(f"  {key}: {row['ratio']:.2f}, {ours:.1f} µs instead of {ours * row['ratio']:.1f}")
    late = {key: row["first_ratio"] for key, row in timed.items() if row["first_ratio"] > FIRST_WORST}
    for key, times in sorted(late.items(), key=lambda item: -item[1]):
        lines.append(f"  {key}: first call {times:.2f} times JAX's")
    kept = not (slow or wrong or failed or late) and ratio >= MEAN
    kept = kept and mean(firsts) <= FIRST_MEAN
    return "\n".join(lines), kept


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", help="names of problems")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path, default=Path("cutest.jsonl"))
    parser.add_argument("--largest", type=int, default=1 << 22, help="entries of a dense derivative")
    parser.add_argument("--patience", type=float, default=120, help="the maximum seconds for one way of one case")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after this many seconds")
    parser.add_argument("--shard", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--note", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.shard is not None:
        work(options)
        return 0
    try:
        finished = supervise(options)
    except KeyboardInterrupt:
        finished = False
    print("" if finished else "\nstopped; the same command continues", file=sys.stderr)
    text, kept = report(done(options.output))
    print(text)
    return int(not kept)


if __name__ == "__main__":
    sys.exit(main())
