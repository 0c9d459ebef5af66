"""Rules for linear primitives that do arithmetic; `graphax.rule` says what a rule is.

Differentiation in JAX turns every equation into a linear program of a few dozen primitives. The rules here and in the
neighbouring modules cover these primitives; no rule sees the function being differentiated.
"""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from jax import lax

from . import _jax
from .axes import axis_along
from .block import JacobianBlock, as_pattern
from .positions import listed
from .rule import LinearCall, dense_pattern, own_labels, renaming_rules_for, rules_as_one_for, rules_for
from .simplify import is_sparse, uniform_value


@renaming_rules_for("convert_element_type", "copy", "copy_p", "reduce_precision", "optimization_barrier", "pvary")
@renaming_rules_for("sharding_constraint", "layout_constraint", "reshard", "device_put")
def _same(call):
    blocks: list[JacobianBlock | None] = [None] * len(call.out_shapes)
    axes = range(len(call.shape))
    blocks[call.position] = JacobianBlock.labelled(axes, axes, call.shape, call.shape, renaming=True)
    return blocks


@rules_for("add", "add_any")
def _add(call):
    return call.elementwise()


@rules_for("neg")
def _neg(call):
    return call.elementwise(scale=-1.0)


@rules_for("sub")
def _sub(call):
    return call.elementwise(scale=-1.0 if call.position else 1.0)


def _unknown_factor(call: LinearCall, factor: int):
    """The structure of an elementwise product with a factor whose value is not known yet.

    The factor may be a tangent itself, because a custom rule may contain such products; the block is dense then.
    """
    return dense_pattern(call) if call.moving[factor] else call.elementwise_pattern()


@rules_for("mul")
def _mul(call):
    other = call.operands[1 - call.position]
    if other is None:
        return _unknown_factor(call, 1 - call.position)
    number = uniform_value(other)
    if number is not None:
        return call.elementwise(scale=number)
    return _at_nonzeros(call, other) if is_sparse(other) else call.elementwise(other)


@rules_for("div")
def _div(call):
    other = call.operands[1]
    if other is None:
        return _unknown_factor(call, 1)
    number = uniform_value(other)
    return call.elementwise(scale=1.0 / number) if number else call.elementwise(lax.reciprocal(other))


@rules_for("select_n")
def _select(call):
    which = call.operands[0]
    if which is None:
        return _unknown_factor(call, 0)
    number = call.position - 1
    passed = None if _jax.is_traced([which]) else np.asarray(which) == number
    if passed is not None and is_sparse(passed):
        return _at_nonzeros(call, passed)
    return call.mask(lax.eq(which, lax.full_like(which, number)))


@rules_for("psum", "psum_invariant", "ppermute", "unreduced_psum")
def _over_points(call):
    """A collective that keeps the entries of a point apart, although its values depend on other points.

    Under `jax.vmap` it becomes a sum over an axis of the array, which has a number instead of a name.
    """
    axes = range(len(call.shape))
    given = call.params.get("axes", ("name",))
    out = [n for n in axes if n not in given]
    block = JacobianBlock.labelled(out, axes, call.out_shapes[call.position], call.shape)
    named = any(not isinstance(axis, int | np.integer) for axis in given)
    return [
        (as_pattern(block) if named else block) if n == call.position else None for n in range(len(call.out_shapes))
    ]


@rules_for("scatter-mul")
def _scatter_mul(call):
    return dense_pattern(call) if call.position else call.elementwise_pattern()


@rules_for("conj", "real", "imag", "complex")
def _complex(call):
    axes = range(len(call.shape))
    return call.pattern(axes, axes)


@rules_for("reduce_sum")
def _reduce_sum(call):
    axes = range(len(call.shape))
    return call.block([n for n in axes if n not in call.params["axes"]], axes)


@rules_for("cumsum")
def _cumsum(call):
    axis = call.params["axis"]
    row, column = (lax.broadcasted_iota(np.int32, (call.shape[axis],) * 2, n) for n in (0, 1))
    reached = lax.le(row, column) if call.params["reverse"] else lax.ge(row, column)
    values = lax.convert_element_type(reached, call.dtype)
    out: list[Hashable] = list(range(len(call.shape)))
    out[axis] = "out"
    return call.block(out, range(len(call.shape)), values, ("out", axis))


@rules_as_one_for("cumprod", "cummax", "cummin", "cumlogsumexp")
def _cumulative(call):
    return call.linked([(n, n) for n in range(len(call.shape)) if n != call.params["axis"]])


@rules_as_one_for("reduce_prod", "reduce")
def _reduce(call):
    gone = call.params["axes"] if call.primitive == "reduce_prod" else call.params["dimensions"]
    kept = [n for n in range(len(call.shape)) if n not in gone]
    return [call.linked(list(enumerate(kept)))] * len(call.out_shapes)


@rules_for("dot_general")
def _dot_general(call):
    (contracting, batch) = call.params["dimension_numbers"]
    mine, other = call.position, 1 - call.position
    if call.moving[other]:
        return dense_pattern(call)
    labels: list[list[Hashable]] = [own_labels(shape, side) for shape, side in zip(call.shapes, "lr", strict=True)]
    for pairs in (contracting, batch):
        for a, b in zip(pairs[mine], pairs[other], strict=True):
            labels[other][b] = labels[mine][a]
    free = [
        [n for d, n in enumerate(labels[side]) if d not in contracting[side] and d not in batch[side]]
        for side in (0, 1)
    ]
    out = [labels[0][d] for d in batch[0]] + free[0] + free[1]
    if call.operands[other] is None:
        return call.pattern(out, labels[mine])
    factor = call.operands[other]
    if is_sparse(factor):
        return _by_nonzeros(call, out, labels[mine], factor, labels[other])
    return call.block(out, labels[mine], factor, labels[other])


def _at_nonzeros(call: LinearCall, factor: Any) -> JacobianBlock | None:
    """The block of an elementwise product with a known array, most of which is zero."""
    if np.shape(factor) != call.out_shape or len(call.shape) != len(call.out_shape):
        return call.elementwise(factor)
    out = range(len(call.out_shape))
    # Along an axis of length one, all results depend on the same entry.
    inp = [n if call.shape[n] == call.out_shape[n] else ("inp", n) for n in out]
    return _by_nonzeros(call, out, inp, factor, out)


def _by_nonzeros(call: LinearCall, out: Sequence, inp: Sequence, factor: Any, on: Sequence) -> JacobianBlock | None:
    """A block whose values are a known array with few nonzeros, listed individually. True counts as one."""
    numbers = np.asarray(factor)
    places = np.nonzero(numbers)
    if len(places[0]) == 0:
        return None
    if len(places[0]) == 1 and numbers.dtype != bool:
        return call.block(out, inp, factor, on)
    axes = zip(on, places, numbers.shape, strict=True)
    listing = {name: axis_along("nonzero", listed(place), size) for name, place, size in axes}
    out, inp = ([listing.get(name, name) for name in side] for side in (out, inp))
    values = (None, ()) if numbers.dtype == bool else (numbers[places], ("nonzero",))
    return call.block(out, inp, *values)


@rules_for("triangular_solve")
def _triangular_solve(call):
    if call.position == 0:
        return dense_pattern(call)
    rank = len(call.shape)
    apart = rank - 1 if call.params["left_side"] else rank - 2
    return call.linked([(n, n) for n in (*range(rank - 2), apart)])


@rules_for("fft")
def _fft(call):
    return call.linked([(n, n) for n in range(len(call.shape) - len(call.params["fft_lengths"]))])
