"""Jacobians and matrices of small operators, found by elimination."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
from jax.tree_util import tree_leaves, tree_map

from ..api import jacve, value_and_jacve

# Larger Jacobians do not suit kernels, and pushing unit vectors takes less time to compile.
LARGEST = 64


def with_jacobian(function: Callable) -> Callable:
    """``function(y, args)``, whose derivative with respect to ``y`` is found by elimination.

    ``function`` returns a value and auxiliary data. Linearising the result leaves a product with a matrix, whatever the
    function is.
    """

    def evaluated(y: Any, args: Any) -> tuple[Any, Any]:
        _, more = function(y, args)
        return _value(function, y, args), more

    return evaluated


@eqx.filter_custom_jvp
def _value(function: Callable, y: Any, args: Any) -> Any:
    return function(y, args)[0]


@_value.def_jvp
def _derivative(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (function, y, args), (by_function, by_y, by_args) = primals, tangents
    value, result = None, None
    if tree_leaves(by_y):
        value, blocks = value_and_jacve(lambda y: function(y, args)[0], backend="xla")(y)
        structure = jax.eval_shape(lambda: value)
        result = lx.PyTreeLinearOperator(blocks, structure).mv(tree_map(_whole, by_y, y, is_leaf=_is_none))
    if tree_leaves((by_function, by_args)):
        others = (function, args), (by_function, by_args)
        value, moved = eqx.filter_jvp(lambda function, args: function(y, args)[0], *others)
        result = moved if result is None else tree_map(jnp.add, result, moved)
    if value is None:
        value = function(y, args)[0]
    return value, result if result is not None else tree_map(jnp.zeros_like, value)


def _is_none(leaf: Any) -> bool:
    return leaf is None


def _whole(tangent: Any, primal: Any) -> Any:
    return jnp.zeros_like(primal) if tangent is None else tangent


def matrix_of(operator: lx.AbstractLinearOperator) -> jax.Array:
    """The matrix of an operator.

    lineax pushes all unit vectors through an operator that is a function. Elimination leaves out products with zero
    entries, which matters in a kernel, where every product is code.
    """
    small = is_small(operator.in_structure(), operator.out_structure())
    if not isinstance(operator, lx.FunctionLinearOperator | lx.JacobianLinearOperator) or not small:
        return operator.as_matrix()
    start = tree_map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), operator.in_structure())
    blocks = jacve(operator.mv, backend="xla")(start)
    return lx.PyTreeLinearOperator(blocks, operator.out_structure()).as_matrix()


def is_small(*structures: Any) -> bool:
    """True for pytrees of real numbers that are few enough for a matrix whose entries are code."""
    leaves = [tree_leaves(structure) for structure in structures]
    real = all(jnp.issubdtype(leaf.dtype, jnp.floating) for side in leaves for leaf in side)
    return real and all(0 < sum(leaf.size for leaf in side) <= LARGEST for side in leaves)
