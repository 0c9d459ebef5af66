"""Jacobians of functions of middle size (`alphagrad.tasks.MIDDLE`) by `jacve` and by JAX's modes.

    python benchmarks/middle.py [--only NAME ...] [--batches 1,64,4096] [--calls 1] [--together 1] [--jobs 1] [--ways]
        [--output FILE]

With `--calls 100`, one program makes a hundred calls, as a solver does, and times are per call. A call from Python
takes 5 µs on a CPU and 30 to 40 µs on a GPU, whatever it does. A step of a loop takes 10 µs on a GPU; with `--together
5` it contains five calls, unless the function is so long that XLA would compile for minutes. `floor` is an XLA program
that only writes results of the same shapes, and `of floor` says how many times as fast as JAX it is.

With `--jobs 45`, so many cases are compiled at the same time, and then measured one after another. `--ways` also
measures each way in which graphax could run the function, next to its estimated time.

A ratio above 1 is faster than the better of `jax.jacfwd` and `jax.jacrev`. Everything runs under `jax.jit` in float32,
and under `jax.vmap` for more than one point. Errors are those of `jacve` and of JAX's better mode, against JAX in
float64.
"""

import argparse
import json
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import ways
from together import results_of
from versus import OURS, Comparison, first_call, in_a_loop, in_turns, mean, prepare

import graphax as gx
from alphagrad.bench.case import Case
from alphagrad.bench.measure import exact_entries
from alphagrad.tasks import MIDDLE
from graphax.accuracy import relative_error

SLOWEST, MEAN = 0.95, {"cpu": 4.0, "gpu": 8.0}
TOLERANCE = 2e-3
MEASUREMENTS = 3
COMPARED = 16
# Functions with more equations are called once per step of a loop.
LONG = 1_000
COLUMNS = (
    "function", "batch", "jacfwd", "jacrev", "jacve", "floor", "times as fast", "of floor", "first call", "of JAX",
    "error", "of JAX",
)  # fmt: skip


@dataclass(frozen=True)
class Share:
    """A case and how to measure it; see the options of this command."""

    name: str
    batch: int
    calls: int
    together: int
    ways: bool

    @property
    def case(self) -> Case:
        return Case(MIDDLE[self.name], self.batch)

    def repeated(self, function: Callable) -> Callable:
        """The calls of a function of one point, in one program."""
        function = self.case.over_batch(function)
        if self.calls == 1:
            return function
        task = self.case.task
        long = len(jax.make_jaxpr(task.function)(*task.arguments()).eqns) > LONG
        return in_a_loop(function, self.calls, 1 if long else self.together)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A case whose programs are compiled.

    Attributes:
        floor: a call that writes one number to all results.
        exact: the Jacobian of a few points in float64.
        ways: a call of each of our ways.
    """

    case: Case
    found: Comparison
    floor: Callable[[], Any]
    exact: Any
    ways: dict[str, Callable[[], Any]]

    @staticmethod
    def of(share: Share) -> "Prepared":
        case, task = share.case, share.case.task
        args = [jnp.asarray(x) for x in case.points]
        jacobians = {"jacfwd": jax.jacfwd, "jacrev": jax.jacrev, OURS: gx.jacve}
        compared = {name: share.repeated(way(task.function, task.argnums)) for name, way in jacobians.items()}
        found = prepare(compared, args, TOLERANCE)
        nothing = _writing(jax.eval_shape(found.calls[OURS]))
        floor = jax.jit(in_a_loop(nothing, share.calls, share.together) if share.calls > 1 else nothing)
        jax.block_until_ready(floor(*args))
        others = {}
        for name, way in ways.ways(task.function, task.argnums).items() if share.ways else ():
            with suppress(gx.GraphaxError):
                _, compiled, _ = first_call(share.repeated(way), args)
                others[name] = lambda compiled=compiled: compiled(*args)
        return Prepared(case, found, lambda: floor(*args), exact_entries(case, COMPARED), others)

    def measured(self, calls: int) -> dict[str, Any]:
        """The times of the case per call. A slow case is measured again to confirm the result."""
        found = self.found.timed_again()
        for _ in range(MEASUREMENTS - 1):
            if found.ratio >= SLOWEST:
                break
            found = found.timed_again()

        def error(name: str) -> float:
            leaves = jax.tree.leaves(found.results[name])
            return relative_error([x[:COMPARED] if self.case.batch > 1 else x for x in leaves], self.exact)

        floor = in_turns({"floor": self.floor})["floor"]
        row = {"function": self.case.task.name, "batch": self.case.batch} | found.as_dict()
        row |= {"error": error(OURS), "error_of_jax": error(found.better)}
        row |= {"floor": floor / calls, "ratio_of_floor": found.times[found.better] / floor}
        row["times"] = {name: seconds / calls for name, seconds in row["times"].items()}
        if self.ways:
            taken = {name: seconds / calls for name, seconds in in_turns(self.ways).items()}
            args = [jnp.asarray(x, jnp.float32) for x in self.case.task.arguments()]
            said = ways.estimated(self.case.function, self.case.task.argnums, args, self.case.batch)
            row["ways"] = {"measured": taken, "estimated": said}
        return row


def _writing(shapes: Any) -> Callable:
    """A function that writes one number to results of these shapes."""

    def nothing(*args: Any) -> Any:
        number = jax.tree.leaves(args)[0].ravel()[0]
        return jax.tree.map(lambda x: jnp.full(x.shape, number, x.dtype), shapes)

    return nothing


def prepared(share: Share) -> Callable[[], Iterator[dict[str, Any]]]:
    case = Prepared.of(share)

    def measure() -> Iterator[dict[str, Any]]:
        yield case.measured(share.calls)
        jax.clear_caches()

    return measure


def printed(row: dict[str, Any]) -> None:
    times = " | ".join(f"{1e6 * t:,.1f}" for t in row["times"].values())
    theirs = row["first"][OURS] / row["first_ratio"]
    print(
        f"| {row['function']} | {row['batch']:,} | {times} | {1e6 * row['floor']:,.1f} | **{row['ratio']:.2f}** "
        f"| {row['ratio_of_floor']:.2f} | {row['first'][OURS]:.2f} | {theirs:.2f} "
        f"| {row['error']:.1e} | {row['error_of_jax']:.1e} | {row['wrong']}",
        flush=True,
    )
    if "ways" in row:
        said, taken = row["ways"]["estimated"], row["ways"]["measured"]
        known = {"jax.jacfwd": row["times"].get("jacfwd"), "jax.jacrev": row["times"].get("jacrev")} | taken
        both = (f"{name} {1e6 * said.get(name, 0):,.1f} → {1e6 * t:,.1f}" for name, t in known.items() if t)
        print(f"    estimated → measured: {', '.join(both)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=list(MIDDLE))
    parser.add_argument("--batches", default="1,64,4096")
    parser.add_argument("--calls", type=int, default=1)
    parser.add_argument("--together", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--ways", action="store_true")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    shares = [
        Share(name, batch, options.calls, options.together, options.ways)
        for name in options.only
        for batch in map(int, options.batches.split(","))
    ]
    print(f"| {' | '.join(COLUMNS)} |\n|---|{'--:|' * (len(COLUMNS) - 1)}")
    rows = []
    for row in results_of(prepared, shares, options.jobs):
        rows.append(row)
        printed(row)
        if options.output:
            content = {
                "calls": options.calls,
                "together": options.together,
                "date": f"{datetime.now(UTC):%Y-%m-%d}",
                "device": jax.devices()[0].device_kind,
                "jax": jax.__version__,
            }
            text = json.dumps(content | {"python": platform.python_version(), "rows": rows}, indent=1)
            options.output.write_text(text + "\n", encoding="utf-8")
    device = jax.devices()[0]
    ratios = [row["ratio"] for row in rows]
    promised = MEAN[device.platform]
    print(
        f"{device.device_kind}, JAX {jax.__version__}; times in microseconds, first calls in seconds\n"
        f"geometric mean {mean(ratios):.2f} (promised: {promised:g}), least {min(ratios):.2f} (promised: {SLOWEST:g}), "
        f"first call {mean([row['first_ratio'] for row in rows]):.2f} times JAX's; writing results alone would have "
        f"{mean([row['ratio_of_floor'] for row in rows]):.2f}"
    )
    return int(mean(ratios) < promised or min(ratios) < SLOWEST or any(row["wrong"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
