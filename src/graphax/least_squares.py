"""Least squares: the normal equations of a Gauss-Newton step, without storing the Jacobian."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree

from .api import value_and_jacve
from .backend import Backend, check_backend, compiled
from .errors import GraphaxError
from .order import OrderLike
from .trace import check_function


class NormalEquations(NamedTuple):
    """Normal equations of residuals r with Jacobian J and weights W.

    The Gauss-Newton step solves ``matrix @ step = -gradient``.

    Attributes:
        value: r, as the function returns it. With ``in_axes``, the residuals of all observations, along the first axis.
        matrix: JᵀWJ, exactly symmetric; rows and columns follow the flattened first argument.
        gradient: JᵀWr.
    """

    value: Any
    matrix: jax.Array
    gradient: jax.Array


def gauss_newton(
    function: Callable[..., object],
    in_axes: Sequence[Any] | None = None,
    *,
    order: OrderLike = "auto",
    backend: Backend = "auto",
) -> Callable[..., NormalEquations]:
    """The normal equations of the residuals ``function`` with respect to its first argument.

    Under ``jax.vmap`` the equations compile to one kernel, which computes half of the matrix and keeps the Jacobian in
    registers.

    Args:
        function: maps a pytree of arrays, and further arguments, to a pytree of residuals.
        in_axes: the axis of the observations for each further argument, or None, as in `jax.vmap`. ``function`` then
            returns the residuals of one observation, and the equations are summed over all observations. In a kernel
            the sum is a loop, so the code does not grow with the number of observations.
        order: an elimination order for the Jacobian, as in `jacve`.
        backend: as in `kernel`.

    Returns:
        A function with the arguments of ``function`` that returns `NormalEquations`. It also takes ``weights``: one
        number, or one array per array of residuals.
    """
    check_function(function)
    check_backend(backend)

    def at_once(x: Any, *args: Any, weights: Any = None, **kwargs: Any) -> NormalEquations:
        def everything(x: Any) -> Any:
            if in_axes is None:
                return function(x, *args, **kwargs)
            return jax.vmap(lambda *args: function(x, *args, **kwargs), in_axes=_checked(in_axes, args))(*args)

        return _normal_equations(everything, x, weights, order)

    def one_by_one(x: Any, *args: Any, weights: Any = None, **kwargs: Any) -> NormalEquations:
        axes = _checked(in_axes, args)
        spread = _of_observations(function, x, args, axes, kwargs, weights)
        moved = [None if axis is None else _first(argument, axis) for argument, axis in zip(args, axes, strict=True)]

        def add(totals: tuple[jax.Array, jax.Array], here: Any) -> tuple[Any, Any]:
            slices, weights = here
            now = [given if axis is None else own for given, own, axis in zip(args, slices, axes, strict=True)]
            found = _normal_equations(lambda x: function(x, *now, **kwargs), x, weights, order)
            return (totals[0] + found.matrix[upper], totals[1] + found.gradient), found.value

        start, _ = ravel_pytree(x)
        upper = np.triu_indices(start.size)
        zeros = jnp.zeros(len(upper[0]), start.dtype), jnp.zeros(start.size, start.dtype)
        (half, gradient), value = lax.scan(add, zeros, (moved, spread))
        places = np.zeros((start.size, start.size), np.int32)
        places[upper] = places.T[upper] = np.arange(len(upper[0]))
        return NormalEquations(value, half[places], gradient)

    return compiled(at_once, backend) if in_axes is None else compiled(one_by_one, backend, otherwise=at_once)


def _normal_equations(residuals: Callable, x: Any, weights: Any, order: Any) -> NormalEquations:
    start, unravel = ravel_pytree(x)

    def flattened(flat: jax.Array) -> tuple[jax.Array, Any]:
        value = residuals(unravel(flat))
        return ravel_pytree(value)[0], value

    (flat, value), jacobian = value_and_jacve(flattened, has_aux=True, order=order, backend="xla")(start)
    if jnp.iscomplexobj(jacobian):
        raise GraphaxError("gauss_newton needs real residuals of real arguments")
    weighted = jacobian if weights is None else ravel_pytree(_broadcast(weights, value))[0][:, None] * jacobian
    products = jacobian.T @ weighted
    # Mirror the upper triangle, so that a kernel does not compute the other half.
    above = np.tri(start.size, dtype=bool).T
    return NormalEquations(value, jnp.where(above, products, products.T), weighted.T @ flat)


def _checked(in_axes: Any, args: Sequence[Any]) -> tuple[Any, ...]:
    axes = tuple(in_axes)
    if len(axes) != len(args) or all(axis is None for axis in axes):
        raise GraphaxError(
            f"in_axes must have an axis or None for each argument after the first, and at least one axis, "
            f"but is {axes} for {len(args)} arguments"
        )
    return axes


def _first(argument: Any, axis: int) -> Any:
    return jax.tree.map(lambda leaf: jnp.moveaxis(leaf, axis, 0), argument)


def _of_observations(
    function: Callable, x: Any, args: Sequence[Any], axes: Sequence[Any], kwargs: dict[str, Any], weights: Any
) -> Any:
    """The weights of each observation, along the first axis; None without weights."""
    if weights is None:
        return None
    mapped = jax.vmap(lambda *args: function(x, *args, **kwargs), in_axes=tuple(axes))
    return _broadcast(weights, jax.eval_shape(mapped, *args))


def _broadcast(weights: Any, value: Any) -> Any:
    """Weights as one number per residual."""
    if jax.tree_util.all_leaves([weights]) and jnp.ndim(weights) == 0:
        weights = jax.tree.map(lambda r: jnp.full(jnp.shape(r), weights), value)
    try:
        return jax.tree.map(lambda r, w: jnp.broadcast_to(w, jnp.shape(r)), value, weights)
    except ValueError as error:
        raise GraphaxError(f"weights must be one number, or arrays like those of the residuals: {error}") from None
