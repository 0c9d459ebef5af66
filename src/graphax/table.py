"""Tables as text."""

from collections.abc import Sequence
from typing import Any


def table(title: str, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table with a title, with numbers aligned right and text aligned left. None is shown as a dash."""
    cells = [[_shown(cell) for cell in row] for row in rows]
    widths = [max([len(name), *(len(row[n]) for row in cells)]) for n, name in enumerate(names)]
    right = [all(isinstance(row[n], int | None) for row in rows) for n in range(len(names))]

    def line(row: Sequence[str]) -> str:
        return "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        ).rstrip()

    return "\n".join([title, line(names), *map(line, cells)])


def _shown(cell: Any) -> str:
    return "–" if cell is None else f"{cell:,}" if isinstance(cell, int) else str(cell)
