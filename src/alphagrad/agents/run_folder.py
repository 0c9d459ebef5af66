"""What a training run leaves on disk, apart from checkpoints: its configuration, its metrics, and the best orders."""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from graphax import GraphaxError, Order
from graphax.files import replace_file

from ..errors import AlphagradError


class RunError(AlphagradError):
    """A folder that holds another training run, or none that can be read."""


class RunFolder:
    """A folder with ``config.json``, ``metrics.jsonl``, and ``orders/<task>.json``; files are replaced as a whole.

    A folder that has a run of another configuration is an error, and there is none before `create`. Only the first of
    several processes writes.
    """

    def __init__(self, path: str | os.PathLike, configuration: dict[str, Any], writes: bool = True):
        self.path = Path(path)
        self._writes = writes
        self._metrics = self.path / "metrics.jsonl"
        self._config, self._text = self.path / "config.json", json.dumps(configuration, indent=1)
        self.new = not self._config.exists()
        if not self.new:
            _compare(_read(self._config), json.loads(self._text), self.path)

    def create(self) -> None:
        """Write the configuration down, if that has not been done."""
        if not self._writes or not self.new:
            return
        try:
            (self.path / "orders").mkdir(parents=True, exist_ok=True)
            replace_file(self._config, self._text + "\n")
        except OSError as error:
            raise RunError(f"a run cannot be kept in {self.path}: {error.strerror}; give another folder") from None

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    def forget_after(self, iteration: int) -> None:
        """Remove metrics of later iterations, which are to come once more."""
        if self._writes and self._metrics.exists():
            lines = self._metrics.read_text(encoding="utf-8").splitlines(keepends=True)
            replace_file(self._metrics, "".join(line for line in lines if _iteration(line) <= iteration))

    def note(self, metrics: dict[str, Any]) -> None:
        """Add a line to the metrics."""
        if self._writes:
            with self._metrics.open("a", encoding="utf-8") as file:
                file.write(json.dumps(metrics) + "\n")

    def keep(self, name: str, order: Order) -> None:
        """Save an order, unless there is a better one, as when a run goes on from an earlier checkpoint."""
        path = self.path / "orders" / f"{name}.json"
        known = _cost(path) if path.exists() else float("inf")
        if self._writes and order.cost is not None and order.cost < known:
            replace_file(path, json.dumps(asdict(order)) + "\n")


def read_curve(path: Path) -> list[dict[str, Any]]:
    """The metrics of each iteration; a line that was not finished is left out."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def _cost(path: Path) -> float:
    try:
        cost = Order.load(path).cost
    except GraphaxError:
        return float("inf")
    return float("inf") if cost is None else cost


def _iteration(line: str) -> float:
    try:
        return json.loads(line)["iteration"]
    except (ValueError, TypeError, KeyError):
        # The end of a line that a killed process did not finish.
        return float("inf")


def _read(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read ({error}); give the run another folder") from None


def _compare(there: dict[str, Any], here: dict[str, Any], path: Path) -> None:
    before, now = dict(_entries(there)), dict(_entries(here))
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    if names:
        differences = "; ".join(f"{name} is {before.get(name)!r} there and {now.get(name)!r} here" for name in names)
        raise RunError(f"{path} holds a run of another configuration: {differences}. Give this one another folder.")


def _entries(tree: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The values in nested dictionaries, by their dotted names."""
    if not isinstance(tree, dict):
        yield name, tree
        return
    for key, value in tree.items():
        yield from _entries(value, f"{name}.{key}" if name else key)
