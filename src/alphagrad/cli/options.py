"""What several commands share: options with their help and completion, and how results are printed."""

import json
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import typer


def _tasks() -> Iterable[str]:
    from ..tasks import TASKS, UNSEEN

    return TASKS | UNSEEN


def _presets() -> Iterable[str]:
    from graphax import PRESETS

    return PRESETS


def _methods() -> Iterable[str]:
    from ..finders.portfolio import FINDERS

    return FINDERS


def _one_of(names: Callable[[], Iterable[str]], *more: str) -> Callable[[str], list[str]]:
    """Completes names, which are found only then: finding them imports what help does not need."""

    def completed(incomplete: str) -> list[str]:
        return [name for name in (*names(), *more) if name.startswith(incomplete)]

    return completed


TargetName = Annotated[
    str,
    typer.Argument(
        help="A task, generated:SEED, or module:function, imported from the current folder, too.",
        metavar="TARGET",
        autocompletion=_one_of(_tasks),
    ),
]
TargetNames = Annotated[
    list[str] | None,
    typer.Argument(
        help="Tasks, generated:SEED, or module:function, imported from the current folder, too.",
        metavar="TARGET",
        autocompletion=_one_of(_tasks),
    ),
]
TaskNames = Annotated[
    list[str] | None,
    typer.Argument(help="Default: all that the paper has.", metavar="TASK", autocompletion=_one_of(_tasks)),
]
Args = Annotated[
    str | None,
    typer.Option(
        help="module:name of a function that returns the tuple of example arguments, or of the tuple.",
        metavar="MODULE:NAME",
    ),
]
Argnums = Annotated[
    str | None,
    typer.Option(help="Arguments to differentiate by, such as 0,2. Default: all made of floats.", metavar="N,N"),
]
Simplify = Annotated[bool, typer.Option("--simplify", help="Remove common subexpressions first.")]
Counting = Annotated[
    str,
    typer.Option(
        help="folded: what is executed; raw: every product of two edges, as the paper counts.",
        metavar="NAME",
        autocompletion=_one_of(tuple, "folded", "raw"),
    ),
]
_WEIGHED = "multiplications, operations, or weights for multiplications and additions, such as 1,0.5"
Minimize = Annotated[
    str,
    typer.Option(help=f"{_WEIGHED}.", metavar="NAME", autocompletion=_one_of(tuple, "multiplications", "operations")),
]
MinimizeAny = Annotated[
    str,
    typer.Option(
        help=f"{_WEIGHED}; peak; or runtime: the fastest on this machine, by a model of it and then by the clock.",
        metavar="NAME",
        autocompletion=_one_of(tuple, "multiplications", "operations", "peak", "runtime"),
    ),
]
Method = Annotated[
    str,
    typer.Option(
        help="auto, presets, greedy, beam, anneal, temper, windows, exact, policy, policy+anneal or policy+beam.",
        metavar="NAME",
        autocompletion=_one_of(_methods),
    ),
]
Start = Annotated[
    str | None,
    typer.Option(
        help="An order to start from: a preset or a saved order.",
        metavar="PRESET_OR_FILE",
        autocompletion=_one_of(_presets),
    ),
]
Orders = Annotated[
    list[str] | None,
    typer.Option(
        "--order",
        help="A preset, a saved order (*.json), or best: what a search finds that starts from the best on record. Can "
        "be given several times. Default: fwd, rev, markowitz and best.",
        metavar="PRESET_OR_FILE",
        autocompletion=_one_of(_presets, "best"),
    ),
]
Budgeted = Annotated[float, typer.Option("--budget", help="Seconds for each search.", metavar="SECONDS")]
Seed = Annotated[int, typer.Option(help="Of all random choices.", metavar="N", min=0)]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr; in a pipe that is a line a minute.")]


def picture_of(what: str) -> Any:
    """The option ``--plot``."""
    return typer.Option("--plot", help=f"Draw {what} (.png, .svg or .pdf).", metavar="FILE.png")


def weights(minimize: str) -> Any:
    """What ``--minimize`` stands for: a name, or a pair of weights."""
    return tuple(minimize.split(",")) if "," in minimize else minimize


def print_json(document: Any) -> None:
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
