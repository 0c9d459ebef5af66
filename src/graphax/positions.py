"""Sequences of positions along an axis: progressions, lists of anything else, and lists known only at run time.

A sequence is a `range` if possible and a `Listed` otherwise, so that equal sequences compare equal. NumPy computes with
lists once, during planning. A `Dynamic` has a name under which its positions are found at run time.
"""

import hashlib
from collections.abc import Hashable
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np


class Listed:
    """Positions in any order, possibly repeated. Lists with the same content are equal."""

    __slots__ = ("_hash", "array")

    def __init__(self, array: np.ndarray):
        self.array = np.ascontiguousarray(array, np.int64)
        self.array.flags.writeable = False
        # Lists with equal hashes are compared in full, so hashing a few positions and the sum is enough.
        some = self.array[:: len(self.array) // 64 + 1]
        self._hash = hash((len(self.array), int(self.array.sum()), some.tobytes()))

    def __len__(self):
        return len(self.array)

    def __getitem__(self, index: int) -> int:
        return int(self.array[index])

    def __hash__(self):
        return self._hash

    def __eq__(self, other):
        if self is other:
            return True
        return isinstance(other, Listed) and self._hash == other._hash and np.array_equal(self.array, other.array)

    def __reduce__(self):
        return Listed, (self.array,)

    def __repr__(self):
        content = hashlib.sha256(self.array.tobytes()).hexdigest()[:16]
        return f"Listed({len(self)} positions from {int(self.array.min())} to {int(self.array.max())}, {content})"


@dataclass(frozen=True)
class Dynamic:
    """Positions that are known only at run time: the list called ``name``, transformed by ``steps`` in turn.

    A step is ``("of", p)``, which maps n to p[n]; ``("at", p)``, which picks the positions at p; or ``("div", n)`` or
    ``("mod", n)``, which split digits.
    """

    length: int
    name: Hashable
    steps: tuple[tuple[str, Any], ...] = ()

    def __len__(self):
        return self.length

    def then(self, step: str, operand: Any) -> "Dynamic":
        return Dynamic(len(operand) if step == "at" else self.length, self.name, (*self.steps, (step, operand)))

    @property
    def names(self) -> frozenset[Hashable]:
        """The names of the lists that are needed at run time."""
        return frozenset({self.name}).union(*(x.names for _, x in self.steps if isinstance(x, Dynamic)))

    def renamed(self, prefix: Hashable) -> "Dynamic":
        """The same positions, with ``prefix`` added to all names so that they differ from other names."""
        steps = [(step, x.renamed(prefix) if isinstance(x, Dynamic) else x) for step, x in self.steps]
        return Dynamic(self.length, (prefix, self.name), tuple(steps))


Positions = range | Listed | Dynamic


def listed(array: Any) -> Positions:
    """Positions from an array, as a range if they are a progression."""
    array = np.asarray(array, np.int64)
    if len(array) == 0:
        return range(0)
    step = int(array[1] - array[0]) if len(array) > 1 else 1
    # Check the end first: few lists that are not progressions end where one would.
    ends = step and array[-1] - array[0] == step * (len(array) - 1)
    if ends and np.array_equal(array, np.arange(len(array)) * step + array[0]):
        return progression(int(array[0]), step, len(array))
    return Listed(array)


def as_array(positions: Positions) -> np.ndarray:
    if isinstance(positions, Listed):
        return positions.array
    assert isinstance(positions, range)
    return np.arange(positions.start, positions.stop, positions.step, dtype=np.int64)


def lowest(positions: Positions) -> int:
    return int(as_array(positions).min()) if isinstance(positions, Listed) else min(positions[0], positions[-1])  # type: ignore[index]


def highest(positions: Positions) -> int:
    return int(as_array(positions).max()) if isinstance(positions, Listed) else max(positions[0], positions[-1])  # type: ignore[index]


def step_of(positions: Positions) -> int:
    """The distance from one position to the next; 1 for a single position."""
    assert isinstance(positions, range)
    return positions.step if len(positions) > 1 else 1


def progression(start: int, step: int, count: int) -> range:
    return range(start, start + step * count, step)


def canonical(positions: Positions) -> Positions:
    """The same positions, written in one way. Equal ranges may have different ends, and steps if they are short."""
    if not isinstance(positions, range) or not positions:
        return positions
    step = positions.step if len(positions) > 1 else 1
    return range(positions[0], positions[-1] + (1 if step > 0 else -1), step)


def chain(outer: Positions, inner: Positions) -> Positions:
    """``outer[inner[i]]`` for all i."""
    if isinstance(outer, range) and isinstance(inner, range):
        return progression(outer.start + outer.step * inner.start, outer.step * inner.step, len(inner))
    if isinstance(outer, Dynamic):
        return outer if inner == range(len(outer)) else outer.then("at", inner)
    if isinstance(inner, Dynamic):
        return inner if outer == range(len(outer)) else inner.then("of", outer)
    return listed(as_array(outer)[as_array(inner)])


def meet(first: Positions, second: Positions) -> tuple[Positions, Positions]:
    """The indices i, j at which two sequences coincide: all pairs with ``first[i[m]] == second[j[m]]``.

    A list that meets a progression keeps its order.
    """
    assert not isinstance(first, Dynamic)
    assert not isinstance(second, Dynamic)
    if isinstance(first, range):
        return _meet_progressions(first, second) if isinstance(second, range) else _found_in(second, first)[::-1]
    if isinstance(second, range):
        return _found_in(first, second)
    left, right = as_array(first), as_array(second)
    order = np.argsort(right, kind="stable")
    begin, end = (np.searchsorted(right[order], left, side) for side in ("left", "right"))
    counts = end - begin
    i = np.repeat(np.arange(len(left)), counts)
    # The matches of each i are consecutive among the sorted positions.
    within = np.arange(len(i)) - np.repeat(np.cumsum(counts) - counts, counts)
    j = order[np.repeat(begin, counts) + within]
    return listed(i), listed(j)


def _found_in(positions: Listed, among: range) -> tuple[Positions, Positions]:
    """The indices of the positions that are in a progression, and their indices within the progression."""
    steps, rest = np.divmod(positions.array - among.start, among.step)
    inside = (rest == 0) & (steps >= 0) & (steps < len(among))
    if inside.all():
        return range(len(positions)), listed(steps)
    return listed(np.flatnonzero(inside)), listed(steps[inside])


def _meet_progressions(first: range, second: range) -> tuple[range, range]:
    if first == second:
        return range(len(first)), range(len(second))
    nowhere = range(0), range(0)
    divisor = gcd(first.step, second.step)
    offset = second.start - first.start
    if offset % divisor:
        return nowhere
    i_step = abs(second.step) // divisor
    i_start = (offset // divisor * pow(first.step // divisor, -1, i_step)) % i_step
    j_start = (first.start + first.step * i_start - second.start) // second.step
    j_step = first.step * i_step // second.step
    lowest = max(0, -(j_start // j_step) if j_step > 0 else -((len(second) - 1 - j_start) // -j_step))
    highest = min(
        (len(first) - 1 - i_start) // i_step,
        (len(second) - 1 - j_start) // j_step if j_step > 0 else j_start // -j_step,
    )
    if highest < lowest:
        return nowhere
    count = highest - lowest + 1
    return (
        progression(i_start + lowest * i_step, i_step, count),
        progression(j_start + lowest * j_step, j_step, count),
    )


def coincide(first: Positions, second: Positions) -> Positions:
    """The indices at which two sequences of the same length have the same position."""
    if isinstance(first, range) and isinstance(second, range):
        # Two lines meet at most once.
        if first == second:
            return range(len(first))
        apart, closing = second.start - first.start, first.step - second.step
        meets = closing and apart % closing == 0 and 0 <= apart // closing < len(first)
        return progression(apart // closing, 1, 1) if meets else range(0)
    return listed(np.flatnonzero(as_array(first) == as_array(second)))


def join(first: Positions, second: Positions) -> tuple[Positions, Positions, Positions] | None:
    """The smallest sequence that contains both, and the indices of each in it; None if a list would have to grow.

    The sequence runs in the direction of ``first``. A single point takes the direction of the other sequence.
    """
    if first == second:
        return first, range(len(first)), range(len(second))
    if not isinstance(first, range) or not isinstance(second, range):
        return None
    step = gcd(first.step if len(first) > 1 else 0, second.step if len(second) > 1 else 0, second.start - first.start)
    if len(first) == len(second) == 1:
        downward = second.start < first.start
    else:
        downward = (first if len(first) > 1 else second).step < 0
    ends = (first[0], first[-1], second[0], second[-1])
    start = max(ends) if downward else min(ends)
    step = -step if downward else step
    hull = progression(start, step, (max(ends) - min(ends)) // abs(step) + 1)

    def index(inner: range) -> range:
        inner_step = inner.step // step if len(inner) > 1 else 1
        return progression((inner.start - start) // step, inner_step, len(inner))

    return hull, index(first), index(second)


def inverse(positions: Positions, size: int) -> tuple[Positions | None, Positions | None]:
    """The index of each of 0, 1, ..., ``size`` - 1 among positions, and whether it occurs (1) or not (0).

    The second result is None if all occur. The first result has an arbitrary index for numbers that do not occur, and
    is None if a number occurs twice.
    """
    if positions == range(size):
        return positions, None
    where = as_array(positions)
    table, inside = np.zeros(size, np.int64), np.zeros(size, np.int64)
    table[where], inside[where] = np.arange(len(where)), 1
    if np.count_nonzero(inside) < len(where):
        return None, None
    return listed(table) if len(where) > 1 else Listed(table), None if len(where) == size else Listed(inside)


def inverse_permutation(indices: Positions, size: int) -> Positions | None:
    """The index of each of 0, 1, ..., ``size`` - 1 among indices; None unless each occurs exactly once."""
    if len(indices) != size or isinstance(indices, Dynamic):
        return None
    found, inside = inverse(indices, size)
    return found if inside is None else None
