"""The paper's table 1 with our own numbers: the cost of orders of each task, and lower bounds."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

from graphax.table import table

from .. import tasks
from ..elimination.objective import baselines
from ..finders.budget import Budget, Progress
from ..finders.search import search
from ..tasks.task import Task

PAPER = "paper, raw"
# The columns for one task and one way of counting. The paper has no bounds, and so no gaps.
Row = dict[str, Any]
COLUMNS = ("task", "counting", "forward", "reverse", "markowitz", "best", "bound")
# How multiplications are counted, and whether common subexpressions are removed first, by the name in the table.
VARIANTS = {"raw": ("raw", False), "folded": ("folded", False), "folded, simplified": ("folded", True)}


def compare(
    chosen: Sequence[Task],
    counting: str,
    budget: Budget,
    announce: Callable[[str], None],
    progress: Callable[[Progress], None],
) -> Iterator[Row]:
    """The rows of the table, with one search per task. Ctrl-C interrupts after the current row.

    A search starts from the best order on record, so the rows show the best known orders.
    """
    for task in chosen:
        if task.paper is not None and counting != "folded":
            paper = task.paper
            yield _row(task.name, PAPER, (paper.forward, paper.reverse, paper.markowitz, paper.alphagrad))
        for name, (counted, simplify) in VARIANTS.items():
            if counting not in (counted, "both"):
                continue
            announce(f"{task.name}, {name}")
            result = search(task, simplify=simplify, counting=counted, budget=budget, resume=True, progress=progress)
            costs = (*baselines(result.graph, result.objective), result.value, result.bound)
            yield _row(task.name, name, map(int, costs), result.gap)
            if result.stopped == "interrupted":
                raise KeyboardInterrupt


def select(names: Sequence[str]) -> list[Task]:
    """The tasks with these names, or all tasks of the paper if no name is given."""
    return [tasks.get(name) for name in names] or [task for task in tasks.TASKS.values() if task.paper is not None]


def _row(task: str, counting: str, costs: Iterable[int], gap: float | None = None) -> Row:
    return dict(zip_longest(COLUMNS, (task, counting, *costs))) | {"gap": gap}


def as_text(rows: Sequence[Row]) -> str:
    names = ["task", "counting", "forward", "reverse", "Markowitz", "best", "lower bound", ""]
    text = table("Multiplications to accumulate the Jacobian", names, [_cells(row) for row in rows])
    others = _other_graphs(rows)
    note = "\nThese graphs differ from the paper's, so their counts are not comparable: " + ", ".join(others)
    return text + note if others else text


def _cells(row: Row) -> list[Any]:
    bound = "" if row["bound"] is None else f"{row['bound']:>11,}"
    gap = "" if row["gap"] is None else "optimal" if row["gap"] == 0 else f"gap {row['gap']:.1%}"
    return [*(row[column] for column in COLUMNS[:-1]), bound, gap]


def _other_graphs(rows: Sequence[Row]) -> list[str]:
    """Tasks whose presets have other raw costs than in the paper."""
    costs = {(row["task"], row["counting"]): [row[column] for column in COLUMNS[2:5]] for row in rows}
    return [
        task
        for task, counting in costs
        if counting == PAPER and costs.get((task, "raw")) not in (None, costs[task, PAPER])
    ]
