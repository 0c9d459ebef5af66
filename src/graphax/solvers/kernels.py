"""Functions of arbitrary objects as kernels: their arrays are operands, and everything else is part of the code."""

from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any

import equinox as eqx
import jax
from jax.tree_util import tree_flatten, tree_leaves, tree_unflatten

from .. import _jax
from ..backend import run

# Whether an outer kernel is being made, which everything inside becomes part of.
_within: ContextVar[bool] = ContextVar("within", default=False)


def in_kernel(function: Callable) -> Callable:
    """``function`` as one kernel if it pays off. Otherwise XLA runs it, with smaller kernels inside.

    Arguments and results are pytrees whose leaves may be anything, as for `equinox.filter_jit`.
    """

    @wraps(function)
    def compiled(*args: Any) -> Any:
        if _within.get():
            return function(*args)
        arrays, rest = eqx.partition(args, _is_traced if _jax.is_traced(tree_leaves(args)) else eqx.is_array)
        leaves, tree = tree_flatten(arrays)
        others = []

        def flat(*leaves: Any) -> Any:
            result = function(*eqx.combine(tree_unflatten(tree, leaves), rest))
            arrays, other = eqx.partition(result, eqx.is_array)
            others.append(other)
            return arrays

        def whole(*leaves: Any) -> Any:
            outside = _within.set(True)
            try:
                return flat(*leaves)
            finally:
                _within.reset(outside)

        # Trace it, because nothing is worth a kernel outside of `jax.jit`.
        results = jax.jit(lambda *leaves: run(whole, leaves, "auto", patient=True, otherwise=flat))(*leaves)
        return eqx.combine(results, others[-1])

    return compiled


def _is_traced(leaf: Any) -> bool:
    """True for operands. Arrays with known values are constants, whose zeros Jacobians can use."""
    return _jax.is_traced([leaf])
