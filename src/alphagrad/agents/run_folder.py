"""The files of a training run apart from checkpoints: its configuration, its metrics, and the best orders."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax

from graphax import GraphaxError, Order
from graphax.files import replace_file

from ..errors import AlphagradError


class RunError(AlphagradError):
    """A folder holds another training run, or none that can be read."""


class RunFolder:
    """A folder with ``config.json``, ``metrics.jsonl``, and ``orders/<task>.json``. Without a path nothing is written.

    A folder that holds a run of another configuration is an error. The folder is created by `create`, not before. Files
    are replaced as a whole. Only the first of several processes writes.
    """

    def __init__(self, path: str | os.PathLike | None, configuration: dict[str, Any]):
        self._writes = path is not None and jax.process_index() == 0
        self.path = Path(path or "")
        if path is not None and self.path.exists() and not self.path.is_dir():
            # Check this before anything is compiled.
            raise RunError(f"a run cannot be stored in {self.path}, which is not a folder; give another one")
        self._metrics = self.path / "metrics.jsonl"
        self._config, self._text = self.path / "config.json", json.dumps(configuration, indent=1)
        self.new = path is not None and not self._config.exists()
        if path is not None and not self.new:
            _compare(_read(self._config), json.loads(self._text), self.path)

    def create(self) -> None:
        """Create the folder and write the configuration."""
        if not self._writes:
            return
        try:
            (self.path / "orders").mkdir(parents=True, exist_ok=True)
            replace_file(self._config, self._text + "\n")
        except OSError as error:
            raise RunError(f"a run cannot be stored in {self.path}: {error.strerror}; give another folder") from None

    def forget_after(self, iteration: int) -> None:
        """Remove metrics of later iterations, which will run again."""
        if self._writes and self._metrics.exists():
            lines = [json.dumps(line) for line in read_curve(self._metrics) if line["iteration"] <= iteration]
            replace_file(self._metrics, "".join(f"{line}\n" for line in lines))

    def note(self, metrics: dict[str, Any]) -> None:
        """Add a line to the metrics."""
        if self._writes:
            with self._metrics.open("a", encoding="utf-8") as file:
                file.write(json.dumps(metrics) + "\n")

    def keep(self, name: str, order: Order) -> Order:
        """Save an order, unless the file has a better one, as after resuming from an earlier checkpoint.

        Returns the order, or the one in the file if that is equally good.
        """
        path = self.path / "orders" / f"{name}.json"
        if not self._writes or order.cost is None:
            return order
        saved = _saved(path)
        if saved is not None and saved.cost == order.cost:
            return saved
        if saved is None or saved.cost is None or order.cost < saved.cost:
            replace_file(path, json.dumps(asdict(order)) + "\n")
        return order


def read_curve(path: Path) -> list[dict[str, Any]]:
    """The metrics of each iteration. A line that a killed process left unfinished is skipped."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def _saved(path: Path) -> Order | None:
    """The order in a file; None if there is none that can be read."""
    try:
        return Order.load(path)
    except GraphaxError:
        return None


def _read(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read ({error}); give the run another folder") from None


def _compare(there: dict[str, Any], here: dict[str, Any], path: Path) -> None:
    before, now = _entries(there), _entries(here)
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    if names:
        differences = "; ".join(f"{name} is {before.get(name)!r} there and {now.get(name)!r} here" for name in names)
        raise RunError(f"{path} holds a run of another configuration: {differences}. Give this one another folder.")


def _entries(tree: dict[str, Any]) -> dict[str, Any]:
    """The values in nested dictionaries, by their dotted names."""
    found = jax.tree_util.tree_leaves_with_path(tree, is_leaf=lambda node: not isinstance(node, dict))
    return {jax.tree_util.keystr(path, simple=True, separator="."): value for path, value in found}
