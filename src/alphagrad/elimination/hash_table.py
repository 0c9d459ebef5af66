"""The table of structures as kernels see it, with open addressing. Rows are added when a kernel misses them."""

from typing import NamedTuple

import numpy as np

from .compiling import compiled, inlined
from .random_numbers import MIX
from .structures import StructureTable

PRODUCT, SUM = 0, 1


class HashTable(NamedTuple):
    """Products and sums of structures, by open addressing, and data about each structure."""

    keys: np.ndarray
    result: np.ndarray
    multiplications: np.ndarray
    additions: np.ndarray
    stored: np.ndarray
    signature: np.ndarray
    missing: np.ndarray


def _empty_table(rows: int, structures: int) -> HashTable:
    return HashTable(
        keys=np.zeros(rows, np.uint64),
        result=np.zeros(rows, np.int32),
        multiplications=np.zeros(rows, np.int64),
        additions=np.zeros(rows, np.int64),
        stored=np.zeros(structures, np.int64),
        signature=np.zeros(structures, np.uint64),
        missing=np.zeros(3, np.int64),
    )


@inlined
def table_key(operation, left, right):
    return (
        (np.uint64(operation) << np.uint64(62)) + (np.uint64(left) << np.uint64(31)) + np.uint64(right) + np.uint64(1)
    )


@inlined
def find(table, operation, left, right):
    """The row of a product or sum, or -1 if it is not known yet."""
    key = table_key(operation, left, right)
    mask = np.uint64(len(table.keys) - 1)
    row = (key * MIX >> np.uint64(20)) & mask
    while table.keys[row] != key:
        if table.keys[row] == 0:
            table.missing[0], table.missing[1], table.missing[2] = operation, left, right
            return np.int64(-1)
        row = (row + np.uint64(1)) & mask
    return np.int64(row)


@compiled
def insert(table, operation, left, right, result, multiplications, additions):
    key = table_key(operation, left, right)
    mask = np.uint64(len(table.keys) - 1)
    row = (key * MIX >> np.uint64(20)) & mask
    while table.keys[row] != 0:
        row = (row + np.uint64(1)) & mask
    table.keys[row] = key
    table.result[row] = result
    table.multiplications[row] = multiplications
    table.additions[row] = additions


class HashedStructures(StructureTable):
    """Structures with their coefficients, and the products and sums that kernels have requested so far."""

    def __init__(self, counting: str):
        super().__init__(coefficients=True)
        self._counting = counting
        self._rows: list[tuple[int, ...]] = []
        self._table = _empty_table(rows=1 << 10, structures=1 << 6)
        self._written, self._described = 0, 1

    def learn(self) -> None:
        """Compute the product or sum that a kernel missed."""
        operation, left, right = (int(x) for x in self._table.missing)
        if operation == PRODUCT:
            product = self.product(left, right)
            found = product.result, product.counted(self._counting), product.additions
        else:
            total = self.sum(left, right)
            found = total.equal, 0, total.equal_additions
        self._rows.append((operation, left, right, *found))

    @property
    def table(self) -> HashTable:
        """The table for kernels, with everything known so far. A table that has to grow is rebuilt."""
        rows, structures = len(self._table.keys), len(self._table.stored)
        crowded, full = 2 * len(self._rows) > rows, len(self) > structures
        if crowded or full:
            self._table = _empty_table(4 * rows if crowded else rows, 2 * structures if full else structures)
            self._written, self._described = 0, 1
        for number, structure in self.numbered(self._described):
            self._table.stored[number] = structure.stored
            self._table.signature[number] = np.random.default_rng(number - 1).integers(1 << 63, dtype=np.uint64) * 2 + 1
        for row in self._rows[self._written :]:
            insert(self._table, *row)
        self._written, self._described = len(self._rows), len(self)
        return self._table
