"""What several commands share: options, and how data is printed."""

import json
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


def weights(minimize: str) -> Any:
    """What ``--minimize`` stands for: a name, or a pair of weights."""
    return tuple(minimize.split(",")) if "," in minimize else minimize


def print_json(document: Any) -> None:
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
