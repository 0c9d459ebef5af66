"""Branches of a `cond`: the structures of its blocks, whichever branch is taken. No values.

Every branch is a graph of its own, planned once. A block of the equation has the terms of all branches; terms that a
branch lacks are zero when it is taken.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from . import terms
from .bundles import terms_in
from .loop import planned
from .plan import Plan
from .positions import Dynamic
from .structure import Recast, Structure, without_lists
from .terms import AnyStructure

Pair = tuple[int, int]


@dataclass(frozen=True)
class Summand:
    """A term of the block of one branch, in a form that all branches can store.

    Attributes:
        branch: the number of the branch.
        first: how to recast the term first, if necessary.
        structure: the structure of the term with values, even if the branch knows its coefficient.
    """

    branch: int
    first: Recast | None
    structure: Structure


@dataclass(frozen=True, eq=False)
class Branches:
    """The branches of an equation; an index selects one of them.

    Attributes:
        bodies: the derivation of each branch. All have the same inputs and outputs.
        whole: whether blocks of small arrays are kept whole.
    """

    bodies: tuple[Any, ...]
    whole: bool
    # Each branch keeps its own probes.
    probed: ClassVar[tuple[Pair, ...]] = ()

    @cached_property
    def plans(self) -> tuple[Plan, ...]:
        return tuple(planned(body.graph, self.whole)[1] for body in self.bodies)

    @cached_property
    def summands(self) -> dict[Pair, tuple[Summand, ...]]:
        """The terms of all branches by (output, input)."""
        found: dict[Pair, list[Summand]] = {}
        for branch, plan in enumerate(self.plans):
            for pair, edge in self.edges(branch).items():
                found.setdefault(pair, []).extend(_summand(branch, term) for term in terms_in(plan.results[edge]))
        return {pair: tuple(summands) for pair, summands in found.items()}

    @cached_property
    def structures(self) -> dict[Pair, AnyStructure]:
        """The structures that can hold the blocks of all branches, by (output, input)."""
        joined: dict[Pair, AnyStructure] = {}
        for pair, (first, *others) in self.summands.items():
            joined[pair] = first.structure
            for other in others:
                joined[pair] = terms.add(joined[pair], other.structure, self.whole).structure
        return joined

    def edges(self, branch: int) -> dict[Pair, tuple[int, int]]:
        """The edges between inputs and outputs of a branch, by (output, input)."""
        graph, found = self.bodies[branch].graph, self.plans[branch].results
        pairs = _pairs(graph.outputs, graph.inputs)
        return {pair: edge for pair, edge in pairs if edge in found}


def _pairs(outputs: tuple[int | None, ...], inputs: tuple[int, ...]) -> Iterator[tuple[Pair, tuple[int, int]]]:
    for o, vertex in enumerate(outputs):
        if vertex is not None:
            yield from (((o, i), (vertex, source)) for i, source in enumerate(inputs))


def _summand(branch: int, term: Structure) -> Summand:
    # Positions that one branch computes are not known when another branch is taken.
    first = without_lists(term, (Dynamic,)) if term.names else None
    structure = term if first is None else first.structure
    return Summand(branch, first, replace(structure, scale=None, renaming=False))
