"""Jacobians and matrices of small operators, found by elimination."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import lineax as lx
from jax.tree_util import tree_leaves, tree_map

from ..api import jacve

# Larger Jacobians are not for kernels, and pushing unit vectors takes less time to compile.
LARGEST = 64


def jacobian_operator(function: Callable, point: Any, out_structure: Any, tags: Any = ()) -> lx.PyTreeLinearOperator:
    """The Jacobian of a function of a pytree."""
    return lx.PyTreeLinearOperator(jacve(function, backend="xla")(point), out_structure, tags)


def matrix_of(operator: lx.AbstractLinearOperator) -> Any:
    """The matrix of an operator.

    lineax pushes all unit vectors through an operator that is a function. By elimination, products with entries that are
    zero are not there: in a kernel, every product is code.
    """
    small = is_small(operator.in_structure(), operator.out_structure())
    if not isinstance(operator, lx.FunctionLinearOperator | lx.JacobianLinearOperator) or not small:
        return operator.as_matrix()
    start = tree_map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), operator.in_structure())
    return jacobian_operator(operator.mv, start, operator.out_structure()).as_matrix()


def is_small(*structures: Any) -> bool:
    """True for pytrees of real numbers, few enough for a matrix of numbers that are code."""
    leaves = [tree_leaves(structure) for structure in structures]
    real = all(jnp.issubdtype(leaf.dtype, jnp.floating) for side in leaves for leaf in side)
    return real and all(0 < sum(leaf.size for leaf in side) <= LARGEST for side in leaves)
