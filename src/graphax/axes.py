"""Positions along the axes of a Jacobian block, written with labels.

An axis of an array is a mixed-radix number: a tuple of digits, most significant first. Each digit takes its value from
a label (an index that runs over ``range(size of the label)``) or stays at one point. ``Digit(label=3, at=range(1, 5),
size=8)`` means: while label 3 runs over 0..3, this digit of size 8 runs over 1..4. Slices, pads and concatenations
shift ``at``; reshapes regroup digits; an axis of size 1 has no digits. Where an array of indices picks entries, ``at``
is a list, and several values of the label may have the same position. The list may be known only at run time.

`Relabelling` solves the one problem that composition needs: given that two axes are the same axis, it expresses all
labels through fewer, finer ones.
"""

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from .positions import (
    Dynamic,
    Listed,
    Positions,
    as_array,
    chain,
    coincide,
    inverse,
    inverse_permutation,
    listed,
    meet,
    progression,
)


class Digit(NamedTuple):
    """One mixed-radix digit: its value is ``at[label]``, or the only element of ``at`` if there is no label."""

    label: int | None
    at: Positions
    size: int


Axis = tuple[Digit, ...]


class Unrepresentable(Exception):
    """The relation between two axes cannot be written with digits. The caller makes it explicit in the values."""


class Disjoint(Exception):
    """Two axes that must agree never do: the block is zero."""


def whole(label: int, size: int) -> Digit:
    """The digit of ``size`` that follows ``label`` from end to end."""
    return Digit(label, range(size), size)


def point(position: int, size: int) -> Digit:
    return Digit(None, range(position, position + 1), size)


def axis_along(label: Any, at: Positions, size: int) -> Axis:
    """An axis of ``size`` on which a label runs over the positions ``at``."""
    if size == 1:
        return ()
    return (Digit(None if len(at) == 1 else label, at, size),)


def axis_size(axis: Axis) -> int:
    return prod(digit.size for digit in axis)


def labels_of(axes: Iterable[Axis]) -> list[int]:
    """All labels of ``axes`` in order of first appearance."""
    return list(dict.fromkeys(d.label for axis in axes for d in axis if d.label is not None))


def shifted(axes: Iterable[Axis], by: int) -> tuple[Axis, ...]:
    """``axes`` with every label number raised by ``by``."""
    return tuple(tuple(d if d.label is None else d._replace(label=d.label + by) for d in axis) for axis in axes)


def flat_positions(
    axes: Iterable[Axis],
    labels: Sequence[int],
    sizes: Sequence[int],
    positions_of: Callable[[Positions], Any] = as_array,
) -> Any:
    """The flat position along ``axes``, taken as one axis, for each combination of values of ``labels``."""
    position: Any = np.zeros((1,) * len(sizes), np.int64)
    for label, at, size in (digit for axis in axes for digit in axis):
        along = [-1 if n == label else 1 for n in labels]
        position = position * size + positions_of(at).reshape(along)
    return (position + np.zeros(sizes, np.int64)).ravel()


class Relabelling:
    """Labels, and the known meanings of some labels in terms of others.

    With ``listing``, a label whose positions are split remains a single label, and its digits follow lists. This form
    also works where the label runs through a window of another axis, which has no digits.
    """

    def __init__(self, sizes: Sequence[int], listing: bool = False):
        self.sizes, self.listing = list(sizes), listing
        self._meaning: dict[int, Axis] = {}
        self.guards: list[Digit] = []

    def fresh(self, size: int) -> int:
        self.sizes.append(size)
        return len(self.sizes) - 1

    def resolve(self, axis: Iterable[Digit], within: frozenset[int | None] = frozenset()) -> Axis:
        """``axis`` written with the labels that are still free. ``within`` are the labels that it is the meaning of."""
        digits: list[Digit] = []
        for digit in axis:
            meaning = None if digit.label is None else self._meaning.get(digit.label)
            if meaning is None:
                digits.append(digit)
                continue
            if digit.label in within:
                raise Unrepresentable
            meaning = self.resolve(meaning, within | {digit.label})
            if len(meaning) == 1:
                digits.append(Digit(meaning[0].label, chain(digit.at, meaning[0].at), digit.size))
            elif digit.at == range(digit.size):
                digits.extend(meaning)
            else:
                raise Unrepresentable
        return tuple(digits)

    def equate(self, first: Axis, second: Axis) -> None:
        """Make two axes of the same size one axis."""
        left, right = list(self.resolve(first)), list(self.resolve(second))
        while left:
            a, b = left.pop(), right.pop()
            if a.size > b.size:
                high, a = self.split(a, b.size)
                left.append(high)
            elif b.size > a.size:
                high, b = self.split(b, a.size)
                right.append(high)
            self._equate_digits(a, b)
            left, right = list(self.resolve(left)), list(self.resolve(right))

    def refine(self, axis: Axis, radices: Sequence[int]) -> Axis:
        """``axis`` with its digits split wherever ``radices`` has smaller ones."""
        digits, wanted, result = list(self.resolve(axis)), list(radices), []
        while digits:
            digit, radix = digits.pop(), wanted.pop()
            if digit.size > radix:
                high, digit = self.split(digit, radix)
                digits = [*self.resolve(digits), high]
            elif digit.size < radix:
                if radix % digit.size:
                    raise Unrepresentable
                wanted.append(radix // digit.size)
            result.append(digit)
        return self.resolve(reversed(result))

    def split(self, digit: Digit, minor: int) -> tuple[Digit, Digit]:
        """``digit`` as two: one of size ``digit.size // minor`` and one of size ``minor``."""
        label, at, size = digit
        major, rest = divmod(size, minor)
        if rest:
            raise Unrepresentable
        if isinstance(at, Listed):
            return Digit(label, listed(at.array // minor), major), Digit(label, listed(at.array % minor), minor)
        if isinstance(at, Dynamic):
            return Digit(label, at.then("div", minor), major), Digit(label, at.then("mod", minor), minor)
        if at[0] // minor == at[-1] // minor:
            low = progression(at.start % minor, at.step, len(at))
            return point(at[0] // minor, major), Digit(label, low, minor)
        assert label is not None
        if at.step % minor == 0:
            high = progression(at.start // minor, at.step // minor, len(at))
            return Digit(label, high, major), point(at.start % minor, minor)
        if at.step == 1 and at.start % minor == 0 and len(at) % minor == 0 and not self.listing:
            count = len(at) // minor
            high_label, low_label = self.fresh(count), self.fresh(minor)
            self._meaning[label] = (whole(high_label, count), whole(low_label, minor))
            return Digit(high_label, progression(at.start // minor, 1, count), major), whole(low_label, minor)
        return self.split(Digit(label, Listed(as_array(at)), size), minor)

    def _equate_digits(self, a: Digit, b: Digit) -> None:
        if isinstance(a.at, Dynamic) or isinstance(b.at, Dynamic):
            self._equate_dynamic(a, b)
            return
        if a.label is not None and a.label == b.label:
            same = coincide(a.at, b.at)
            if len(same) < len(a.at):
                self._restrict(a.label, same, None if len(same) == 1 else self.fresh(len(same)))
            return
        i, j = meet(a.at, b.at)
        if not len(i):
            raise Disjoint
        shared = None
        # When one label is kept as the shared index, the other is written in its order.
        if a.label is not None and len(i) > 1 and (back := inverse_permutation(i, self.sizes[a.label])):
            shared, i, j = a.label, range(len(i)), chain(j, back)
        elif b.label is not None and len(i) > 1 and (back := inverse_permutation(j, self.sizes[b.label])):
            shared, i, j = b.label, chain(i, back), range(len(j))
        elif len(i) > 1:
            shared = self.fresh(len(i))
        self._restrict(a.label, i, shared)
        self._restrict(b.label, j, shared)

    def _equate_dynamic(self, a: Digit, b: Digit) -> None:
        """Equate a digit whose positions are known only at run time with another digit, which then follows it.

        Positions that the other digit lacks are found at run time: a guard is 1 where the position exists.
        """
        if a == b:
            return
        if not isinstance(a.at, Dynamic):
            a, b = b, a
        if a.label == b.label or isinstance(b.at, Dynamic):
            raise Unrepresentable
        indices, inside = inverse(b.at, b.size)
        if indices is None:
            raise Unrepresentable
        if inside is not None:
            self.guards.append(Digit(a.label, chain(inside, a.at), 2))
        self._restrict(b.label, chain(indices, a.at), a.label)

    def _restrict(self, label: int | None, indices: Positions, shared: int | None) -> None:
        if not len(indices):
            raise Disjoint
        if label is None or label == shared:
            return
        self._meaning[label] = (Digit(shared, indices, self.sizes[label]),)
