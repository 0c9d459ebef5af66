"""Options that several commands share, with their help and completion."""

from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer

# The base of what is raised about options and arguments. Some versions of typer have a click of their own, so it cannot
# be imported from click.
UsageError: Any = typer.BadParameter.__base__
TASKS = ("alphagrad.tasks:TASKS", "alphagrad.tasks:UNSEEN")
PRESETS = ("graphax:PRESETS",)


def _one_of(names: tuple[str, ...]) -> Callable[[str], list[str]]:
    """Completes names; ``module:name`` stands for those that are listed there, and is imported only then."""

    def completed(incomplete: str) -> list[str]:
        known = [name for entry in names for name in (_listed(entry) if ":" in entry else [entry])]
        return [name for name in known if name.startswith(incomplete)]

    return completed


def _listed(entry: str) -> list[str]:
    module, _, name = entry.partition(":")
    return list(getattr(import_module(module), name))


def _named(metavar: str, text: str, *names: str, option: str | None = None) -> Any:
    """An option that is one of some names, or something else of the kind."""
    return typer.Option(*[option] if option else [], help=text, metavar=metavar, autocompletion=_one_of(names))


def _target(metavar: str, text: str) -> Any:
    return typer.Argument(help=text, metavar=metavar, autocompletion=_one_of(TASKS))


_OWN = "generated:SEED, or module:function, imported from the current folder, too."
TargetName = Annotated[str, _target("TARGET", f"A task, {_OWN}")]
TargetNames = Annotated[list[str] | None, _target("TARGET", f"Tasks, {_OWN}")]
TaskNames = Annotated[list[str] | None, _target("TASK", "Default: all that the paper has.")]
_ARGS = "module:name of a function that returns the tuple of example arguments, or of the tuple."
Args = Annotated[str | None, typer.Option(help=_ARGS, metavar="MODULE:NAME")]
_ARGNUMS = "Arguments to differentiate by, such as 0,2. Default: all made of floats."
Argnums = Annotated[str | None, typer.Option(help=_ARGNUMS, metavar="N,N")]
Simplify = Annotated[bool, typer.Option("--simplify", help="Remove common subexpressions first.")]
_COUNTING = "folded: what is executed; raw: every product of two edges, as the paper counts."
Counting = Annotated[str, _named("NAME", _COUNTING, "folded", "raw")]
_WEIGHED = "multiplications, operations, or weights for multiplications and additions, such as 1,0.5"
Minimize = Annotated[str, _named("NAME", f"{_WEIGHED}.", "multiplications", "operations")]
_ANY = f"{_WEIGHED}; peak; or runtime: the fastest on this machine, by a model of it and then by the clock."
MinimizeAny = Annotated[str, _named("NAME", _ANY, "multiplications", "operations", "peak", "runtime")]
_METHODS = "auto, presets, greedy, beam, anneal, temper, windows, exact, policy, policy+anneal or policy+beam."
Method = Annotated[str, _named("NAME", _METHODS, "alphagrad.finders.portfolio:FINDERS")]
_START = "An order to start from: a preset or a saved order."
Start = Annotated[str | None, _named("PRESET_OR_FILE", _START, *PRESETS)]
_ORDERS = (
    "A preset, a saved order (*.json), or best: what a search finds that starts from the best on record. Can be given "
    "several times. Default: fwd, rev, markowitz and best."
)
Orders = Annotated[list[str] | None, _named("PRESET_OR_FILE", _ORDERS, *PRESETS, "best", option="--order")]
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


def check_positive(**options: float | None) -> None:
    """Refuse limits that are not more than zero."""
    from ..errors import SearchError

    for name, value in options.items():
        if value is not None and not 0 < value < float("inf"):
            raise SearchError(f"--{name} {value:g}: it must be more than zero")
