"""Evaluates the selected branch of a `cond`, together with its Jacobian."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from . import _jax
from ._jax import Program
from .block import JacobianBlock, perform
from .branches import Branches, Pair, Summand
from .labelled import of_dtype
from .part import Mask, Part, recast, selects, shown
from .passing import Eliminate, Evaluate
from .terms import add, terms_of


@dataclass(frozen=True, eq=False)
class _Taken:
    """One branch as a program: its results, the values of all terms, and the masks of the terms that have one.

    ``shown`` says for each term whether it is shown entirely or not at all; None means that the program returns a mask.
    """

    program: Program
    shown: list[bool | None]


def choose(
    branches: Branches, index: Any, operands: Sequence[Any], evaluate: Evaluate, eliminate: Eliminate, backend: str
) -> tuple[list[Any], dict[Pair, JacobianBlock]]:
    """The results of one branch, and its blocks by (output, input), in the structures that all branches share."""
    taken = [_taken(branches, n, operands, evaluate, eliminate, backend) for n in range(len(branches.bodies))]
    terms = [term for structure in branches.structures.values() for term in terms_of(structure)]
    labels = [_mask_labels([branch.shown[n] for branch in taken], term.values) for n, term in enumerate(terms)]
    count = len(branches.bodies[0].traced.program.outputs)

    def branch(each: _Taken) -> Callable:
        def run(*given: Any) -> tuple[list[Any], list[Any], list[Any]]:
            found = each.program.run(given)
            rest = iter(found[count + len(terms) :])
            wheres = [next(rest) if known is None else known for known in each.shown]
            masks = [
                None if along is None else jnp.broadcast_to(where, [term.sizes[label] for label in along])
                for where, term, along in zip(wheres, terms, labels, strict=True)
            ]
            return found[:count], found[count : count + len(terms)], masks

        return run

    index = lax.convert_element_type(index, np.int32)
    results, values, wheres = lax.switch(index, [branch(each) for each in taken], *operands)
    parts = (
        Part(term, numbers, masks=() if along is None else (Mask(where, along),))
        for term, numbers, where, along in zip(terms, values, wheres, labels, strict=True)
    )
    structures = branches.structures.items()
    return results, {pair: JacobianBlock(tuple(islice(parts, len(terms_of(s))))) for pair, s in structures}


def _taken(
    branches: Branches, number: int, operands: Sequence[Any], evaluate: Evaluate, eliminate: Eliminate, backend: str
) -> _Taken:
    body, plan, edges = branches.bodies[number], branches.plans[number], branches.edges(number)
    known: list[bool | None] = []

    def run(*given: Any) -> list[Any]:
        results, local = evaluate(body, given, backend)
        found = eliminate(plan, local)
        values, wheres = [], []
        for pair, summands in branches.summands.items():
            own = found[edges[pair]].parts if pair in edges else ()
            dtype = _jax.dtype(body.traced.program.outputs[pair[0]])
            for part in _embedded(own, summands, number, dtype, branches.whole).parts:
                known.append(False if _is_hidden(part) else None if selects(part) else True)
                wheres.extend([shown(part)] if known[-1] is None else [])
                numbers = of_dtype((_made(part) if _is_hidden(part) else part).values, dtype)
                values.append(jnp.broadcast_to(numbers, part.structure.value_shape))
        return [*results, *values, *wheres]

    return _Taken(_jax.trace(run, *operands), known)


def _embedded(
    parts: Sequence[Part], summands: Sequence[Summand], branch: int, dtype: Any, whole: bool
) -> JacobianBlock:
    """The block of one branch with the terms of all branches, added up in the same order in every branch."""
    own = iter(parts)
    total: JacobianBlock | None = None
    for summand in summands:
        if summand.branch == branch:
            part = recast(next(own), summand.first)
            values = np.asarray(part.structure.scale, dtype) if part.structure.scale is not None else part.values
            part = replace(part, structure=summand.structure, values=values, dtype=dtype)
        else:
            # A term of another branch is masked here: zero, no matter what multiplies it.
            part = Part(summand.structure, np.zeros(summand.structure.value_shape, bool), dtype)
        total = JacobianBlock((part,)) if total is None else _sum(total, JacobianBlock((part,)), whole)
    assert total is not None
    return total


def _sum(total: JacobianBlock, new: JacobianBlock, whole: bool) -> JacobianBlock:
    operation = add(total.structure, new.structure, whole)
    # If one operand is hidden and the other already has the structure of the sum, nothing needs to be added.
    for one, other in ((total, new), (new, total)):
        if one.structure == operation.structure and all(map(_is_hidden, other.parts)):
            return one
    # Replace hidden parts by placeholders, because XLA would simplify constants that are created here.
    made = {part: _made(part) for part in (*total.parts, *new.parts) if _is_hidden(part)}
    result = perform(operation, *(block.mapped(lambda part: made.get(part, part)) for block in (total, new)))
    still = {id(part): hidden for hidden, part in made.items()}
    return result.mapped(lambda part: still.get(id(part), part))


def _made(part: Part) -> Part:
    return replace(part, values=lax.full(part.structure.value_shape, False))


def _is_hidden(part: Part) -> bool:
    """True if it is already known that no entry of a term is shown."""
    return isinstance(part.values, np.ndarray) and part.values.dtype == bool and not part.values.any()


def _mask_labels(known: Sequence[bool | None], labels: tuple[int, ...]) -> tuple[int, ...] | None:
    """The labels of the mask that a term needs, whichever branch is taken; None if all branches show the term."""
    if all(known):
        return None
    return labels if None in known else ()
