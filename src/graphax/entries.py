"""The positions of the entries of a Jacobian block, sorted and without duplicates. No values are needed."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import Any

import numpy as np

from .axes import flat_positions
from .positions import Dynamic
from .structure import Recast, Structure, without_lists
from .terms import AnyStructure, terms_of

# The largest number of rows and columns of a picture in text.
_ROWS, _COLUMNS = 24, 48


@dataclass(frozen=True, eq=False)
class Sparsity:
    """The entries of a Jacobian that can differ from zero.

    Attributes:
        out_shape, inp_shape: the shapes of the output and of the input. Entries are positions in the matrix with both
            sides flattened.
        rows, columns: the positions of the entries, row by row.
        groups: for each number that the terms store or repeat, the index of the entry that it is added to; None if
            every number is an entry of its own, in this order.
    """

    out_shape: tuple[int, ...]
    inp_shape: tuple[int, ...]
    rows: np.ndarray
    columns: np.ndarray
    groups: np.ndarray | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix."""
        return prod(self.out_shape), prod(self.inp_shape)

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return len(self.rows)

    @cached_property
    def offsets(self) -> np.ndarray:
        """The diagonals that have entries: column minus row, ascending."""
        return np.unique(self.columns - self.rows)

    @cached_property
    def row_starts(self) -> np.ndarray:
        """The index of the first entry of each row, followed by the number of entries."""
        return np.concatenate([[0], np.cumsum(np.bincount(self.rows, minlength=self.shape[0]))])

    def spy(self, axes: Any = None, **style: Any) -> Any:
        """Draw the entries with matplotlib, as `matplotlib.axes.Axes.spy` draws a matrix; returns the axes."""
        if axes is None:
            from matplotlib.figure import Figure

            axes = Figure(layout="constrained").subplots()
        rows, columns = self.shape
        axes.plot(self.columns, self.rows, **({"linestyle": "", "marker": "s", "markersize": 2} | style))
        axes.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5), aspect="equal")
        axes.xaxis.tick_top()
        return axes

    def __repr__(self):
        rows, columns = self.shape
        share = self.nnz / max(1, rows * columns)
        title = f"Sparsity({rows}×{columns}, {self.nnz:,} entries, {share:.2g} of all)"
        return "\n".join([title, *self.picture()])

    def picture(self) -> list[str]:
        """The matrix as lines of text, with a square for every entry or for every region that has entries."""
        rows, columns = self.shape
        height, width = min(rows, _ROWS), min(columns, _COLUMNS)
        drawn = np.full((height, width), "·")
        drawn[self.rows * height // max(1, rows), self.columns * width // max(1, columns)] = "■"
        return ["".join(row) for row in drawn]


def known_entries(structure: Structure) -> Recast:
    """How to recast a structure so that axes with run-time positions get labels of their own."""
    return without_lists(structure, (Dynamic,))


@lru_cache(64)
def sparsity_of(structure: AnyStructure) -> Sparsity:
    """The entries of a structure. Along axes with run-time positions, these are all possible entries."""
    terms = [known_entries(term).structure for term in terms_of(structure) if term.scale != 0.0]
    out_shape, inp_shape = structure.out_shape, structure.inp_shape
    columns = prod(inp_shape)
    places = [flat_positions(term.out + term.inp, range(len(term.sizes)), term.sizes) for term in terms]
    keys, groups = np.concatenate([np.zeros(0, np.int64), *places]), None
    if not np.all(keys[1:] > keys[:-1]):
        keys, groups = np.unique(keys, return_inverse=True)
    return Sparsity(out_shape, inp_shape, *np.divmod(keys, max(1, columns)), groups)
