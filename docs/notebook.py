"""Runs the notebooks of the documentation without Jupyter.

    python docs/notebook.py

runs all notebooks and inserts what their cells print. The tests also run them, and compare.
"""

import io
import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pages

NOTEBOOKS = tuple(sorted((pages.ROOT / "docs" / "notebooks").glob("*.ipynb")))


def read(path: Path) -> dict[str, Any]:
    """The contents of a notebook."""
    contents: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return contents


def run(path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """Run a notebook in the current folder. Yields each code cell and what it printed."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(read(path)["cells"]):
        if cell["cell_type"] == "code":
            printed = io.StringIO()
            with redirect_stdout(printed):
                exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), names)
            yield cell, printed.getvalue()


def shown(cell: dict[str, Any]) -> str:
    """The output that a code cell shows."""
    return "".join("".join(output.get("text", ())) for output in cell["outputs"])


def write_down(path: Path) -> None:
    """Insert what the cells of a notebook print."""
    contents = read(path)
    with pages.workshop():
        printed = [text for _, text in run(path)]
    code = [cell for cell in contents["cells"] if cell["cell_type"] == "code"]
    for cell, text in zip(code, printed, strict=True):
        output = {"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}
        cell["outputs"] = [output] if text else []
    path.write_text(json.dumps(contents, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for each in NOTEBOOKS:
        write_down(each)
