"""Sums of products: written out if they are short, and loops over rows or columns if they are long."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from .. import _jax
from .unroll import Numbers, Unrolling
from .unroll_rules import rule

# Up to this many products are written out. Longer code would not fit the instruction cache, and takes long to compile.
_WRITTEN_OUT = 1_000
# If the operands have fewer entries than this share, most products vanish, but only if they are written out.
_MOSTLY_THERE = 0.5


@rule("dot_general")
def _dot_general(u: Unrolling, eqn: Any, a: Numbers, b: Numbers) -> Numbers:
    (contracted_a, contracted_b), (batch_a, batch_b) = eqn.params["dimension_numbers"]
    dtype = _jax.dtype(eqn.outvars[0])
    # Integers may be multiplied by real numbers, and the result may have a wider type than both.
    a, b = (
        x if _jax.dtype(atom) == dtype else u.elements(lambda n: u.builder.convert(n, dtype), x)
        for x, atom in zip((a, b), eqn.invars, strict=True)
    )
    first, second = _matrices(a, contracted_a, batch_a), _matrices(b, contracted_b, batch_b)
    return contracted(u, first, second, dtype).reshape(_jax.shape(eqn.outvars[0]))


def _matrices(x: Numbers, contracted: Sequence[int], shared: Sequence[int]) -> Numbers:
    """An operand with three axes: the contracted ones, those that both operands share, and its own."""
    own = [n for n in range(x.ndim) if n not in (*contracted, *shared)]
    sizes = (prod(x.shape[n] for n in axes) for axes in (contracted, shared, own))
    return x.transpose((*contracted, *shared, *own)).reshape(*sizes)


def contracted(u: Unrolling, a: Numbers, b: Numbers, dtype: Any) -> Numbers:
    """Sums of products over the first axis of both operands, for each entry of the shared and of the last axes."""
    (_, shared, rows), columns = a.shape, b.shape[2]
    if a.size * columns <= _WRITTEN_OUT or max(shared, rows, columns) == 1 or not _is_dense(u, a, b):
        return u.reduce("add", u.apply("mul", a[..., None], b[:, :, None]), [0], 0, dtype)
    if shared > 1:
        both = [np.moveaxis(x, 1, 0) for x in (a, b)]
        return _looped(u, both, lambda a, b: contracted(u, a[:, None], b[:, None], dtype)[0])
    # An operand that is in memory already can be read step by step without being copied; of two, take the longer one.
    if (rows > 1, u.is_stored(a), rows) >= (columns > 1, u.is_stored(b), columns):
        return _looped(u, [np.moveaxis(a, 2, 0)], lambda a: contracted(u, a[..., None], b, dtype)[0, 0])[None]
    return _looped(u, [np.moveaxis(b, 2, 0)], lambda b: contracted(u, a, b[..., None], dtype)[0, :, 0]).T[None]


def _looped(u: Unrolling, operands: list[Numbers], function: Callable[..., Numbers]) -> Numbers:
    """Apply a function to the rows of operands, with one step of a loop per row."""

    def step(_: list[Numbers], number: int) -> tuple[list[Numbers], list[Numbers], None]:
        return [], [function(*(u.at_step(operand, number) for operand in operands))], None

    _, (rows,) = u.repeat([], len(operands[0]), False, step)
    return rows


def _is_dense(u: Unrolling, a: Numbers, b: Numbers) -> bool:
    """Whether most products have two factors that are entries of their blocks."""
    present = np.einsum("ksm,ksn->", u.present(a), u.present(b))
    return bool(present >= _MOSTLY_THERE * a.size * b.shape[2])
