"""A check of Jacobians by elimination against JAX, along random directions."""

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import tree_leaves, tree_map, tree_unflatten

from .api import jacve
from .block import JacobianBlock
from .errors import JacobianMismatch
from .order import OrderLike
from .trace import positions


def check_jacobian(
    function: Callable[..., object],
    *args: Any,
    order: OrderLike = "auto",
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    probes: int = 3,
    rtol: float | None = None,
    seed: int = 0,
    **kwargs: Any,
) -> float:
    """Compare the Jacobian by elimination with `jax.jvp` along random directions.

    This forms no dense Jacobian, so it works for functions of any size. Returns the largest relative error. If it
    exceeds ``rtol`` (by default the square root of the precision), raises `JacobianMismatch`, which names the output.
    """
    if not isinstance(probes, int) or probes < 1:
        raise ValueError(f"probes must be a whole number, 1 or more, but is {probes!r}")
    if rtol is not None and not (isinstance(rtol, Real) and rtol >= 0):
        raise ValueError(f"rtol must be 0 or more, but is {rtol!r}")
    numbers = positions(argnums)
    blocks = jacve(function, numbers, order=order, has_aux=has_aux, sparse=True)(*args, **kwargs)
    blocks = blocks[0] if has_aux else blocks

    def restricted(*chosen: Any):
        full = list(args)
        for number, argument in zip(numbers, chosen, strict=True):
            full[number] = argument
        result: Any = function(*full, **kwargs)
        return result[0] if has_aux else result

    chosen = tree_map(jnp.asarray, tuple(args[number] for number in numbers))
    worst = 0.0
    for key in jax.random.split(jax.random.key(seed), probes):
        direction = _random_like(key, chosen)
        _, expected = jax.jvp(restricted, chosen, direction)
        leaves, tree = jax.tree_util.tree_flatten_with_path(expected)
        for (path, want), row in zip(leaves, _rows(tree, blocks), strict=True):
            if want.dtype != jax.dtypes.float0:
                worst = max(worst, _compared(row, direction, want, rtol, jax.tree_util.keystr(path)))
    return worst


def _rows(tree: Any, blocks: Any) -> list[list[JacobianBlock]]:
    """The blocks of each leaf of the output, as one list per leaf."""
    rows = tree.flatten_up_to(blocks)
    return [tree_leaves(row, is_leaf=lambda node: isinstance(node, JacobianBlock)) for row in rows]


def _compared(row: list[JacobianBlock], direction: Any, want: Any, rtol: float | None, path: str) -> float:
    """The relative error of a row of blocks applied to ``direction``."""
    got = jnp.zeros_like(want)
    for block, tangent in zip(row, tree_leaves(direction), strict=True):
        got = got + block.apply(tangent)
    scale = float(jnp.max(jnp.abs(want), initial=0.0)) or 1.0
    error = float(jnp.max(jnp.abs(got - want), initial=0.0)) / scale
    limit = float(jnp.finfo(want.dtype).eps) ** 0.5 if rtol is None else rtol
    # Infinities and NaN that JAX has as well are not a difference.
    if not error <= limit and not jnp.allclose(got, want, rtol=limit, equal_nan=True):
        raise JacobianMismatch(
            f"the Jacobian of output{path} differs from jax.jvp by {error:.3g} (relative), more than {limit:.3g}. If "
            f"this is not a matter of precision (try float64), it is a bug in a structure rule: graphax.explain "
            f"shows which primitives are involved."
        )
    return error


def _random_like(key: Any, tree: Any) -> Any:
    leaves, structure = jax.tree_util.tree_flatten(tree)
    keys = jax.random.split(key, max(1, len(leaves)))
    return tree_unflatten(
        structure, [jax.random.normal(k, np.shape(x), jnp.result_type(x)) for k, x in zip(keys, leaves, strict=False)]
    )
