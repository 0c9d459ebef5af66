"""The rounding error of an elimination order. Orders are equal in exact arithmetic only."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .api import jacve
from .errors import GraphaxError


@dataclass(frozen=True)
class Accuracy:
    """The largest errors of single-precision Jacobians, each relative to the largest entry of its block.

    Attributes:
        order: the error of the given order.
        reverse: the error of reverse elimination, for comparison.
    """

    order: float
    reverse: float

    def __str__(self):
        return (
            f"Rounding at this point, in float32: an error of {self.order:.1e} of the largest entry of a block "
            f"(reverse: {self.reverse:.1e})"
        )


def accuracy(
    function: Callable, args: Sequence[Any], order: Any, argnums: int | Sequence[int], has_aux: bool
) -> Accuracy:
    """The rounding errors at these arguments, measured against double precision."""
    leaves = jax.tree.leaves(args)
    if not all(_is_number(leaf) for leaf in leaves) or jnp.result_type(*leaves) != jnp.float32:
        raise GraphaxError("accuracy=True compares float32 with float64, so all arguments must be numbers in float32")

    def blocks(order: Any, args: Sequence[Any]) -> list[np.ndarray]:
        result = jax.jit(jacve(function, argnums, has_aux, order=order))(*args)
        return [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(result[0] if has_aux else result)]

    with jax.enable_x64(True):
        exact = blocks("rev", jax.tree.map(_in_double, tuple(args)))
    return Accuracy(relative_error(blocks(order, args), exact), relative_error(blocks("rev", args), exact))


def _is_number(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray | np.generic | float | int) and not isinstance(leaf, jax.core.Tracer)


def _in_double(leaf: Any) -> Any:
    return np.asarray(leaf, np.float64) if jnp.result_type(leaf) == jnp.float32 else leaf


def relative_error(found: Sequence[Any], exact: Sequence[np.ndarray]) -> float:
    """The largest error of any entry, relative to the largest entry of its array.

    Equal infinities and pairs of NaN count as no error. If only one of two entries is finite, or if infinities differ,
    the error is infinite.
    """
    worst = 0.0
    for got, want in zip(found, exact, strict=True):
        values = np.asarray(got, np.float64).reshape(want.shape)
        finite = np.isfinite(want) & np.isfinite(values)
        if not np.array_equal(values[~finite], want[~finite], equal_nan=True):
            return float("inf")
        scale = float(np.max(np.abs(want[finite]), initial=0.0)) or 1.0
        worst = max(worst, float(np.max(np.abs(values[finite] - want[finite]), initial=0.0)) / scale)
    return worst
