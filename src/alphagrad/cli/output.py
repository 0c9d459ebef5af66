"""Output of commands: results, files whose paths are checked before long work starts, and interruptions."""

import json
import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

from ..errors import SearchError

PICTURES = (".png", ".svg", ".pdf")
# The exit code that shells use for interrupted programs.
INTERRUPTED = 130


def answer(as_json: bool, document: Any, text: object) -> None:
    """Print a result: as JSON or as text."""
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False) if as_json else text)


def interrupted(kept: str) -> typer.Exit:
    """Raised after an interruption, once all results so far are printed. Says which of them are kept."""
    typer.echo(f"alphagrad: interrupted; {kept}", err=True)
    return typer.Exit(INTERRUPTED)


def check_writable(option: str, path: Path | None, suffixes: Sequence[str]) -> None:
    """Raise an error if a file cannot be written."""
    if path is None:
        return
    if path.suffix not in suffixes:
        raise SearchError(f"{option} {path}: give it a name that ends in {' or '.join(suffixes)}")
    if not path.parent.is_dir():
        raise SearchError(f"{option} {path}: there is no folder {path.parent}; create it, or name another")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise SearchError(f"{option} {path}: it cannot be written; name another file")


def check_folder(option: str, path: Path | None) -> None:
    """Raise an error if a folder is a file, or can neither be written to nor created."""
    if path is None:
        return
    there = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    if not there.is_dir():
        raise SearchError(f"{option} {path}: {'it' if there == path else there} is a file; name a folder")
    if not os.access(there, os.W_OK):
        raise SearchError(f"{option} {path}: it cannot be written to; name another folder")


def check_plot(path: Path | None) -> None:
    """Raise an error if a picture cannot be drawn, because matplotlib is missing, or cannot be written."""
    if path is not None:
        import_module("alphagrad.plot")
        check_writable("--plot", path, PICTURES)


def save_plot(drawing: tuple[Any, Any], path: Path) -> None:
    """Write a figure of `alphagrad.plot`, at a resolution fit for print."""
    drawing[0].savefig(path, dpi=200)
