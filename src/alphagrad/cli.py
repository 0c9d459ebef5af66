"""The command line: what can be asked, and how the answers are printed.

What a command needs is imported when it runs, so that help and completion come at once.
"""

import sys
from enum import StrEnum
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from .bench_command import bench
from .cli_options import (
    Args,
    AsJson,
    Counting,
    Quiet,
    TargetName,
    check_plot,
    check_writable,
    picture_of,
    print_json,
    weights,
)
from .play_command import play
from .show_command import report, show
from .train_command import train

if TYPE_CHECKING:
    from .result import SearchResult
    from .target import Target

# The base of what is raised about options and arguments. Some versions of typer have a click of their own, so it cannot
# be imported from click.
UsageError: Any = typer.BadParameter.__base__
DEFAULT_SECONDS = 10.0
# Of a message from elsewhere, such as one of JAX's, the beginning says enough.
LONGEST_MESSAGE = 600
# Packages that only agents need.
LEARNING = {"equinox", "mctx", "optax", "orbax"}


class Commands(TyperGroup):
    """All commands; answers everything that cannot be done with one line, and everything else as typer does."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args or ["--help"])

    def main(self, *args: Any, **options: Any) -> Any:
        try:
            code = super().main(*args, **(options | {"standalone_mode": False}))
        except UsageError as error:
            code = _refused(error.format_message())
        except ImportError as error:
            extra = "rl" if str(error.name).partition(".")[0] in LEARNING else "search"
            code = _refused(f"this command needs {error.name}: pip install 'graphax-alphagrad[{extra}]'")
        except Exception as error:
            from graphax import GraphaxError

            if not isinstance(error, GraphaxError | OSError):
                raise
            code = _refused(str(error))
        sys.exit(code)


def _refused(why: str) -> int:
    typer.echo(f"alphagrad: {shorten(why, LONGEST_MESSAGE, placeholder=' …')}", err=True)
    return 2


app = typer.Typer(
    cls=Commands,
    pretty_exceptions_enable=False,
    help="Search for elimination orders that make Jacobians in JAX cheap.",
)
app.command("train")(train)
app.command("play")(play)
app.command("show")(show)
app.command("report")(report)
app.command("bench")(bench)


class Counted(StrEnum):
    raw = "raw"
    folded = "folded"
    both = "both"


@app.command()
def tasks(as_json: AsJson = False) -> None:
    """List the functions that come with alphagrad."""
    from graphax.display import table

    from .tasks import TASKS, UNSEEN

    columns = ["name", "field", "inputs", "intermediates", "outputs", "description"]
    rows = []
    for task in (TASKS | UNSEEN).values():
        graph = task.graph()
        sizes = len(graph.inputs), len(graph.intermediates), len(graph.outputs)
        rows.append([task.name, task.field, *sizes, task.description])
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        typer.echo(table(f"{len(rows)} tasks", columns, rows))


@app.command()
def search(
    target: TargetName,
    args: Args = None,
    argnums: Annotated[
        str | None, typer.Option(help="Arguments to differentiate by, such as 0,2. Default: all made of floats.")
    ] = None,
    budget: Annotated[
        float | None, typer.Option(help=f"Seconds to search. Default: {DEFAULT_SECONDS:g}.", metavar="SECONDS")
    ] = None,
    evaluations: Annotated[int | None, typer.Option(help="How many orders to look at.", metavar="N")] = None,
    certified: Annotated[bool, typer.Option("--certified", help="Search until the order is proven optimal.")] = False,
    minimize: Annotated[
        str,
        typer.Option(
            help="multiplications, operations, peak, weights for multiplications and additions (1,0.5), or runtime: "
            "the fastest on this machine, by a model and then by the clock."
        ),
    ] = "multiplications",
    counting: Counting = "folded",
    simplify: Annotated[bool, typer.Option("--simplify", help="Remove common subexpressions first.")] = False,
    method: Annotated[
        str,
        typer.Option(
            help="auto, presets, greedy, beam, anneal, temper, windows, exact, policy, policy+anneal or policy+beam."
        ),
    ] = "auto",
    seed: Annotated[int, typer.Option(help="Of all random choices.")] = 0,
    workers: Annotated[int, typer.Option(help="Processes to search on.")] = 1,
    start: Annotated[
        str | None, typer.Option(help="An order to start from: a preset or a saved order.", metavar="PRESET_OR_FILE")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Start from the best order on record.")] = False,
    no_record: Annotated[bool, typer.Option("--no-record", help="Do not keep the order on record.")] = False,
    save: Annotated[str | None, typer.Option(help="Write the order to this file.", metavar="FILE.json")] = None,
    plot: Annotated[Path | None, picture_of("the best cost over time")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Search for an order, and print the line of Python that uses it. Ctrl-C ends the search with the best so far."""
    from . import Objective, best_known
    from . import search as run_search
    from .finders.portfolio import FINDERS
    from .progress_line import ProgressLine
    from .target import find

    limit = _budget(budget, evaluations, certified)
    clocked = minimize == "runtime"
    objective = minimize if clocked else Objective.of(weights(minimize), counting)
    _check_outputs(save, plot, clocked)
    found = find(target, args, argnums)
    graph = found.graph(simplify)
    first = _first_order(start, graph)
    with ProgressLine(limit, quiet or as_json) as line:
        if method in FINDERS:
            line.prepare(method)
        if clocked:
            line.say("measuring what operations take on this machine (once), then searching…")
        result = run_search(
            *((found.function, *found.args) if clocked else (graph,)), argnums=found.argnums, simplify=simplify,
            budget=limit, minimize=objective, counting=counting, method=method, seed=seed, start=first,
            batch_axes=found.batch_axes, resume=resume, progress=line.show, workers=workers, record=not no_record,
        )  # fmt: skip
    if save is not None:
        result.order.save(save)
    if plot is not None:
        from .plot import search_history

        search_history(result)[0].savefig(plot)
    known = best_known(graph, result.objective)
    better = None if known is None or known.cost is None or known.cost >= result.value else known.cost
    _print_result(target, found, result, better, save, as_json)


@app.command("table")
def paper_table(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[TASK]...", help="Default: all that the paper has.")
    ] = None,
    budget: Annotated[float, typer.Option(help="Seconds for each search.", metavar="SECONDS")] = 2.0,
    counting: Annotated[Counted, typer.Option(help="The paper counts raw.")] = Counted.both,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare orders as the paper's table 1 does: its numbers and ours, and how low they can be."""
    from . import Budget
    from .comparison import as_data, as_text, compare, select
    from .progress_line import ProgressLine

    limit = Budget.of(budget)
    chosen = select(names or [])
    with ProgressLine(limit, quiet or as_json) as line:
        line.prepare("auto")
        rows = compare(chosen, counting, limit, line.entitle, line.show)
    if as_json:
        print_json(as_data(rows))
    else:
        typer.echo(as_text(rows))


def _budget(seconds: float | None, evaluations: int | None, certified: bool) -> Any:
    from . import Budget, SearchError

    if certified and (seconds is not None or evaluations is not None):
        raise SearchError("--certified goes on until the order is proven optimal; give it or a budget, not both")
    if seconds is None and evaluations is None and not certified:
        seconds = DEFAULT_SECONDS
    return Budget.of(Budget(seconds, evaluations))


def _check_outputs(save: str | None, plot: Path | None, clocked: bool) -> None:
    from . import SearchError

    if save is not None:
        # By its ending graphax.jacve knows a saved order.
        check_writable("--save", Path(save), (".json",))
    check_plot(plot)
    if plot is not None and clocked:
        raise SearchError("--plot draws costs over time, and --minimize runtime goes by the clock; leave one out")


def _first_order(start: str | None, graph: Any) -> Any:
    from graphax.order import PRESETS, resolve

    if start is None:
        return None
    return resolve(Path(start) if start not in PRESETS and Path(start).exists() else start, graph)


def _print_result(
    name: str, target: "Target", result: "SearchResult", known: float | None, save: str | None, as_json: bool
) -> None:
    usage = target.usage(result.order, save)
    if as_json:
        print_json({"target": name, **result.as_dict(), "better_on_record": known, "usage": usage})
        return
    typer.echo(result)
    if known is not None:
        typer.echo(f"On record is a better order, with {known:g}; --resume starts from it.")
    typer.echo("")
    for line in usage:
        typer.echo(line)
