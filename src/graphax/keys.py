"""Entries of lists as single numbers, called **keys**, and comparisons between millions of them.

Sorting takes most of the planning time with long lists, so only lists that will be changed are sorted. Whether to
change a list is estimated from a **sketch**: the keys whose hash begins with a number of zeros. Equal keys have equal
hashes, so a sketch has all repetitions of a key or none, and the sketches of two lists agree on which keys they keep.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# Sketches have about this many keys. For lists that are not longer, they are exact.
_SKETCHED = 1 << 13
_PIECE = 1 << 15
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
# A table replaces sorting if it is at most this many times as long as the list.
_SPARSE_TABLE = 4
# A list with fewer ascending runs than this is merged instead of sorted from scratch.
_FEW_RUNS = 64


def keys_of(columns: Sequence[np.ndarray], sizes: Sequence[int]) -> np.ndarray:
    """One number per row of a table, with the same ordering as the rows."""
    keys, count = columns[0], sizes[0]
    for column, size in zip(columns[1:], sizes[1:], strict=True):
        if count * size > np.iinfo(np.int64).max:
            present, keys = np.unique(keys, return_inverse=True)
            count = len(present)
        keys, count = keys * size + column, count * size
    return keys


class Sketch(NamedTuple):
    """The keys of a list whose hash begins with ``level`` zeros, sorted."""

    level: int
    keys: np.ndarray

    @property
    def distinct(self) -> float:
        """The fraction of the list that would remain without duplicates."""
        if len(self.keys) == 0:
            return 1.0
        return (1 + np.count_nonzero(self.keys[1:] != self.keys[:-1])) / len(self.keys)

    def coinciding(self, other: "Sketch") -> float:
        """The fraction of this list that the other list contains as well."""
        level = max(self.level, other.level)
        ours, theirs = _with_zeros(self.keys, level), _with_zeros(other.keys, level)
        if len(ours) == 0 or len(theirs) == 0:
            return 0.0
        found = np.minimum(np.searchsorted(theirs, ours), len(theirs) - 1)
        return float(np.mean(theirs[found] == ours))


def sketch(keys: np.ndarray) -> Sketch:
    """The sketch of a list of keys."""
    level = (len(keys) // _SKETCHED).bit_length()
    return Sketch(level, np.sort(_with_zeros(keys, level)))


def _with_zeros(keys: np.ndarray, level: int) -> np.ndarray:
    if level == 0:
        return keys
    # Hashing pieces that fit into a cache is several times faster than hashing all keys at once.
    pieces = (keys[start : start + _PIECE] for start in range(0, len(keys), _PIECE))
    return np.concatenate([keys[:0], *(piece[_hashes(piece) >> np.uint64(64 - level) == 0] for piece in pieces)])


def _hashes(keys: np.ndarray) -> np.ndarray:
    mixed = keys.astype(np.uint64)
    mixed ^= mixed >> np.uint64(29)
    mixed *= _MULTIPLIER
    return mixed


def distinct(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The sorted distinct keys, the index of the first occurrence of each, and per key its index among them."""
    top = int(keys.max()) + 1
    if top <= _SPARSE_TABLE * len(keys):
        seen = np.zeros(top, bool)
        seen[keys] = True
        entries = np.flatnonzero(seen)
        groups = (np.cumsum(seen) - 1)[keys]
        first = np.empty(len(entries), np.int64)
        first[groups[::-1]] = np.arange(len(keys))[::-1]
        return entries, first, groups
    order = in_order(keys)
    ordered = keys[order]
    new = np.ones(len(keys), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    groups = np.empty(len(keys), np.int64)
    groups[order] = np.cumsum(new) - 1
    return ordered[new], order[new], groups


def in_order(keys: np.ndarray) -> np.ndarray:
    """The permutation that stably sorts keys, none of which may be negative."""
    bits = len(keys).bit_length()
    runs = np.count_nonzero(keys[1:] < keys[:-1])
    if runs < _FEW_RUNS or int(keys.max()).bit_length() + bits > 63:
        return np.argsort(keys, kind="stable")
    # Sorting numbers is faster than sorting indices, so each key carries its index.
    carried = keys << bits
    carried |= np.arange(len(keys))
    carried.sort()
    carried &= (1 << bits) - 1
    return carried
