"""The paper's table 1 with our own numbers: what orders of each task cost, and how low they can be."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from graphax.display import table

from .. import tasks
from ..elimination.objective import baselines
from ..finders.budget import Budget, Progress
from ..finders.search import search
from ..tasks.task import Task

PAPER = "paper, raw"
# How multiplications are counted, and whether common subexpressions are removed first, by the name in the table.
VARIANTS = {"raw": ("raw", False), "folded": ("folded", False), "folded, simplified": ("folded", True)}


@dataclass(frozen=True)
class Compared:
    """Multiplications of one task by one way of counting; the paper has no bounds, and so no gaps."""

    task: str
    counting: str
    forward: int
    reverse: int
    markowitz: int
    best: int
    bound: int | None = None
    gap: float | None = None

    def cells(self) -> list[Any]:
        bound = "" if self.bound is None else f"{self.bound:>11,}"
        gap = "" if self.gap is None else "optimal" if self.gap == 0 else f"gap {self.gap:.1%}"
        return [self.task, self.counting, self.forward, self.reverse, self.markowitz, self.best, bound, gap]


def compare(
    chosen: Sequence[Task],
    counting: str,
    budget: Budget,
    announce: Callable[[str], None],
    progress: Callable[[Progress], None],
) -> Iterator[Compared]:
    """The rows of each task, one search for each; Ctrl-C interrupts after the row that is under way.

    A search starts from the best order on record, so what is shown is the best known.
    """
    for task in chosen:
        if task.paper is not None and counting != "folded":
            paper = task.paper
            yield Compared(task.name, PAPER, paper.forward, paper.reverse, paper.markowitz, paper.alphagrad)
        for name, (counted, simplify) in VARIANTS.items():
            if counting not in (counted, "both"):
                continue
            announce(f"{task.name}, {name}")
            result = search(task, simplify=simplify, counting=counted, budget=budget, resume=True, progress=progress)
            forward, reverse, markowitz, best, bound = map(
                int, (*baselines(result.graph, result.objective), result.value, result.bound)
            )
            yield Compared(task.name, name, forward, reverse, markowitz, best, bound, result.gap)
            if result.stopped == "interrupted":
                raise KeyboardInterrupt


def select(names: Sequence[str]) -> list[Task]:
    """The tasks of these names; all that the paper has, if none is named."""
    return [tasks.get(name) for name in names] or [task for task in tasks.TASKS.values() if task.paper is not None]


def as_text(rows: Sequence[Compared]) -> str:
    names = ["task", "counting", "forward", "reverse", "Markowitz", "best", "lower bound", ""]
    text = table("Multiplications to accumulate the Jacobian", names, [row.cells() for row in rows])
    others = _other_graphs(rows)
    return f"{text}\nNot the paper's very graph, so not to be compared with it: {', '.join(others)}" if others else text


def _other_graphs(rows: Sequence[Compared]) -> list[str]:
    """Tasks of which the presets have other raw costs than in the paper."""
    costs = {(row.task, row.counting): (row.forward, row.reverse, row.markowitz) for row in rows}
    return [
        task
        for task, counting in costs
        if counting == PAPER and costs.get((task, "raw")) not in (None, costs[task, PAPER])
    ]


def as_data(rows: Sequence[Compared]) -> list[dict[str, Any]]:
    return [asdict(row) for row in rows]
