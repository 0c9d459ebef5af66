"""Structures over time: with a leading output axis along which a loop reads or writes one step after the other."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from .axes import Axis, Digit, axis_along, whole
from .positions import Dynamic, Positions, as_array, chain, listed
from .structure import Recast, Structure, canonical, digits_of, freed, without_lists
from .terms import AnyStructure, Terms, terms_of

# Names of run-time positions that depend only on the number of the step begin with this. A nested loop uses another
# name.
_STEP = "step"


@dataclass(frozen=True)
class Time:
    """The steps of a loop, as seen by structures.

    Attributes:
        length: the number of steps.
        step: the name of the step number.
        steady: the names of run-time positions that are the same in all steps.
    """

    length: int
    step: Hashable
    steady: frozenset[Hashable]

    @staticmethod
    def of(length: int, entering: Iterable[AnyStructure]) -> "Time":
        """The time of a loop that the given structures enter or leave."""
        steady = frozenset[Hashable]().union(*(term.names for whole in entering for term in terms_of(whole)))
        step = next(name for name in ((_STEP, n) for n in count()) if name not in steady)
        return Time(length, step, steady)

    def follows(self, at: Dynamic) -> bool:
        """Whether positions depend on the step number, and on nothing else that is known only at run time."""
        return at.names == {self.step}


@dataclass(frozen=True)
class Element:
    """A term of an array over time, read at one step.

    Attributes:
        structure: the structure of the term at one step.
        first: how the term over time is recast before it is read, if necessary.
        label: the label of the term over time along which its values are cut; None if they are the same in all steps.
    """

    structure: Structure
    first: Recast | None
    label: int | None


def elements_of(structure: AnyStructure, time: Time) -> tuple[Element, ...]:
    """The elements of a structure, read along the leading axis of its output, one per term."""
    return tuple(_element(term, time) for term in terms_of(structure))


def together(elements: tuple[Element, ...]) -> AnyStructure:
    """The structure of one step."""
    return elements[0].structure if len(elements) == 1 else Terms(tuple(element.structure for element in elements))


def _element(term: Structure, time: Time) -> Element:
    first, length = None, time.length
    if length > 1 and (len(term.out[0]) != 1 or term.out[0][0].label is None or term.out[0][0].at != range(length)):
        first = freed(term, (0,), ())
        term = first.structure
    if length == 1:
        return Element(canonical(term.out[1:], term.inp, term.sizes, term.values, term.scale, False)[0], first, None)
    label = term.out[0][0].label
    now = Dynamic(1, time.step)

    def at_step(axes: tuple[Axis, ...]) -> list[Axis]:
        return [tuple(Digit(None, chain(d.at, now), d.size) if d.label == label else d for d in axis) for axis in axes]

    values = [n for n in term.values if n != label]
    structure = canonical(at_step(term.out[1:]), at_step(term.inp), term.sizes, values, term.scale, False)[0]
    return Element(structure, first, label if label in term.values else None)


def over_time(structure: AnyStructure, time: Time) -> AnyStructure:
    """The structure of the results of all steps together, along a new leading axis of the output."""
    changed = [(term, settled_positions(term, time)) for term in terms_of(structure)]
    terms = tuple(_over_time(how.structure if how else term, time) for term, how in changed)
    return terms[0] if len(terms) == 1 else Terms(terms)


def settled_positions(term: Structure, time: Time) -> Recast | None:
    """How to recast a term with positions that are neither steady nor follow the steps; None if it has none."""
    dynamic = [digit.at for digit in digits_of(term) if isinstance(digit.at, Dynamic)]
    settled = all(time.follows(at) or at.names <= time.steady for at in dynamic)
    return None if settled else without_lists(term, (Dynamic,))


def _over_time(term: Structure, time: Time) -> Structure:
    label, length = len(term.sizes), time.length
    leading: Axis = () if length == 1 else (whole(label, length),)

    def then(digit: Digit) -> Axis:
        if isinstance(digit.at, Dynamic) and time.follows(digit.at):
            return axis_along(label, _in_all_steps(digit.at, length), digit.size)
        return (digit,)

    def all_then(axes: tuple[Axis, ...]) -> list[Axis]:
        return [tuple(d for digit in axis for d in then(digit)) for axis in axes]

    values = (*term.values, *([] if term.scale is not None or length == 1 else [label]))
    sizes = (*term.sizes, length)
    return canonical([leading, *all_then(term.out)], all_then(term.inp), sizes, values, term.scale, False)[0]


def _in_all_steps(at: Dynamic, length: int) -> Positions:
    """The positions in every step, for positions that depend on the step number."""
    positions: Any = np.arange(length)
    for step, operand in at.steps:
        if step == "of":
            positions = as_array(operand)[positions]
        elif step != "at":
            positions = positions // operand if step == "div" else positions % operand
    return listed(positions)
