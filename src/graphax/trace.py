"""Traces a Python function with example arguments to a flat `Program`, as `jax.jacfwd` would see it."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from operator import index
from typing import Any, SupportsIndex

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import tree_flatten, tree_leaves, tree_map, tree_structure, tree_unflatten

from . import _jax
from ._jax import Program
from .collectives import with_collectives_apart
from .simplify import fold_constants, simplify


@dataclass(frozen=True)
class Request:
    """What to differentiate, and how: the arguments of `jax.jacfwd` and `jax.jacrev`, under their names."""

    argnums: int | Sequence[int] = 0
    has_aux: bool = False
    holomorphic: bool = False
    allow_int: bool = False


@dataclass(frozen=True, eq=False)
class Traced:
    """A traced function.

    Attributes:
        program: maps the flattened arguments under ``argnums`` to the flattened outputs, followed by the flattened aux.
        args: the flattened arguments under ``argnums``.
        arg_trees, single: the pytree of each argument under ``argnums``, and whether ``argnums`` was an integer.
        out_tree, aux_tree: the pytrees of the result and of the auxiliary result.
        out_count: the number of flattened outputs.
        names: a readable name per flattened argument.
        holomorphic: whether the derivative is complex.
    """

    program: Program
    args: tuple[Any, ...]
    arg_trees: tuple[Any, ...]
    single: bool
    out_tree: Any
    aux_tree: Any
    out_count: int
    names: tuple[str, ...]
    holomorphic: bool = False

    def nest(self, blocks: Sequence[Sequence[Any]]) -> Any:
        """Arrange Jacobians, indexed by flat output and flat input, as `jax.jacfwd` does."""
        return tree_unflatten(self.out_tree, [self.like_arguments(row) for row in blocks])

    def like_arguments(self, row: Sequence[Any]) -> Any:
        """Arrange one item per flat input like the arguments."""
        row, trees = list(row), []
        for tree in self.arg_trees:
            trees.append(tree_unflatten(tree, row[: tree.num_leaves]))
            row = row[tree.num_leaves :]
        return trees[0] if self.single else tuple(trees)


def trace(
    function: Callable,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    request: Request,
    simplified: bool,
) -> Traced:
    """Trace ``function`` with respect to the arguments under ``argnums``. All others are constants."""
    check_function(function)
    numbers = _checked_positions(function, args, request.argnums)
    flat: list[Any] = []
    trees: list[Any] = []
    names: list[str] = []
    for number in numbers:
        leaves, tree = tree_flatten(args[number])
        paths = [path for path, _ in jax.tree_util.tree_flatten_with_path(args[number])[0]]
        flat.extend(leaves)
        trees.append(tree)
        names.extend(f"{_parameter(function, number)}{jax.tree_util.keystr(path)}" for path in paths)
    for leaf, name in zip(flat, names, strict=True):
        _check_argument(leaf, name, request)

    shapes: dict[str, Any] = {}
    given = list(args)

    # JAX names the wrapped function, with its file and line, in the errors it raises.
    @wraps(function)
    def flat_function(*leaves: Any):
        full, rest = list(given), list(leaves)
        for number, tree in zip(numbers, trees, strict=True):
            full[number] = tree_unflatten(tree, rest[: tree.num_leaves])
            del rest[: tree.num_leaves]
        result = function(*full, **kwargs)
        aux = None
        if request.has_aux:
            if not isinstance(result, (tuple, list)) or len(result) != 2:
                raise TypeError(f"expected output of function with has_aux=True to be a pair, got {type(result)}")
            result, aux = result
        shapes["out"], shapes["aux"] = tree_structure(result), tree_structure(aux)
        return [*tree_leaves(result), *tree_leaves(aux)]

    try:
        traced = _jax.trace(flat_function, *flat)
    except jax.errors.TracerArrayConversionError:
        # NumPy cannot index its arrays by traced values, but JAX can. Convert only then: a NumPy number may determine
        # shapes.
        given = tree_map(lambda leaf: jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf, given)
        traced = _jax.trace(flat_function, *flat)
    program = fold_constants(traced)
    out_count = shapes["out"].num_leaves
    if request.holomorphic:
        _check_complex_outputs(program.outputs[:out_count])
    return Traced(
        with_collectives_apart(simplify(program) if simplified else program),
        tuple(flat),
        tuple(trees),
        not isinstance(request.argnums, Sequence),
        shapes["out"],
        shapes["aux"],
        out_count,
        tuple(names),
        request.holomorphic,
    )


def check_function(function: Any) -> None:
    if not callable(function):
        raise TypeError(f"expected a function to differentiate, such as in jacve(f)(x), but got {function!r}")


def positions(argnums: Any) -> tuple[int, ...]:
    try:
        return tuple(map(index, argnums)) if isinstance(argnums, Sequence) else (index(argnums),)
    except TypeError:
        raise TypeError(
            f"argnums must be a number or a sequence of numbers, such as (0, 1), but is {argnums!r}"
        ) from None


def _checked_positions(function: Callable, args: Sequence[Any], argnums: int | Sequence[int]) -> tuple[int, ...]:
    numbers = positions(argnums)
    for number in numbers:
        if not -len(args) <= number < len(args):
            raise ValueError(
                f"argnums={argnums} asks for positional argument {number}, but {_name(function)} was called with "
                f"{len(args)}. Only positional arguments can be differentiated; pass them by position."
            )
    numbers = tuple(number % len(args) for number in numbers)
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"argnums={argnums} asks for the same argument twice")
    return numbers


def check_argnums(argnums: Any) -> None:
    """Raise unless ``argnums`` is a number or a tuple of numbers.

    If it is an elimination order, the error says where to pass it.
    """
    if isinstance(argnums, (list, str)) or not isinstance(argnums, (Sequence, SupportsIndex)):
        numbers = isinstance(argnums, list) and all(isinstance(n, int) for n in argnums)
        several = f", and several arguments as a tuple: argnums={tuple(argnums)!r}" if numbers else ""
        raise TypeError(
            f"argnums must be a number or a tuple of numbers, such as (0, 1), as in jax.jacfwd, but is {argnums!r}. "
            f"Pass an elimination order by name: order={argnums!r}{several}."
        )
    positions(argnums)


def _check_complex_outputs(outputs: Sequence[Any]) -> None:
    for atom in outputs:
        if not _jax.is_complex(atom.aval):
            raise TypeError(
                f"jacve with holomorphic=True requires outputs with complex dtype, but got {_jax.dtype(atom)}."
            )


def _check_argument(leaf: Any, name: str, request: Request) -> None:
    dtype = getattr(leaf, "dtype", None)
    dtype = np.result_type(leaf) if dtype is None and isinstance(leaf, (bool, int, float, complex)) else dtype
    if dtype is None:
        raise TypeError(f"Argument '{leaf}' of type {type(leaf)} is not a valid JAX type (differentiating by {name}).")
    if request.holomorphic:
        if not jax.dtypes.issubdtype(dtype, np.complexfloating):
            raise TypeError(
                f"jacve with holomorphic=True requires inputs with complex dtype, but got {dtype} for {name}."
            )
        return
    if request.allow_int and (jax.dtypes.issubdtype(dtype, np.integer) or jax.dtypes.issubdtype(dtype, np.bool_)):
        return
    if not jax.dtypes.issubdtype(dtype, np.floating):
        raise TypeError(
            f"jacve requires real-valued inputs (input dtype that is a sub-dtype of np.floating), but got {dtype} "
            f"for {name}. Choose other argnums, or convert the argument to a floating dtype; integers have a "
            f"derivative of zero with allow_int=True. For holomorphic differentiation, pass holomorphic=True; for "
            f"other functions of complex inputs differentiate by the real and the imaginary part."
        )


def _parameter(function: Callable, number: int) -> str:
    try:
        return list(inspect.signature(function).parameters)[number]
    except (TypeError, ValueError, IndexError):
        return f"argument {number}"


def _name(function: Callable) -> str:
    return getattr(function, "__name__", repr(function))
