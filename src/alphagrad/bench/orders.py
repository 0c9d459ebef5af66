"""Orders by the names that a benchmark knows them by."""

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
    """Something that a contender cannot do, which is reported and no failure."""


def order_of(name: str, task: Task) -> Any:
    """What `graphax.jacve` takes for this name; raises `Unavailable` where there is no such order for the task."""
    if name == PAPER:
        return paper_order(task)
    return best_order(task) if name == BEST else name


def paper_order(task: Task) -> tuple[int, ...]:
    """The order that the paper prints, if its vertex numbers are ours."""
    paper = task.paper
    if paper is None or paper.order is None:
        raise Unavailable("the paper has no order for it")
    graph = task.graph()
    costs = tuple(graph.cost(preset, "raw").multiplications for preset in BASELINES)
    if costs != (paper.forward, paper.reverse, paper.markowitz):
        raise Unavailable("the paper's graph is another one, so its vertex numbers mean nothing here")
    return paper.order


def best_order(task: Task) -> Any:
    """The order of fewest multiplications on record, with common subexpressions removed or not.

    It is one for the sizes of the example. The vertices are the same at other sizes, so it serves those as well.
    """
    objective = Objective.of("multiplications")
    found = [best_known(task.graph(simplify=simplified), objective) for simplified in (True, False)]
    orders = [order for order in found if order is not None and order.cost is not None]
    if not orders:
        raise Unavailable(f"no order is on record; alphagrad search {task.name} finds one")
    return replace(min(orders, key=lambda order: order.cost or 0), fingerprint="")


def check_order(name: str) -> None:
    """Refuse a name that is no order for any task."""
    if name.endswith(".json"):
        loaded(name)
    elif name not in NAMES:
        raise AlphagradError(f"unknown order {name!r}; it is one of: {', '.join(NAMES)}, or a saved one (*.json)")
