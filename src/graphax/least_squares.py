"""Least squares: what a Gauss-Newton step needs, without the Jacobian."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from .api import kernel, value_and_jacve
from .errors import GraphaxError
from .trace import check_function


class NormalEquations(NamedTuple):
    """Of residuals r with the Jacobian J and weights W: ``matrix @ step = -gradient`` is the step of Gauss and Newton.

    Attributes:
        value: r, as the function returns it.
        matrix: JᵀWJ, exactly symmetric; rows and columns are the numbers of the first argument, one after the other.
        gradient: JᵀWr.
    """

    value: Any
    matrix: jax.Array
    gradient: jax.Array


def gauss_newton(function: Callable, *, order: Any = "auto", backend: str = "auto") -> Callable:
    """The normal equations of the residuals ``function`` by its first argument.

    Where this is mapped it is one kernel: half of the matrix is computed, and the Jacobian never leaves registers.

    Args:
        function: from a pytree of arrays, and further arguments, to a pytree of residuals.
        order: an elimination order for the Jacobian, as in `jacve`.
        backend: as in `kernel`.

    Returns:
        A function with the arguments of ``function`` that returns `NormalEquations`. It takes ``weights`` too: one
        number, or an array for each array of residuals.
    """
    check_function(function)

    def normal_equations(x: Any, *args: Any, weights: Any = None, **kwargs: Any) -> NormalEquations:
        start, unravel = ravel_pytree(x)

        def residuals(flat: jax.Array) -> tuple[jax.Array, Any]:
            value = function(unravel(flat), *args, **kwargs)
            return ravel_pytree(value)[0], value

        (flat, value), jacobian = value_and_jacve(residuals, has_aux=True, order=order, backend="xla")(start)
        if jnp.iscomplexobj(jacobian):
            raise GraphaxError("gauss_newton is for real residuals of real arguments")
        weighted = jacobian if weights is None else _broadcast(weights, value)[:, None] * jacobian
        products = jacobian.T @ weighted
        # Mirrored, so that a kernel does not compute the other half.
        matrix = jnp.triu(products) + jnp.triu(products, 1).T
        return NormalEquations(value, matrix, weighted.T @ flat)

    return kernel(normal_equations, backend=backend)


def _broadcast(weights: Any, value: Any) -> jax.Array:
    """Weights as one number for each residual."""
    if jax.tree_util.all_leaves([weights]) and jnp.ndim(weights) == 0:
        weights = jax.tree.map(lambda r: jnp.full(jnp.shape(r), weights), value)
    try:
        matching = jax.tree.map(lambda r, w: jnp.broadcast_to(w, jnp.shape(r)), value, weights)
    except ValueError as error:
        raise GraphaxError(f"weights are one number, or arrays like those of the residuals: {error}") from None
    return ravel_pytree(matching)[0]
