"""The operations that random functions are made of, each one equation of a program.

For every operation, the shape and the bounds of the result follow from those of the operands. Bounds rule out results
that might not be finite. For example, an operand of a logarithm must be positive at every point of the domain.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import atan2, exp, inf, isfinite, log, prod, sqrt
from operator import mul
from typing import Any, NamedTuple

from jax import lax

# Operands of divisions, logarithms and roots stay this far from zero.
MARGIN = 0.2
# No value exceeds this, so products of dozens of derivatives stay far from overflow.
LARGEST = 20.0


class Bounds(NamedTuple):
    """Bounds on all elements of a value."""

    low: float
    high: float

    @property
    def apart_from_zero(self) -> bool:
        return self.low >= MARGIN or self.high <= -MARGIN

    @property
    def acceptable(self) -> bool:
        return isfinite(self.low) and isfinite(self.high) and max(-self.low, self.high) <= LARGEST

    def summed(self, terms: int) -> "Bounds":
        """The bounds of a sum of this many elements."""
        return Bounds(self.low * terms, self.high * terms)


# The bounds of values that are not finite on the whole domain.
UNSAFE = Bounds(-inf, inf)
UNIT = Bounds(-1.0, 1.0)


@dataclass(frozen=True)
class Elementwise:
    """An operation on operands of equal shape. ``bounds`` returns `UNSAFE` if the result might not be finite."""

    evaluate: Callable
    bounds: Callable[..., Bounds]


def _increasing(function: Callable[[float], float]) -> Callable[[Bounds], Bounds]:
    return lambda x: Bounds(function(x.low), function(x.high))


def _positive(function: Callable[[float], float]) -> Callable[[Bounds], Bounds]:
    return lambda x: Bounds(*sorted((function(x.low), function(x.high)))) if x.low >= MARGIN else UNSAFE


def _unit(x: Bounds) -> Bounds:
    return UNIT


def _square(x: Bounds) -> Bounds:
    ends = x.low**2, x.high**2
    return Bounds(0.0 if x.low <= 0 <= x.high else min(ends), max(ends))


def _exponential(x: Bounds) -> Bounds:
    return Bounds(exp(x.low), exp(x.high)) if x.high <= log(LARGEST) else UNSAFE


def _at_corners(function: Callable[[float, float], float], x: Bounds, y: Bounds) -> Bounds:
    """The bounds of a function that is monotonic in each of its operands."""
    corners = [function(a, b) for a in x for b in y]
    return Bounds(min(corners), max(corners))


def _product(x: Bounds, y: Bounds) -> Bounds:
    return _at_corners(mul, x, y)


def _quotient(x: Bounds, y: Bounds) -> Bounds:
    return _product(x, Bounds(1 / y.high, 1 / y.low)) if y.apart_from_zero else UNSAFE


def _angle(y: Bounds, x: Bounds) -> Bounds:
    return _at_corners(atan2, y, x) if x.low >= MARGIN else UNSAFE


UNARY: dict[str, Elementwise] = {
    "sin": Elementwise(lax.sin, _unit),
    "cos": Elementwise(lax.cos, _unit),
    "tanh": Elementwise(lax.tanh, _unit),
    "logistic": Elementwise(lax.logistic, lambda x: Bounds(1 / (1 + exp(-x.low)), 1 / (1 + exp(-x.high)))),
    "exp": Elementwise(lax.exp, _exponential),
    "log": Elementwise(lax.log, _positive(log)),
    "sqrt": Elementwise(lax.sqrt, _positive(sqrt)),
    "rsqrt": Elementwise(lax.rsqrt, _positive(lambda x: 1 / sqrt(x))),
    "square": Elementwise(lax.square, _square),
    "neg": Elementwise(lax.neg, lambda x: Bounds(-x.high, -x.low)),
    "half": Elementwise(lambda x: x * 0.5, _increasing(lambda x: x * 0.5)),
    "increment": Elementwise(lambda x: x + 1.5, _increasing(lambda x: x + 1.5)),
}
BINARY: dict[str, Elementwise] = {
    "add": Elementwise(lax.add, lambda x, y: Bounds(x.low + y.low, x.high + y.high)),
    "sub": Elementwise(lax.sub, lambda x, y: Bounds(x.low - y.high, x.high - y.low)),
    "mul": Elementwise(lax.mul, _product),
    "div": Elementwise(lax.div, _quotient),
    "atan2": Elementwise(lax.atan2, _angle),
}
# These are safe for all bounds, but one operand may always be the larger one. So they are a last resort.
LAST_RESORT: dict[str, Elementwise] = {
    "max": Elementwise(lax.max, lambda x, y: Bounds(max(x.low, y.low), max(x.high, y.high))),
}
ELEMENTWISE = UNARY | BINARY | LAST_RESORT

# Operations that change shapes, by name, as functions of operands and one hashable parameter.
SHAPED: dict[str, Callable[..., Any]] = {
    "matmul": lambda contract, x, y: lax.dot_general(x, y, (contract, ((), ()))),
    "reduce_sum": lambda axes, x: lax.reduce_sum(x, axes),
    "reduce_max": lambda axes, x: lax.reduce_max(x, axes),
    "reshape": lambda shape, x: lax.reshape(x, shape),
    "transpose": lambda axes, x: lax.transpose(x, axes),
    "slice": lambda where, x: lax.slice_in_dim(x, where[1], where[2], axis=where[0]),
    "broadcast": lambda size, x: lax.broadcast(x, (size,)),
}


def factorisations(size: int) -> list[tuple[int, ...]]:
    """The shapes of vectors and matrices with this many elements, without axes of size 1."""
    return [(size,), *((n, size // n) for n in range(2, size // 2 + 1) if size % n == 0)]


def without_axes(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """The shape without some axes, and the number of elements that are reduced to one."""
    return tuple(n for axis, n in enumerate(shape) if axis not in axes), prod(shape[axis] for axis in axes)
