"""Positions along the axes of a Jacobian block, written with labels.

An axis of an array is a mixed-radix number: a tuple of digits, most significant first. Each digit takes its
value from a label (an index that runs over ``range(size of the label)``) or stands still at one point.
``Digit(label=3, at=range(1, 5), size=8)`` says: while label 3 runs over 0..3, this digit of size 8 runs over
1..4. Slices, pads and concatenations shift ``at``; reshapes regroup digits; an axis of size 1 has no digits.

`Relabelling` solves the one problem that composition needs: given that two axes are the same axis, express
all labels through fewer, finer ones.
"""

from collections.abc import Iterable, Sequence
from math import gcd, prod
from typing import NamedTuple


class Digit(NamedTuple):
    """One mixed-radix digit: its value is ``at[label]``, or the only element of ``at`` if there is no label."""

    label: int | None
    at: range
    size: int


Axis = tuple[Digit, ...]


class Unrepresentable(Exception):
    """The relation between two axes cannot be written with digits; the caller makes it explicit in the values."""


class Disjoint(Exception):
    """Two axes that must agree never do: the block is zero."""


def whole(label: int, size: int) -> Digit:
    """The digit of ``size`` that follows ``label`` from end to end."""
    return Digit(label, range(size), size)


def point(position: int, size: int) -> Digit:
    return Digit(None, range(position, position + 1), size)


def axis_size(axis: Axis) -> int:
    return prod(digit.size for digit in axis)


def labels_of(axes: Iterable[Axis]) -> list[int]:
    """All labels of ``axes`` in order of first appearance."""
    return list(dict.fromkeys(d.label for axis in axes for d in axis if d.label is not None))


def shifted(axes: Iterable[Axis], by: int) -> tuple[Axis, ...]:
    """``axes`` with every label number raised by ``by``."""
    return tuple(tuple(d if d.label is None else d._replace(label=d.label + by) for d in axis) for axis in axes)


def progression(start: int, step: int, count: int) -> range:
    return range(start, start + step * count, step)


def chain(outer: range, inner: range) -> range:
    """``outer[inner[i]]`` for all i, as a range."""
    return progression(outer.start + outer.step * inner.start, outer.step * inner.step, len(inner))


def meet(first: range, second: range) -> tuple[range, range]:
    """Where two progressions coincide: index ranges i, j with ``first[i[m]] == second[j[m]]``."""
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


def join(first: range, second: range) -> tuple[range, range, range]:
    """The smallest progression that holds both, and the index range of each in it.

    It runs in the direction of ``first``; a lone point takes its direction from the other.
    """
    if first == second:
        return first, range(len(first)), range(len(second))
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


class Relabelling:
    """Labels, and what some of them have turned out to mean in terms of others."""

    def __init__(self, sizes: Sequence[int]):
        self.sizes = list(sizes)
        self._meaning: dict[int, Axis] = {}

    def fresh(self, size: int) -> int:
        self.sizes.append(size)
        return len(self.sizes) - 1

    def resolve(self, axis: Iterable[Digit]) -> Axis:
        """``axis`` written with the labels that are still free."""
        digits: list[Digit] = []
        for digit in axis:
            meaning = None if digit.label is None else self._meaning.get(digit.label)
            if meaning is None:
                digits.append(digit)
                continue
            meaning = self.resolve(meaning)
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
        if at[0] // minor == at[-1] // minor:
            low = progression(at.start % minor, at.step, len(at))
            return point(at[0] // minor, major), Digit(label, low, minor)
        assert label is not None
        if at.step % minor == 0:
            high = progression(at.start // minor, at.step // minor, len(at))
            return Digit(label, high, major), point(at.start % minor, minor)
        if at.step == 1 and at.start % minor == 0 and len(at) % minor == 0:
            count = len(at) // minor
            high_label, low_label = self.fresh(count), self.fresh(minor)
            self._meaning[label] = (whole(high_label, count), whole(low_label, minor))
            return Digit(high_label, progression(at.start // minor, 1, count), major), whole(low_label, minor)
        raise Unrepresentable

    def _equate_digits(self, a: Digit, b: Digit) -> None:
        if a.label is not None and a.label == b.label:
            same = [i for i, (x, y) in enumerate(zip(a.at, b.at, strict=True)) if x == y]
            if len(same) < len(a.at):
                self._restrict(a.label, progression(same[0], 1, 1) if same else range(0), None)
            return
        i, j = meet(a.at, b.at)
        if not i:
            raise Disjoint
        if a.label is None or b.label is None or len(i) == 1:
            shared = None
        elif len(i) == self.sizes[a.label]:
            shared = a.label
        elif len(j) == self.sizes[b.label]:
            shared = b.label
        else:
            shared = self.fresh(len(i))
        # When one label is kept as the shared index, the other is written in its order.
        if shared == a.label and shared is not None:
            i, j = range(len(i)), chain(j, _inverse(i))
        elif shared == b.label and shared is not None:
            i, j = chain(i, _inverse(j)), range(len(j))
        self._restrict(a.label, i, shared)
        self._restrict(b.label, j, shared)

    def _restrict(self, label: int | None, indices: range, shared: int | None) -> None:
        if not indices:
            raise Disjoint
        if label is None or label == shared:
            return
        self._meaning[label] = (Digit(shared, indices, self.sizes[label]),)


def _inverse(permutation: range) -> range:
    """The inverse of a range that visits 0..n-1 once each, upwards or downwards."""
    return permutation if permutation.step == 1 or len(permutation) == 1 else range(len(permutation))[::-1]
