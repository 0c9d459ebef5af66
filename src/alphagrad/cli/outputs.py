"""Where output may go, which is found out before there is any."""

import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import SearchError

PICTURES = (".png", ".svg", ".pdf")


def check_writable(option: str, path: Path, suffixes: Sequence[str]) -> None:
    """Refuse a file that cannot be written."""
    if path.suffix not in suffixes:
        raise SearchError(f"{option} {path}: give it a name that ends in {' or '.join(suffixes)}")
    if not path.parent.is_dir():
        raise SearchError(f"{option} {path}: there is no folder {path.parent}; make it, or name another")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise SearchError(f"{option} {path}: it cannot be written; name another file")


def check_folder(option: str, path: Path) -> None:
    """Refuse a folder that is a file, or that can neither be written to nor made."""
    there = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    if not there.is_dir():
        raise SearchError(f"{option} {path}: {'it' if there == path else there} is a file; name a folder")
    if not os.access(there, os.W_OK):
        raise SearchError(f"{option} {path}: it cannot be written to; name another folder")


def check_plot(path: Path | None) -> None:
    """Refuse a picture that cannot be drawn, for want of matplotlib, or not be written."""
    if path is not None:
        import_module("alphagrad.plot")
        check_writable("--plot", path, PICTURES)


def save_picture(drawing: tuple[Any, Any], path: Path) -> None:
    """Write what functions of `alphagrad.plot` return, fine enough for print."""
    drawing[0].savefig(path, dpi=200)
