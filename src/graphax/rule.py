"""The definition of rules for linear primitives, and the table of all rules.

A rule describes the Jacobian of one linear primitive with respect to one operand, as an einsum term. It may know only
the pattern (`LinearCall.pattern`); the values are then found by applying the linear program to as few tangents as the
pattern allows. A primitive without a rule has a dense pattern, so everything that JAX differentiates works.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from .axes import axis_along
from .block import JacobianBlock, as_pattern
from .errors import RuleError
from .labelled import NONE, Lists
from .positions import progression

Rule = Callable[["LinearCall"], "JacobianBlock | Sequence[JacobianBlock | None] | None"]

# The rules of graphax, and those of users, which take precedence no matter when they were registered.
_RULES: dict[str, Rule] = {}
_REGISTERED: dict[str, Rule] = {}
_RENAMING: set[str] = set()
_AS_ONE: set[str] = set()
_CACHES: list[Any] = []


@dataclass(frozen=True)
class LinearCall:
    """A call of a primitive that is linear in the operand at ``position``.

    Attributes:
        primitive, params: as in the equation.
        position: the index of the operand being differentiated.
        operands: the known operands; None for those that are tangents, or that are computed along with tangents.
        moving: which operands are tangents.
        shapes, out_shapes: the shapes of all operands and results.
        dtype: the dtype of the (first) result.
        name: a name for lists known only at run time, unique within the linear program.
    """

    primitive: str
    params: dict[str, Any]
    position: int
    operands: tuple[Any, ...]
    moving: tuple[bool, ...]
    shapes: tuple[tuple[int, ...], ...]
    out_shapes: tuple[tuple[int, ...], ...]
    dtype: Any
    name: Hashable = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the operand being differentiated."""
        return self.shapes[self.position]

    @property
    def out_shape(self) -> tuple[int, ...]:
        """The shape of the (first) result."""
        return self.out_shapes[0]

    def block(self, out: Sequence, inp: Sequence, values: Any = None, on: Sequence[Hashable] = (), **how: Any):
        """`JacobianBlock.labelled` for the shapes of this call."""
        return JacobianBlock.labelled(out, inp, self.out_shape, self.shape, values, on, **how)

    def renaming(self, out: Sequence, inp: Sequence, lists: Lists = NONE) -> JacobianBlock:
        """A block that only moves entries."""
        return self.block(out, inp, renaming=True, lists=lists)

    def elementwise(self, values: Any = None, scale: float = 1.0) -> JacobianBlock:
        """A diagonal block. Operands and values of rank 0 are broadcast."""
        out = range(len(self.out_shape))
        inp = out if len(self.shape) == len(out) else ()
        on = () if values is None else range(np.ndim(values))
        return self.block(out, inp, values, on, scale=scale)

    def mask(self, where: Any) -> JacobianBlock:
        """A diagonal block that passes tangents where ``where`` is true and is exactly zero elsewhere.

        These entries stay zero, whatever they are multiplied by.
        """
        return self.selecting(self.elementwise(where))

    def selecting(self, block: JacobianBlock) -> JacobianBlock:
        """A block whose truth values select the tangents that pass."""
        return block.mapped(lambda part: replace(part, dtype=self.dtype), self.dtype)

    def elementwise_pattern(self) -> JacobianBlock:
        """A diagonal block with values that are not known yet."""
        return as_pattern(self.elementwise())

    def sum(self, blocks: Iterable[JacobianBlock | None]) -> JacobianBlock | None:
        """A block with the terms of several blocks; None if there are none."""
        parts = tuple(part for block in blocks if block is not None for part in block.parts)
        return JacobianBlock(parts) if parts else None

    def window(self, starts: Sequence[int], strides: Sequence[int]) -> JacobianBlock:
        """The block that reads the operand from ``starts`` on, in steps of ``strides``."""
        positions = [progression(*args) for args in zip(starts, strides, self.out_shape, strict=True)]
        inp = [axis_along(n, at, size) for n, (at, size) in enumerate(zip(positions, self.shape, strict=True))]
        return self.renaming(range(len(self.out_shape)), inp)

    def linked(self, pairs: Sequence[tuple[int, int]]) -> JacobianBlock:
        """A pattern that is diagonal in the given pairs (output axis, input axis) and dense in all others."""
        out, inp = own_labels(self.out_shape, "out"), own_labels(self.shape, "inp")
        for o, i in pairs:
            if self.out_shape[o] == self.shape[i]:
                inp[i] = out[o]
        return self.pattern(out, inp)

    def pattern(self, out: Sequence, inp: Sequence, number: int = 0) -> JacobianBlock:
        """A block with labels but without values, for result ``number``."""
        known = JacobianBlock.labelled(out, inp, self.out_shapes[number], self.shape)
        return as_pattern(known)


def own_labels(shape: Sequence[int], side: str) -> list[Hashable]:
    """Distinct labels for the axes of one side."""
    return [(side, n) for n in range(len(shape))]


def remembered(size: int):
    """Like `functools.lru_cache`, for results that depend on rules. Registering a rule clears these caches."""

    def decorate(function):
        cached = lru_cache(size)(function)
        _CACHES.append(cached)
        return cached

    return decorate


def clear_caches() -> None:
    """Clear the cached derivatives of all equations."""
    for cached in _CACHES:
        cached.cache_clear()


def register_rule(primitive: str, rule: Rule | None = None):
    """Register the rule for a linear primitive, by name. Can be used as a decorator.

    The rule receives a `LinearCall` and returns the block of the result with respect to
    ``call.operands[call.position]``: a `JacobianBlock`, None for zero, or a sequence with one of these per result of
    the primitive. A rule registered later replaces an earlier one. See docs/rules.md.
    """
    if not isinstance(primitive, str):
        raise TypeError(f"register_rule takes the name of a primitive, such as 'mul', but got {primitive!r}")
    if rule is not None and not callable(rule):
        raise TypeError(f"the rule of primitive {primitive!r} is a function of a LinearCall, but got {rule!r}")
    if rule is None:
        return lambda function: register_rule(primitive, function)
    _REGISTERED[primitive] = rule
    clear_caches()
    return rule


def known_primitives() -> tuple[str, ...]:
    """The primitives that currently have a rule."""
    return tuple(sorted({*_RULES, *_REGISTERED}))


def only_renames(primitive: str) -> bool:
    """True if a primitive does no arithmetic, so that raw counting treats its blocks as mere renaming."""
    return primitive in _RENAMING


def taken_as_one(primitive: str) -> bool:
    """True if a rule gives the pattern of a primitive's derivative as a whole, independent of how JAX computes it."""
    return primitive in _AS_ONE


def apply_rule(call: LinearCall) -> list[JacobianBlock | None]:
    """The blocks of all results of a call."""
    rule = _REGISTERED.get(call.primitive) or _RULES.get(call.primitive, dense_pattern)
    returned = rule(call)
    blocks = [returned] if returned is None or isinstance(returned, JacobianBlock) else returned
    problem = _problem(call, blocks)
    if problem:
        raise RuleError(
            f"the rule {getattr(rule, '__qualname__', rule)} for primitive '{call.primitive}' {problem}. Fix it, or "
            f"leave it unregistered: primitives without a rule are differentiated as dense blocks."
        )
    return list(blocks)


def _problem(call: LinearCall, blocks: Any) -> str | None:
    """A description of what is wrong with the result of a rule, or None."""
    if not isinstance(blocks, (list, tuple)) or not all(b is None or isinstance(b, JacobianBlock) for b in blocks):
        return f"must return a JacobianBlock, None, or a list of these, but returned {type(blocks).__name__}"
    if len(blocks) != len(call.out_shapes):
        return f"returned {len(blocks)} blocks for {len(call.out_shapes)} results"
    for block, out_shape in zip(blocks, call.out_shapes, strict=True):
        if block is not None and block.shape != out_shape + call.shape:
            return (
                f"returned a block of shape {block.shape}, but the result has shape {out_shape} and operand "
                f"{call.position} has shape {call.shape}, so the block must have shape {out_shape + call.shape}"
            )
    return None


def rules_for(*primitives: str):
    def register(rule: Rule) -> Rule:
        _RULES.update(dict.fromkeys(primitives, rule))
        return rule

    return register


def renaming_rules_for(*primitives: str):
    """Register a rule for primitives that move entries and do no arithmetic."""
    _RENAMING.update(primitives)
    return rules_for(*primitives)


def rules_as_one_for(*primitives: str):
    """Register a rule for nonlinear primitives.

    The rule describes the pattern of their derivative, independent of the steps that JAX takes.
    """
    _AS_ONE.update(primitives)
    return rules_for(*primitives)


def dense_pattern(call: LinearCall):
    """A pattern in which any entry of the results may depend on any entry of the operand."""
    inp = own_labels(call.shape, "inp")
    return [call.pattern(own_labels(shape, "out"), inp, number) for number, shape in enumerate(call.out_shapes)]
