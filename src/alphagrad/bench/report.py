"""Measurements as readable tables and as data."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from graphax.table import table

from ..errors import AlphagradError
from ..runtime.timing import Timing
from ..tasks.task import Task
from .case import Case
from .contender import FLOOR, JAX_MODES
from .machine import Machine
from .measure import Measurement

FORMAT = "alphagrad bench 1"


@dataclass(frozen=True)
class BenchmarkReport:
    """Measurements and the conditions that they depend on. Prints as tables.

    Attributes:
        machine: the processor, and the versions of packages.
        command: the command or call that requested the measurements.
        measurements: the result of each contender on each case.
        interrupted: whether some measurements are missing.
        advice: recommendations, one sentence per case of a user's function.
    """

    machine: Machine
    command: str
    measurements: tuple[Measurement, ...]
    interrupted: bool = False
    advice: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "command": self.command,
            "machine": asdict(self.machine),
            "interrupted": self.interrupted,
            "measurements": [_as_dict(each) for each in self.measurements],
            **({"advice": list(self.advice)} if self.advice else {}),
        }

    def __str__(self):
        parts = [str(self.machine), *map(_case_table, by_case(self.measurements))]
        parts.append(_summary(self.measurements) if len(by_case(self.measurements)) > 1 else "")
        parts.append("Interrupted; these are the measurements so far." if self.interrupted else "")
        parts.append("\n".join(self.advice))
        return "\n\n".join(part for part in parts if part)


def by_case(measurements: Sequence[Measurement]) -> list[list[Measurement]]:
    return [list(group) for _, group in groupby(measurements, lambda each: each.case)]


def best_of_jax(rows: Sequence[Measurement]) -> Measurement | None:
    """The faster of JAX's two modes for one case, or None."""
    modes = [row for row in rows if row.contender in JAX_MODES and row.timing]
    return min(modes, key=lambda row: median(row), default=None)


def median(row: Measurement) -> float:
    assert row.timing is not None
    return row.timing.median


def _case_table(rows: list[Measurement]) -> str:
    widths = {"ms": 9, "2.5 %": 9, "97.5 %": 9, "than JAX": 8, "of floor": 8, "error": 7, "compile s": 9, "MiB": 8}
    names = ["", *(name.rjust(width) for name, width in widths.items())]
    theirs = best_of_jax(rows)
    floor = next((row for row in rows if row.contender == FLOOR and row.timing), None)
    cells = [[row.contender, *_cells(row, row.timing, theirs, floor)] for row in rows if row.timing]
    text = table(str(rows[0].case), names, cells)
    without = [f"{row.contender}: {row.reason}" for row in rows if row.reason]
    return "\n".join([text, *without])


def _cells(row: Measurement, timing: Timing, theirs: Measurement | None, floor: Measurement | None) -> list[str]:
    return [
        *(f"{1e3 * seconds:9.3f}" for seconds in (timing.median, timing.low, timing.high)),
        "" if theirs is None else f"{median(theirs) / timing.median:7.2f}×",
        "" if floor is None else f"{timing.median / median(floor):7.2f}×",
        "" if row.error is None else f"{row.error:.1e}",
        "" if row.compile_seconds is None else f"{row.compile_seconds:9.2f}",
        "" if row.memory is None else f"{row.memory / 2**20:8.2f}",
    ]


def _summary(measurements: Sequence[Measurement]) -> str:
    """A table like table 2 of the paper: one line per case, with medians in milliseconds."""
    contenders = list(dict.fromkeys(row.contender for row in measurements))
    rows = []
    for group in by_case(measurements):
        case = group[0].case
        medians = {row.contender: f"{1e3 * median(row):8.3f}" for row in group if row.timing}
        rows.append([case.label, case.batch, *(medians.get(name, "") for name in contenders)])
    return table("Medians in milliseconds", ["task", "batch", *contenders], rows)


def finite(number: float | None) -> float | None:
    """A number that JSON can represent, or None."""
    return number if number is not None and math.isfinite(number) else None


def _as_dict(row: Measurement) -> dict[str, Any]:
    return {
        **row.case.as_dict(), "contender": row.contender, "seconds": row.timing and asdict(row.timing),
        "compile_seconds": row.compile_seconds, "memory_bytes": row.memory, "relative_error": finite(row.error),
        "reason": row.reason,
    }  # fmt: skip


def measurements_in(document: dict[str, Any], chosen: Sequence[Task]) -> list[Measurement]:
    """The measurements in the data of `BenchmarkReport.as_dict` that belong to these tasks."""
    named = {task.name: task for task in chosen}
    return [
        Measurement(
            Case(named[row["task"]], row["batch"], row["scale"], row["dtype"]), row["contender"],
            row["seconds"] and Timing(**row["seconds"]), row["compile_seconds"], row["memory_bytes"],
            row["relative_error"], row["reason"],
        )
        for row in document["measurements"] if row["task"] in named
    ]  # fmt: skip


def read(path: str | Path) -> dict[str, Any]:
    """Read a file written by ``alphagrad bench --save``."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise AlphagradError(f"{path} cannot be read: {error}; give a file that alphagrad bench --save wrote") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise AlphagradError(f"{path} is no {FORMAT!r}; give a file that alphagrad bench --save wrote")
    return found


def read_timings(path: str | Path) -> list[dict[str, Any]]:
    """The rows of a file that have a time: task, batch, contender, and seconds (median, low, high)."""
    found = read(path)
    try:
        return [
            {"task": str(row["task"]), "batch": int(row["batch"]), "contender": str(row["contender"]),
             **{name: float(row["seconds"][name]) for name in ("median", "low", "high")}}
            for row in found["measurements"] if row["seconds"]
        ]  # fmt: skip
    except (ValueError, KeyError, TypeError):
        raise AlphagradError(f"{path} has damaged rows; give a file that alphagrad bench --save wrote") from None
