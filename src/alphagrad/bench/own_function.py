"""A user's function as a task, which can be searched and measured like those that ship."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.tree_util import tree_flatten, tree_leaves, tree_unflatten

from graphax.trace import positions

from ..errors import SearchError
from ..finders.search import graph_of
from ..tasks.task import Task


def task_of(
    name: str,
    function: Callable[..., object],
    args: Sequence[Any],
    argnums: int | Sequence[int] = 0,
    batch_axes: Sequence[int | None] | None = None,
) -> Task:
    """The function as one of arrays, with a positional argument per array in ``args`` and per number under ``argnums``.

    Everything else is held fixed.

    Args:
        batch_axes: 0 for each argument that has its own values at each point of a batch, None for others. By default,
            the arguments under ``argnums`` are batched.
    """
    # Report problems with the function or its arguments first.
    graph_of(function, args, argnums, has_aux=False, simplify=False)
    numbers = {number % len(args) for number in positions(argnums)}
    mapped = numbers if batch_axes is None else _mapped(batch_axes, len(args))
    leaves, tree = tree_flatten(tuple(args))
    owners = [number for number, argument in enumerate(args) for _ in tree_leaves(argument)]
    places = [n for n, leaf in enumerate(leaves) if owners[n] in numbers or isinstance(leaf, np.ndarray | jax.Array)]
    values = tuple(np.asarray(leaves[n]) for n in places)

    def of_arrays(*arrays: Any) -> Any:
        full = list(leaves)
        for place, array in zip(places, arrays, strict=True):
            full[place] = array
        return function(*tree_unflatten(tree, full))

    return Task(
        name,
        description="a function of yours",
        field="",
        function=of_arrays,
        make_args=lambda scale, seed: values,
        argnums=tuple(n for n, place in enumerate(places) if owners[place] in numbers),
        batch_axes=tuple(0 if owners[place] in mapped else None for place in places),
    )


def _mapped(batch_axes: Sequence[int | None], count: int) -> set[int]:
    if len(batch_axes) != count or not set(batch_axes) <= {0, None}:
        raise SearchError(f"batch_axes must have 0 or None for each of the {count} arguments, but is {batch_axes!r}")
    return {number for number, axis in enumerate(batch_axes) if axis == 0}
