"""Branches of a `cond`: what its blocks look like whichever branch is taken. No values.

Every branch is a graph of its own, planned once. A block of the equation has the terms that any branch has; a branch
that lacks some of them leaves these at zero.
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
    """A term of one branch's block, as all branches can store it.

    Attributes:
        branch: the number of the branch.
        first: how the term is recast before, if it has to be.
        structure: that of the term with values, even where the branch knows its coefficient.
    """

    branch: int
    first: Recast | None
    structure: Structure


@dataclass(frozen=True, eq=False)
class Branches:
    """The branches of an equation, of which an index takes one.

    Attributes:
        bodies: the derivation of each; all have the same inputs and outputs.
        whole: whether blocks of small arrays are kept whole.
    """

    bodies: tuple[Any, ...]
    whole: bool
    # Whatever a branch probes is its own.
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
        """The structures that hold the blocks of all branches."""
        joined: dict[Pair, AnyStructure] = {}
        for pair, (first, *others) in self.summands.items():
            joined[pair] = first.structure
            for other in others:
                joined[pair] = terms.add(joined[pair], other.structure, self.whole).structure
        return joined

    def edges(self, branch: int) -> dict[Pair, tuple[int, int]]:
        """The edges between inputs and outputs that a branch has, by (output, input)."""
        graph, found = self.bodies[branch].graph, self.plans[branch].results
        pairs = _pairs(graph.outputs, graph.inputs)
        return {pair: edge for pair, edge in pairs if edge in found}


def _pairs(outputs: tuple[int | None, ...], inputs: tuple[int, ...]) -> Iterator[tuple[Pair, tuple[int, int]]]:
    for o, vertex in enumerate(outputs):
        if vertex is not None:
            yield from (((o, i), (vertex, source)) for i, source in enumerate(inputs))


def _summand(branch: int, term: Structure) -> Summand:
    # Positions that a branch finds out are not known where another one is taken.
    first = without_lists(term, (Dynamic,)) if term.names else None
    structure = term if first is None else first.structure
    return Summand(branch, first, replace(structure, scale=None, renaming=False))
