"""Timings of ``alphagrad bench --save`` for a report."""

from pathlib import Path
from typing import Any

from ..bench.report import read
from ..errors import AlphagradError


def read_timings(path: Path) -> list[dict[str, Any]]:
    """The rows of a file that have a time: task, batch, contender, and seconds (median, low, high)."""
    found = read(path)
    try:
        return [_row(each) for each in found["measurements"] if each["seconds"]]
    except (ValueError, KeyError, TypeError):
        raise AlphagradError(f"{path} has damaged rows; give a file that alphagrad bench --save wrote") from None


def _row(measurement: dict[str, Any]) -> dict[str, Any]:
    seconds = measurement["seconds"]
    return {
        "task": str(measurement["task"]),
        "batch": int(measurement["batch"]),
        "contender": str(measurement["contender"]),
        **{name: float(seconds[name]) for name in ("median", "low", "high")},
    }
