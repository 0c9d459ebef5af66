"""Timings of ``alphagrad bench --save`` for a report."""

import json
from pathlib import Path
from typing import Any

from ..errors import AlphagradError

FORMAT = "alphagrad bench 1"


def read_timings(path: Path) -> list[dict[str, Any]]:
    """The rows of a file that have a time: task, batch, contender, and seconds (median, low, high)."""
    hint = "give a file that alphagrad bench --save wrote"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        rows = [_row(each) for each in found["measurements"] if each["seconds"]] if found["format"] == FORMAT else None
    except OSError as error:
        raise AlphagradError(f"--timings {path} cannot be read: {error.strerror}; {hint}") from None
    except (ValueError, KeyError, TypeError):
        rows = None
    if rows is None:
        raise AlphagradError(f"--timings {path} is no {FORMAT!r}; {hint}")
    return rows


def _row(measurement: dict[str, Any]) -> dict[str, Any]:
    seconds = measurement["seconds"]
    return {
        "task": str(measurement["task"]),
        "batch": int(measurement["batch"]),
        "contender": str(measurement["contender"]),
        **{name: float(seconds[name]) for name in ("median", "low", "high")},
    }
