"""``alphagrad show`` and ``alphagrad report``: graphs and orders on a page, or drawn for a paper."""

import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import SearchError
from . import options
from .output import answer, check_plot, check_writable, save_plot

if TYPE_CHECKING:
    from graphax import ComputationGraph

    from ..page.view import View

SECONDS = 1.0
Open = Annotated[bool, typer.Option("--open", help="Open the page in a browser.")]
PAGE, DRAWINGS = ".html", (".svg", ".dot")


def show(
    target: options.TargetName,
    args: options.Args = None,
    argnums: options.Argnums = None,
    order: options.Orders = None,
    out: Annotated[
        Path | None, options.option("FILE", "A page (.html) or a drawing (.svg, .dot). Default: TARGET.html.")
    ] = None,
    step: Annotated[int, options.option("N", "The number of vertices that are eliminated at first.")] = 0,
    counting: options.Counting = "folded",
    simplify: options.Simplify = False,
    budget: options.Budgeted = SECONDS,
    plot: Annotated[Path | None, options.picture_of("the cost of each order after each elimination")] = None,
    open_page: Open = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Write an interactive page that shows how orders eliminate a graph.

    The page is one HTML file that needs no network. It replays orders step by step, and lets you eliminate vertices
    yourself. With --out graph.svg or graph.dot, it draws the graph for a paper, after --step eliminations of one order.
    """
    from ..page.drawing import as_dot, as_svg
    from ..page.view import DEFAULT_ORDERS
    from .target import find

    path = out or Path(f"{_file_name(target)}{PAGE}")
    check_writable("--out", path, (PAGE, *DRAWINGS))
    check_plot(plot)
    drawn = path.suffix in DRAWINGS
    if drawn and (open_page or len(order or ()) > 1):
        raise SearchError(f"{path} is a drawing of one order; give one --order, without --open")
    graph = find(target, args, argnums).graph(simplify)
    if not 0 <= step <= len(graph.intermediates):
        raise SearchError(f"--step {step}: give a number from 0 to {len(graph.intermediates)}, the number of vertices")
    # Before the first step, all orders look the same.
    names = order or (["fwd"] if drawn and step == 0 else ["best"] if drawn else list(DEFAULT_ORDERS))
    view = _views([(target, graph)], counting, names, budget, quiet)[0]
    draw = as_svg if path.suffix == ".svg" else as_dot
    content = draw(view.replays[0], step) if drawn else _page([view], view.title, [], step)
    path.write_text(content, encoding="utf-8")
    if plot is not None:
        from ..plot.eliminations import draw_orders

        save_plot(draw_orders(view), plot)
    _conclude([view], path, as_json, open_page)


def report(
    targets: options.TargetNames,
    args: options.Args = None,
    order: options.Orders = None,
    out: Annotated[Path, options.option("FILE.html", "Where to write the page.")] = Path("report.html"),
    timings: Annotated[Path | None, options.option("FILE.json", "A file that alphagrad bench --save wrote.")] = None,
    counting: options.Counting = "folded",
    simplify: options.Simplify = False,
    budget: options.Budgeted = SECONDS,
    open_page: Open = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Write one page about several functions.

    For each function it contains the page of show, with tables of costs, bounds and timings.
    """
    from ..bench.report import read_timings
    from ..page.view import DEFAULT_ORDERS
    from .target import find

    check_writable("--out", out, (PAGE,))
    measured = [] if timings is None else read_timings(timings)
    graphs = [(name, find(name, args).graph(simplify)) for name in dict.fromkeys(targets or ())]
    views = _views(graphs, counting, order or list(DEFAULT_ORDERS), budget, quiet)
    out.write_text(_page(views, ", ".join(view.title for view in views), measured), encoding="utf-8")
    _conclude(views, out, as_json, open_page)


def _file_name(target: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "_-." else "-" for letter in target)


def _views(
    graphs: Sequence[tuple[str, "ComputationGraph"]],
    counting: str,
    orders: Sequence[str],
    budget: float,
    quiet: bool,
) -> "list[View]":
    from ..finders.budget import Budget
    from ..page.view import BEST, make_view
    from .progress_line import ProgressLine

    limit, chosen = Budget.of(budget), list(dict.fromkeys(orders))
    views = []
    with ProgressLine(limit, quiet) as line:
        if BEST in chosen:
            line.prepare("auto")
        for title, graph in graphs:
            line.entitle(title)
            views.append(make_view(title, graph, counting, chosen, limit, line.show))
    return views


def _page(views: "Sequence[View]", title: str, timings: Sequence[dict[str, Any]], step: int = 0) -> str:
    from ..page.data import page_data
    from ..page.html import as_html

    rows = {view.title: [row for row in timings if row["task"] == view.title] for view in views}
    return as_html([page_data(view, rows[view.title]) for view in views], title, step)


def _conclude(views: "Sequence[View]", path: Path, as_json: bool, open_page: bool) -> None:
    from graphax.table import table

    from ..page.view import summary

    rows = [
        [view.title, replay.name, replay.cost.multiplications, replay.cost.additions, replay.cost.peak, view.bound]
        for view in views
        for replay in view.replays
    ]
    columns = ["function", "order", "multiplications", "additions", "peak", "lower bound"]
    text = table(f"Multiplications are counted {views[0].counting}", columns, rows)
    document = {"out": str(path), "targets": [summary(view) for view in views]}
    answer(as_json, document, f"{text}\nwritten: {path}")
    if open_page and not webbrowser.open(path.resolve().as_uri()):
        typer.echo(f"alphagrad: no browser was found; open {path} in one", err=True)
