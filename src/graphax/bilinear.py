"""Lower bounds on the multiplications of a group of vertices, by ranks of bilinear forms.

Let a group of intermediate vertices be convex: a path that leaves it never returns. Take the numbers x on the edges
that enter the group and the numbers y on the edges that leave it as unknowns, and every other number as a constant. A
path has at most one x and one y, so the Jacobian is bilinear in the two, up to linear terms. Only eliminations in the
group multiply an x by a y: any other vertex has all x and y of a path on one of its sides. Sums and products with
constants are linear, so the multiplications in the group are at least the dimension of the space that the forms span.
This holds for every order, in raw and in folded counting.

Elimination multiplies number by number. A left factor holds only y that follow one element of the group, unless numbers
of several elements are added up first, which happens where the right factor is the same for all of them. So the y fall
into classes that no left factor mixes, and the x into classes that no right factor mixes. The dimensions of all pairs
of classes add up.

A dimension is a rank at random points, which is never too high. Values that may be rounding errors count as zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from .axes import flat_positions
from .terms import AnyStructure, terms_of

if TYPE_CHECKING:
    from .graph import ComputationGraph

# Singular values below this share of the largest one count as zero; so do sums below this share of their summands.
_ZERO, _CANCELLED = 1e-7, 1e-9
# Rows of forms are left out if they are smaller than this relative to the summands that they are made of.
_FAINT = 1e-5
# The largest number of forms whose rank is computed. Of more forms, this many random combinations are used; they span
# no more.
_MOST_FORMS = 512
# The largest number of (unknown, end of the graph, element) combinations that are followed to tell classes apart.
_MOST_TAGS = 1 << 22
# The work of one such combination, and of setting up a rank, in operations on ranks.
_TAG, _RANK = 32, 1 << 18


@dataclass(frozen=True, eq=False)
class Entries:
    """The entries of a block, listed individually.

    Attributes:
        rows, columns: the position of each entry in the flattened output and input.
        numbers: the index of each entry among the numbers of the block, or -1 if the entry is known.
        known: the value of each known entry.
        count: the number of numbers in the block.
    """

    rows: np.ndarray
    columns: np.ndarray
    numbers: np.ndarray
    known: np.ndarray
    count: int


@lru_cache(1 << 12)
def entries_of(structure: AnyStructure, raw: bool = False) -> Entries:
    """The entries of a structure. Raw counting treats a known number like any other, unless the term only renames."""
    parts, count = [], 0
    for term in terms_of(structure):
        labels, sizes = range(len(term.sizes)), term.sizes
        rows, columns = (flat_positions(axes, labels, sizes) for axes in (term.out, term.inp))
        if term.scale is not None and raw and not term.renaming:
            parts.append((rows, columns, np.full(len(rows), count), np.zeros(len(rows))))
            count += 1
            continue
        if term.scale is not None:
            parts.append((rows, columns, np.full(len(rows), -1), np.full(len(rows), float(term.scale))))
            continue
        strides = [prod(sizes[other] for other in term.values if other > label) for label in labels]
        steps = [strides[n] if n in term.values else 0 for n in labels]
        numbers = count + sum(
            (step * index for step, index in zip(steps, np.indices(sizes), strict=True)), np.zeros(sizes, np.int64)
        )
        parts.append((rows, columns, numbers.ravel(), np.zeros(len(rows))))
        count += prod(term.value_shape)
    rows, columns, numbers, known = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Entries(rows, columns, numbers, known, count)


@dataclass(frozen=True, eq=False)
class _Side:
    """The unknowns on one side of a group, entry by entry.

    Attributes:
        unknown: the index of the unknown at each entry.
        inner: the element of the group at each entry.
        outer: the row of ``ends`` for the other end of each entry.
        ends: random derivatives between elements outside the group and the ends of the graph.
        reached: whether a path exists for each of these derivatives.
    """

    unknown: np.ndarray
    inner: np.ndarray
    outer: np.ndarray
    ends: np.ndarray
    reached: np.ndarray

    def kept(self, chosen: np.ndarray) -> _Side:
        """The same side, restricted to some of the entries."""
        unknown = np.unique(self.unknown[chosen], return_inverse=True)[1]
        return _Side(unknown, self.inner[chosen], self.outer[chosen], self.ends, self.reached)

    @property
    def count(self) -> int:
        return int(self.unknown.max(initial=-1)) + 1

    @property
    def tags(self) -> int:
        """The number of pairs of an unknown and an end."""
        return self.count * self.reached.shape[1]


class RandomDerivatives:
    """A graph of arrays in which every unknown number is replaced by a random one."""

    def __init__(self, graph: ComputationGraph, raw: bool = False):
        self._rng = np.random.default_rng(0)
        # The approximate number of operations spent on ranks so far.
        self.work = 0
        self.size = {number: prod(vertex.shape) for number, vertex in graph.vertices.items()}
        self.entries = {edge: entries_of(structure, raw) for edge, structure in graph.edges.items()}
        self.sources: dict[int, list[int]] = {number: [] for number in graph.vertices}
        self.targets: dict[int, list[int]] = {number: [] for number in graph.vertices}
        for target, source in graph.edges:
            self.sources[target].append(source)
            self.targets[source].append(target)
        self._values = {edge: self._random(edge) for edge in graph.edges}
        self._paths = {edge: self._path(edge) for edge in graph.edges}
        forward, outputs = sorted(graph.vertices), {vertex for vertex in graph.outputs if vertex is not None}
        # Per vertex: derivatives with respect to all inputs, and of all outputs, with one row per element.
        self._by_inputs = self._accumulated(forward, set(graph.inputs), self.sources, False)
        self._of_outputs = self._accumulated(forward[::-1], outputs, self.targets, True)

    def _random(self, edge: tuple[int, int]) -> np.ndarray:
        entries, (target, source) = self.entries[edge], edge
        numbers = self._rng.uniform(0.5, 1.5, entries.count + 1)[entries.numbers]
        value = np.zeros((self.size[target], self.size[source]))
        np.add.at(value, (entries.rows, entries.columns), np.where(entries.numbers < 0, entries.known, numbers))
        return value

    def _path(self, edge: tuple[int, int]) -> np.ndarray:
        entries, (target, source) = self.entries[edge], edge
        path = np.zeros((self.size[target], self.size[source]), bool)
        path[entries.rows, entries.columns] = True
        return path

    def _accumulated(
        self, along: Sequence[int], ends: set[int], neighbours: dict[int, list[int]], turned: bool
    ) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """Per vertex, the derivatives between its elements and those of all ends, and whether paths exist."""
        starts, total = {}, 0
        for end in sorted(ends):
            starts[end] = total
            total += self.size[end]
        found: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        for vertex in along:
            value = np.zeros((self.size[vertex], total))
            if vertex in starts:
                value[:, starts[vertex] : starts[vertex] + self.size[vertex]] = np.eye(self.size[vertex])
            reached, summands = value != 0, value.copy()
            for neighbour in neighbours[vertex]:
                edge = (neighbour, vertex) if turned else (vertex, neighbour)
                one, path = self._values[edge], self._paths[edge]
                one, path = (one.T, path.T) if turned else (one, path)
                value += one @ found[neighbour][0]
                summands += np.abs(one) @ np.abs(found[neighbour][0])
                reached |= path @ found[neighbour][1]
            found[vertex] = _certain(value, summands), reached
        return found

    def multiplications(self, group: Sequence[int]) -> int:
        """The minimum total number of multiplications for eliminating the vertices of a convex group."""
        group = sorted(group)
        first = dict(zip(group, np.cumsum([0, *(self.size[vertex] for vertex in group)]), strict=False))
        before, after = self._side(group, first, False), self._side(group, first, True)
        if not before.count or not after.count:
            return 0
        through, reach = self._inside(group, first)
        vertices = np.concatenate([np.full(self.size[vertex], n) for n, vertex in enumerate(group)])
        self.work += _TAG * len(vertices) * (before.tags + after.tags)
        rights = _classes(before, after, reach.T, vertices)
        lefts = _classes(after, before, reach, vertices)
        parts = ([side.kept(one[side.unknown]) for one in found] for side, found in ((after, lefts), (before, rights)))
        return sum(self._dimension(left, through, right) for left, right in product(*parts))

    def _side(self, group: list[int], first: dict[int, int], turned: bool) -> _Side:
        """The unknowns on the edges that enter the group, or, if ``turned``, on those that leave it."""
        ends = self._of_outputs if turned else self._by_inputs
        parts, rows, reached = [], [], []
        unknowns = outside = 0
        for vertex in group:
            for neighbour in (self.targets if turned else self.sources)[vertex]:
                entries = self.entries[(neighbour, vertex) if turned else (vertex, neighbour)]
                if neighbour in first or not entries.count:
                    continue
                free = entries.numbers >= 0
                inner, outer = (entries.columns, entries.rows) if turned else (entries.rows, entries.columns)
                parts.append((entries.numbers[free] + unknowns, inner[free] + first[vertex], outer[free] + outside))
                rows.append(ends[neighbour][0])
                reached.append(ends[neighbour][1])
                unknowns += entries.count
                outside += self.size[neighbour]
        if not parts:
            nothing = np.zeros(0, np.int64)
            return _Side(nothing, nothing, nothing, np.zeros((0, 0)), np.zeros((0, 0), bool))
        unknown, inner, outer = (np.concatenate(column) for column in zip(*parts, strict=True))
        return _Side(unknown, inner, outer, np.concatenate(rows), np.concatenate(reached)).kept(unknown >= 0)

    def _inside(self, group: list[int], first: dict[int, int]) -> tuple[np.ndarray, np.ndarray]:
        """Random derivatives of elements of the group with respect to earlier ones, and whether paths exist."""
        total = sum(self.size[vertex] for vertex in group)
        value, summands, reached = np.eye(total), np.eye(total), np.eye(total, dtype=bool)
        for vertex in group:
            rows = slice(first[vertex], first[vertex] + self.size[vertex])
            for source in self.sources[vertex]:
                if source in first:
                    columns = slice(first[source], first[source] + self.size[source])
                    value[rows] += self._values[vertex, source] @ value[columns]
                    summands[rows] += np.abs(self._values[vertex, source]) @ np.abs(value[columns])
                    reached[rows] |= self._paths[vertex, source] @ reached[columns]
            value[rows] = _certain(value[rows], summands[rows])
        return value, reached

    def _dimension(self, after: _Side, through: np.ndarray, before: _Side) -> int:
        """The dimension of the space of all forms in the unknowns of two sides."""
        linked = through[np.ix_(after.inner, before.inner)] != 0
        if not linked.any():
            return 0
        after, before = after.kept(linked.any(axis=1)), before.kept(linked.any(axis=0))
        lefts, rights = _basis(after), _basis(before)
        if not len(lefts) or not len(rights):
            return 0
        while len(lefts) * len(rights) > _MOST_FORMS:
            longer = lefts if len(lefts) >= len(rights) else rights
            fewer = self._rng.normal(size=(len(longer) - 1, len(longer))) @ longer
            lefts, rights = (fewer, rights) if longer is lefts else (lefts, fewer)
        points = min(len(lefts) * len(rights), after.count * before.count)
        self.work += _RANK + points * len(lefts) * len(rights) * (points + len(after.inner) + len(before.inner))
        left, right = self._at_points(after, lefts, points), self._at_points(before, rights, points)
        between = through[np.ix_(np.unique(after.inner), np.unique(before.inner))]
        summands = np.abs(left) @ np.abs(between) @ np.abs(right).transpose(0, 2, 1)
        forms = _certain(left @ between @ right.transpose(0, 2, 1), summands)
        return _rank(forms.reshape(points, -1), summands.max(axis=(1, 2)))

    def _at_points(self, side: _Side, basis: np.ndarray, points: int) -> np.ndarray:
        """Derivatives between the group and combinations of ends, of shape [points, basis, elements with unknowns]."""
        values = self._rng.normal(size=(points, side.count))
        elements, place = np.unique(side.inner, return_inverse=True)
        return (values[:, None, side.unknown] * basis[None, :, side.outer]) @ np.eye(len(elements))[place]


def _basis(side: _Side) -> np.ndarray:
    """A basis of the derivatives between the ends and the elements outside the group.

    Elements without entries are zero.
    """
    used = np.unique(side.outer)
    _, singular, rows = np.linalg.svd(side.ends[used].T, full_matrices=False)
    kept = rows[singular > _ZERO * singular.max(initial=0.0)]
    basis = np.zeros((len(kept), len(side.ends)))
    basis[:, used] = kept
    return basis


def _certain(value: np.ndarray, summands: np.ndarray) -> np.ndarray:
    """``value``, with zero where summands may have cancelled up to rounding."""
    return np.where(np.abs(value) > _CANCELLED * summands, value, 0.0)


def _rank(matrix: np.ndarray, summands: np.ndarray) -> int:
    """The rank of a matrix whose rows are sums of numbers of the given sizes."""
    lengths = np.linalg.norm(matrix, axis=1)
    kept = lengths > _FAINT * summands
    singular = np.linalg.svd(matrix[kept] / lengths[kept, None], compute_uv=False)
    return int(np.sum(singular > _ZERO * singular.max(initial=0.0)))


def _classes(side: _Side, other: _Side, reach: np.ndarray, vertices: np.ndarray) -> list[np.ndarray]:
    """Sets of the unknowns on one side that no factor mixes.

    ``reach`` tells which elements of the group (columns) reach the unknowns of this side at other elements (rows). Two
    unknowns share a class if one element reaches both. They also share a class if elements of one vertex reach them to
    which an unknown of the other side is tied in the same way: by paths to the same end.
    """
    count, elements = side.count, len(vertices)
    seen = _any_of(side.unknown, reach[side.inner])
    if other.tags * elements > _MOST_TAGS:
        return [np.ones(count, bool)]
    tied = _any_of(other.unknown, other.reached[other.outer][:, :, None] & reach.T[other.inner][:, None, :])
    return list(_connected(seen, _ties(tied.reshape(-1, elements), vertices)))


def _any_of(unknown: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Per unknown, the logical or of its rows."""
    order = np.argsort(unknown, kind="stable")
    starts = np.flatnonzero(np.diff(unknown[order], prepend=-1))
    return np.logical_or.reduceat(rows[order], starts, axis=0)


def _ties(tied: np.ndarray, vertices: np.ndarray) -> np.ndarray:
    """The distinct sets of several elements of one vertex among sets of elements."""
    found = []
    for vertex in np.unique(vertices):
        within = tied & (vertices == vertex)
        packed = np.packbits(within[within.sum(axis=1) > 1], axis=1)
        found += [np.frombuffer(row, np.uint8) for row in sorted({row.tobytes() for row in packed})]
    if not found:
        return np.zeros((0, len(vertices)), bool)
    return np.unpackbits(np.stack(found), axis=1, count=len(vertices)).astype(bool)


def _connected(seen: np.ndarray, ties: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the components of unknowns: unknowns are connected to the elements they see, and ties connect elements."""
    left = np.ones(len(seen), bool)
    while left.any():
        members = np.zeros(len(seen), bool)
        members[np.argmax(left)] = True
        while True:
            elements = seen[members].any(axis=0)
            elements |= ties[(ties & elements).any(axis=1)].any(axis=0)
            grown = members | (seen & elements).any(axis=1)
            if np.array_equal(grown, members):
                break
            members = grown
        left &= ~members
        yield members
