"""Options that several commands share, with their help and completion."""

from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer

# The base class of errors about options and arguments. Some versions of typer contain their own click, so it cannot be
# imported from click.
UsageError: Any = typer.BadParameter.__base__
TASKS = ("alphagrad.tasks:TASKS", "alphagrad.tasks:UNSEEN")
PRESETS = ("graphax:PRESETS",)


def _one_of(names: tuple[str, ...]) -> Callable[[str], list[str]]:
    """Completes names. ``module:name`` is a list of names elsewhere, imported only on completion."""

    def completed(incomplete: str) -> list[str]:
        known = [name for entry in names for name in (_listed(entry) if ":" in entry else [entry])]
        return [name for name in known if name.startswith(incomplete)]

    return completed


def _listed(entry: str) -> list[str]:
    module, _, name = entry.partition(":")
    return list(getattr(import_module(module), name))


def option(metavar: str, text: str, *names: str, flag: str | None = None, **more: Any) -> Any:
    """An option with a value, and the names that complete it."""
    complete = _one_of(names) if names else None
    return typer.Option(*[flag] if flag else [], help=text, metavar=metavar, autocompletion=complete, **more)


def _target(metavar: str, text: str) -> Any:
    return typer.Argument(help=text, metavar=metavar, autocompletion=_one_of(TASKS))


_OWN = "generated:SEED, or module:function. Modules are also imported from the current folder."
TargetName = Annotated[str, _target("TARGET", f"A task, {_OWN}")]
TargetNames = Annotated[list[str] | None, _target("TARGET", f"Tasks, {_OWN}")]
TaskNames = Annotated[list[str] | None, _target("TASK", "Default: all tasks of the paper.")]
_ARGS = "module:name of the tuple of example arguments, or of a function that returns it."
Args = Annotated[str | None, option("MODULE:NAME", _ARGS)]
_ARGNUMS = "Arguments to differentiate with respect to, such as 0,2. Default: all float arguments."
Argnums = Annotated[str | None, option("N,N", _ARGNUMS)]
Simplify = Annotated[bool, typer.Option("--simplify", help="Remove common subexpressions first.")]
_COUNTING = "folded counts executed operations; raw counts every product of two edges, as the paper does."
Counting = Annotated[str, option("NAME", _COUNTING, "folded", "raw")]
_WEIGHED = "multiplications, operations, or weights for multiplications and additions, such as 1,0.5"
Minimize = Annotated[str, option("NAME", f"{_WEIGHED}.", "multiplications", "operations")]
_ANY = f"{_WEIGHED}; peak; or runtime: the fastest order on this machine, ranked by a model and then measured."
MinimizeAny = Annotated[str, option("NAME", _ANY, "multiplications", "operations", "peak", "runtime")]
_METHODS = "auto, presets, greedy, beam, anneal, temper, windows, exact, policy, policy+anneal or policy+beam."
Method = Annotated[str, option("NAME", _METHODS, "alphagrad.finders.portfolio:FINDERS")]
_START = "An order to start from: a preset or a saved order."
Start = Annotated[str | None, option("PRESET_OR_FILE", _START, *PRESETS)]
_ORDERS = (
    "A preset, a saved order (*.json), or best: the result of a search that starts from the best order on record. "
    "Repeatable. Default: fwd, rev, markowitz and best."
)
Orders = Annotated[list[str] | None, option("PRESET_OR_FILE", _ORDERS, *PRESETS, "best", flag="--order")]
Budgeted = Annotated[float, option("SECONDS", "Seconds for each search.", flag="--budget")]
Seed = Annotated[int, option("N", "The seed of all random choices.", min=0)]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress on stderr.")]


def picture_of(what: str) -> Any:
    """The option ``--plot``."""
    return option("FILE.png", f"Draw {what} (.png, .svg or .pdf).", flag="--plot")


def weights(minimize: str) -> Any:
    """The objective that ``--minimize`` names, or a pair of weights."""
    return tuple(minimize.split(",")) if "," in minimize else minimize


def check_positive(**options: float | None) -> None:
    """Raise an error for limits that are not positive."""
    from ..errors import SearchError

    for name, value in options.items():
        if value is not None and not 0 < value < float("inf"):
            raise SearchError(f"--{name} {value:g}: it must be more than zero")
