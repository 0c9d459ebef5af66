"""``alphagrad tasks`` and ``alphagrad table``: the functions that come with alphagrad, and what orders of them cost."""

from enum import StrEnum
from typing import Annotated

import typer

from .options import AsJson, Budgeted, Quiet, TaskNames
from .output import answer, interrupted


class Counted(StrEnum):
    raw = "raw"
    folded = "folded"
    both = "both"


def tasks(as_json: AsJson = False, quiet: Quiet = False) -> None:
    """List the functions that come with alphagrad."""
    from graphax.table import table

    from ..tasks import TASKS, UNSEEN
    from .status_line import StatusLine

    columns = ["name", "field", "inputs", "intermediates", "outputs", "description"]
    rows = []
    with StatusLine(quiet) as line:
        for task in (TASKS | UNSEEN).values():
            line.show(f"tracing {task.name}…")
            graph = task.graph()
            sizes = len(graph.inputs), len(graph.intermediates), len(graph.outputs)
            rows.append([task.name, task.field, *sizes, task.description])
    document = [dict(zip(columns, row, strict=True)) for row in rows]
    answer(as_json, document, table(f"{len(rows)} tasks", columns, rows))


def table(
    names: TaskNames = None,
    budget: Budgeted = 2.0,
    counting: Annotated[Counted, typer.Option(help="As in other commands, or both ways.")] = Counted.both,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare orders as the paper's table 1 does.

    Its numbers and ours, and how low they can be. Ctrl-C prints the rows that are there.
    """
    from ..finders.budget import Budget
    from .comparison import as_text, compare, select
    from .progress_line import ProgressLine

    limit = Budget.of(budget)
    chosen = select(names or [])
    rows, stopped = [], False
    with ProgressLine(limit, quiet) as line:
        line.prepare("auto")
        try:
            for row in compare(chosen, counting, limit, line.entitle, line.show):
                rows.append(row)  # noqa: PERF402
        except KeyboardInterrupt:
            if not any(row["bound"] for row in rows):
                raise
            stopped = True
    answer(as_json, rows, as_text(rows))
    if stopped:
        raise interrupted("these are the rows until then")
