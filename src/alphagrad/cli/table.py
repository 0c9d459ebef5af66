"""``alphagrad tasks`` and ``alphagrad table``: the functions that ship with alphagrad, and costs of their orders."""

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
    """List the functions that ship with alphagrad."""
    # There is no progress to print, but all commands take this option.
    from graphax.table import table

    from ..tasks import TASKS, UNSEEN

    columns = ["name", "field", "inputs", "intermediates", "outputs", "description"]
    rows = [[task.name, task.field, *task.sizes, task.description] for task in (TASKS | UNSEEN).values()]
    document = [dict(zip(columns, row, strict=True)) for row in rows]
    answer(as_json, document, table(f"{len(rows)} tasks", columns, rows))


def table(
    names: TaskNames = None,
    budget: Budgeted = 2.0,
    counting: Annotated[Counted, typer.Option(help="How multiplications are counted.")] = Counted.both,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Print the paper's table 1 with our own numbers and lower bounds.

    Ctrl-C prints the rows so far.
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
        raise interrupted("these are the rows so far")
