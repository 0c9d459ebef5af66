"""What several commands share: options, where output may go, and how data is printed."""

import json
import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]
TargetName = Annotated[
    str, typer.Argument(help="A task, generated:SEED, or module:function, imported from the current folder too.")
]
Args = Annotated[
    str | None,
    typer.Option(help="module:name of a function that returns the tuple of example arguments, or of the tuple."),
]
Minimize = Annotated[
    str, typer.Option(help="multiplications, operations, or weights for multiplications and additions: 1,0.5")
]
Counting = Annotated[str, typer.Option(help="folded: what is executed; raw: every product of two edges.")]
PICTURES = (".png", ".svg", ".pdf")


def picture_of(what: str) -> Any:
    """The option ``--plot``."""
    return typer.Option("--plot", help=f"Draw {what} (.png, .svg or .pdf).", metavar="FILE.png")


def check_writable(option: str, path: Path, suffixes: Sequence[str]) -> None:
    """Say that a file cannot be written before time is spent on what is to be in it."""
    from .errors import SearchError

    if path.suffix not in suffixes:
        raise SearchError(f"{option} {path}: give it a name that ends in {' or '.join(suffixes)}")
    if not path.parent.is_dir():
        raise SearchError(f"{option} {path}: there is no folder {path.parent}; make it, or name another")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise SearchError(f"{option} {path}: it cannot be written; name another file")


def check_plot(path: Path | None) -> None:
    """Say that a picture cannot be drawn before there is anything to draw."""
    if path is not None:
        import_module("alphagrad.plot")
        check_writable("--plot", path, PICTURES)


def weights(minimize: str) -> Any:
    """What ``--minimize`` stands for: a name, or a pair of weights."""
    return tuple(minimize.split(",")) if "," in minimize else minimize


def print_json(document: Any) -> None:
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
