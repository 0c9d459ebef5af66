"""``alphagrad search``: an order for one function, and the line of Python that uses it."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import SearchError
from . import options
from .output import answer, check_plot, check_writable, interrupted, save_plot

DEFAULT_SECONDS = 10.0


def search(
    target: options.TargetName,
    args: options.Args = None,
    argnums: options.Argnums = None,
    budget: Annotated[
        float | None, options.option("SECONDS", "Seconds for each search.", show_default=f"{DEFAULT_SECONDS:g}")
    ] = None,
    evaluations: Annotated[int | None, options.option("N", "Maximum number of orders to evaluate.")] = None,
    certified: Annotated[bool, typer.Option("--certified", help="Search until the order is proven optimal.")] = False,
    minimize: options.MinimizeAny = "multiplications",
    counting: options.Counting = "folded",
    simplify: options.Simplify = False,
    method: options.Method = "auto",
    seed: options.Seed = 0,
    workers: Annotated[int, options.option("N", "Processes to search on.", min=1)] = 1,
    start: options.Start = None,
    resume: Annotated[bool, typer.Option("--resume", help="Start from the best order on record.")] = False,
    no_record: Annotated[bool, typer.Option("--no-record", help="Write nothing to the cache folder.")] = False,
    save: Annotated[str | None, options.option("FILE.json", "Write the order to this file.")] = None,
    plot: Annotated[Path | None, options.picture_of("the best cost over time")] = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Search for an order, and print the line of Python that uses it.

    Ctrl-C ends the search with the best order so far.
    """
    from .. import Objective, best_known, search as run_search
    from ..finders.portfolio import FINDERS
    from .progress_line import ProgressLine
    from .target import find

    limit = _budget(budget, evaluations, certified)
    clocked = minimize == "runtime"
    objective = minimize if clocked else Objective.of(options.weights(minimize), counting)
    # graphax.jacve recognises a saved order by this ending.
    check_writable("--save", None if save is None else Path(save), (".json",))
    check_plot(plot)
    if plot is not None and clocked:
        raise SearchError("--plot draws costs over time, but --minimize runtime compares run times; leave one out")
    found = find(target, args, argnums)
    with ProgressLine(limit, quiet) as line:
        line.show(f"tracing {target}…")
        graph = found.graph(simplify) if no_record else found.graph_to_search(simplify)
        first = _first_order(start, graph)
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
        from ..plot import search_history

        save_plot(search_history(result), plot)
    known = best_known(graph, result.objective)
    better = None if known is None or known.cost is None or known.cost >= result.value else known.cost
    usage = found.usage(result.order, save)
    told = [] if better is None else [f"A better order is on record, with {better:g}. --resume starts from it."]
    document = {"target": target, **result.as_dict(), "better_on_record": better, "usage": usage}
    answer(as_json, document, "\n".join([str(result), *told, "", *usage]))
    if result.stopped == "interrupted":
        raise interrupted(f"the order is the best so far{f', and is in {save}' if save else ''}")


def _budget(seconds: float | None, evaluations: int | None, certified: bool) -> Any:
    from .. import Budget

    if certified and (seconds is not None or evaluations is not None):
        raise SearchError("--certified continues until the order is proven optimal; give it or a budget, not both")
    if seconds is None and evaluations is None and not certified:
        seconds = DEFAULT_SECONDS
    return Budget(seconds, evaluations)


def _first_order(start: str | None, graph: Any) -> Any:
    from graphax import PRESETS, Order

    if start is None:
        return None
    return Order.of(Path(start) if start not in PRESETS and Path(start).exists() else start, graph)
