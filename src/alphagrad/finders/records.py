"""The best known orders per graph and objective: those that ship with the package, and the user's own.

A shelf is a folder with one file per order, ``<graph>/<objective>/<value>.json``. An order is added by moving a
finished file into place, and only files with higher values are ever removed. So any number of processes may add orders
at once without locks, and the best one stays. Files on a shelf are not trusted: an order is checked against the graph
and counted again, and a file whose content is wrong is set aside.
"""

import json
import os
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from importlib import resources
from pathlib import Path

from graphax import ComputationGraph, GraphaxError, Order
from graphax.files import cache_folder, replace_file

from ..elimination.objective import Objective, ObjectiveLike
from ..elimination.problem import Problem
from ..errors import SearchError
from .result import SearchResult


class RecordWarning(UserWarning):
    """A record could not be read or written. The search continues without it."""


def user_shelf() -> Path:
    """The folder of the user's own orders."""
    return cache_folder("alphagrad") / "orders"


def shipped_shelf() -> Path:
    return Path(str(resources.files(__package__))) / "best_known"


def best_known(graph: ComputationGraph, objective: ObjectiveLike = "multiplications") -> Order | None:
    """The best order on record for this graph, or None.

    Reads the orders that ship with the package, for all its tasks, and the orders that searches on this machine have
    kept (under $ALPHAGRAD_CACHE, or in the user's cache folder). The ``bound`` of the order is the best one proven so
    far.

    Args:
        objective: as ``minimize`` of `alphagrad.search`, for folded counts; or an `Objective`.
    """
    if not isinstance(graph, ComputationGraph):
        raise SearchError(f"best_known takes a graph, such as graphax.build_graph(f, *args), but got {graph!r}")
    objective = Objective.of(objective)
    found = [read(shelf, graph, objective) for shelf in (shipped_shelf(), user_shelf())]
    orders = [order for order in found if order is not None]
    if not orders:
        return None
    best = min(orders, key=lambda order: order.cost or 0)
    # A proof holds for the graph, no matter with which order it was found.
    return replace(best, bound=max(order.bound or 0 for order in orders))


def offer(result: SearchResult) -> None:
    """Put the order on the user's shelf if it is the best known, or equally good with a better bound."""
    known = best_known(result.graph, result.objective)
    if known is None or known.cost is None or (result.value, -result.bound) < (known.cost, -(known.bound or 0)):
        try:
            write(user_shelf(), result)
        except OSError as error:
            warnings.warn(
                f"the order could not be kept: {error}. Set ALPHAGRAD_CACHE to a folder that can be written to, or "
                f"search with record=False.",
                RecordWarning,
                stacklevel=3,
            )


def write(shelf: Path, result: SearchResult) -> Path:
    """Add an order to a shelf and remove worse ones."""
    folder = _folder(shelf, result.graph, result.objective)
    folder.mkdir(parents=True, exist_ok=True)
    content = json.dumps({"objective": str(result.objective), **asdict(result.order), "counts": asdict(result.cost)})
    path = folder / f"{result.value:g}.json"
    replace_file(path, content + "\n")
    for worse in _by_value(folder):
        if _value(worse) > result.value:
            worse.unlink(missing_ok=True)
    return path


def read(shelf: Path, graph: ComputationGraph, objective: Objective) -> Order | None:
    """The best order on a shelf whose file is intact, or None."""
    for path in _by_value(_folder(shelf, graph, objective)):
        try:
            return _checked(path, graph, objective)
        except FileNotFoundError:
            # Another process has found a better order in the meantime.
            continue
        except (OSError, ValueError, TypeError, AttributeError, GraphaxError) as error:
            _set_aside(path, error, movable=shelf != shipped_shelf())
    return None


def _checked(path: Path, graph: ComputationGraph, objective: Objective) -> Order:
    content = json.loads(path.read_text(encoding="utf-8"))
    order = Order(**{name: value for name, value in content.items() if name not in ("objective", "counts")})
    order = Order.of(order, graph)
    value = Problem(graph, objective).value_of(order)
    if value != order.cost or f"{value:g}" != path.stem:
        raise ValueError(f"it says {order.cost} but its order costs {value}")
    if order.bound is not None and order.bound > value:
        raise ValueError(f"it says that no order costs less than {order.bound}, but its own costs {value}")
    return order


def _set_aside(path: Path, error: Exception, movable: bool) -> None:
    """Warn about a damaged record and move it away, unless it belongs to the package."""
    where = "it is ignored"
    if movable:
        aside = path.with_suffix(".damaged")
        with suppress(OSError):
            os.replace(path, aside)
            where = f"it was moved to {aside.name}"
    warnings.warn(f"the record {path} is damaged ({error}); {where}.", RecordWarning, stacklevel=4)


def _folder(shelf: Path, graph: ComputationGraph, objective: Objective) -> Path:
    weights = "" if objective.minimize != "weighted" else "-{:g}-{:g}".format(*objective.weights)
    return shelf / graph.digest / f"{objective.counting}-{objective.minimize}{weights}"


def _by_value(folder: Path) -> Iterator[Path]:
    """The records in a folder, best first."""
    yield from sorted(folder.glob("*.json"), key=_value)


def _value(path: Path) -> float:
    try:
        return float(path.stem)
    except ValueError:
        return float("inf")
