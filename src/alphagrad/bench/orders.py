"""Orders by the names that benchmarks use."""

from dataclasses import replace
from typing import Any

from graphax.order import loaded
from graphax.presets import BASELINES, PRESETS

from ..elimination.objective import Objective
from ..errors import AlphagradError
from ..finders.records import best_known
from ..tasks.task import Task

PAPER, BEST = "paper", "best"
NAMES = (*PRESETS, PAPER, BEST)


class Unavailable(AlphagradError):
    """A contender does not support something. This is reported and is not a failure."""


def order_of(name: str, task: Task) -> Any:
    """The order with this name, as `graphax.jacve` takes it; raises `Unavailable` if the task has no such order."""
    if name == PAPER:
        return paper_order(task)
    return best_order(task) if name == BEST else name


def paper_order(task: Task) -> tuple[int, ...]:
    """The order printed in the paper; raises `Unavailable` unless its vertex numbers are the same as here."""
    paper = task.paper
    if paper is None or paper.order is None:
        raise Unavailable("the paper has no order for it")
    graph = task.graph()
    costs = tuple(graph.cost(preset, "raw").multiplications for preset in BASELINES)
    if costs != (paper.forward, paper.reverse, paper.markowitz):
        raise Unavailable("the paper's graph differs from ours, so its vertex numbers do not apply")
    return paper.order


def best_order(task: Task) -> Any:
    """The order with the fewest multiplications on record, with or without common subexpressions removed.

    The order is for the sizes of the example. Other sizes have the same vertices, so it also fits those.
    """
    objective = Objective.of("multiplications")
    found = [best_known(task.graph(simplify=simplified), objective) for simplified in (True, False)]
    orders = [order for order in found if order is not None and order.cost is not None]
    if not orders:
        raise Unavailable(f"no order is on record; alphagrad search {task.name} finds one")
    return replace(min(orders, key=lambda order: order.cost or 0), fingerprint="")


def check_order(name: str) -> None:
    """Raise for a name that is not an order of any task."""
    if name.endswith(".json"):
        loaded(name)
    elif name not in NAMES:
        raise AlphagradError(f"unknown order {name!r}; choose one of: {', '.join(NAMES)}, or a saved one (*.json)")
