"""What users call: Jacobians and Hessians by elimination, and a check of them."""

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from numbers import Real
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import tree_leaves, tree_map, tree_unflatten

from .backend import check_backend, run
from .block import JacobianBlock
from .errors import JacobianMismatch
from .execute import Accumulation
from .graph import Derivation, derive
from .order import Order, loaded, resolve
from .plan import make_plan
from .trace import Request, Traced, check_argnums, check_function, positions, trace


def jacve(
    function: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    order: Any = "auto",
    sparse: bool = False,
    backend: str = "auto",
) -> Callable:
    """The Jacobian of ``function`` by vertex elimination, exact for every order.

    Takes and returns what `jax.jacfwd` does, in the same order; what is not JAX's is given by name.

    Args:
        function: any function that JAX can differentiate, of pytrees of arrays.
        argnums: which positional arguments to differentiate by: a number, or a tuple of numbers.
        has_aux: whether ``function`` returns a pair of the result and auxiliary data that passes through.
        holomorphic: whether ``function`` is holomorphic; its inputs and outputs are complex then.
        allow_int: whether integer arguments may stand under ``argnums``; their derivatives are zeros of their dtype, as
            in `jax.jacrev`.
        order: in which order the intermediate values are eliminated: a preset (``"auto"``, ``"fwd"``, ``"rev"``,
            ``"markowitz"``, ...), a sequence of vertex numbers (equations of the inlined jaxpr, counted from 1 by
            output variable), an `Order`, the path of a saved one, or a function from the graph to an order.
        sparse: return a `JacobianBlock` in place of every array, without structural zeros and repetitions (those of
            complex outputs are dense).
        backend: ``"xla"`` leaves the arithmetic to XLA; ``"native"`` compiles it to one kernel, vectorised over what it
            is mapped over, and raises `NativeError` for functions it cannot take; ``"auto"`` does so where it can and
            where that should be faster. Kernels are for the CPU and, of functions that are mapped, for NVIDIA's GPUs;
            everything else is XLA's. `explain` says what runs and why.

    Returns:
        A function with the arguments of ``function`` that returns the Jacobian, as `jax.jacfwd` arranges it, or a
        pair of the Jacobian and the auxiliary data.
    """
    request = Request(argnums, has_aux, holomorphic, allow_int)
    evaluate = _evaluation(function, order, request, sparse, backend, with_value=False)

    @wraps(function, assigned=("__name__", "__qualname__", "__module__"))
    def jacobian(*args: Any, **kwargs: Any):
        traced, aux, result = evaluate(args, kwargs)
        return (result, tree_unflatten(traced.aux_tree, aux)) if has_aux else result

    return jacobian


def value_and_jacve(
    function: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    order: Any = "auto",
    sparse: bool = False,
    backend: str = "auto",
) -> Callable:
    """Like `jacve`, but returns ``(value, Jacobian)``, or ``((value, aux), Jacobian)`` with ``has_aux``."""
    request = Request(argnums, has_aux, holomorphic, allow_int)
    evaluate = _evaluation(function, order, request, sparse, backend, with_value=True)

    @wraps(function, assigned=("__name__", "__qualname__", "__module__"))
    def value_and_jacobian(*args: Any, **kwargs: Any):
        traced, outputs, result = evaluate(args, kwargs)
        value = tree_unflatten(traced.out_tree, outputs[: traced.out_count])
        if has_aux:
            value = value, tree_unflatten(traced.aux_tree, outputs[traced.out_count :])
        return value, result

    return value_and_jacobian


def _evaluation(
    function: Callable,
    order: Any,
    request: Request,
    sparse: bool,
    backend: str,
    with_value: bool,
) -> Callable[[Sequence[Any], dict[str, Any]], tuple[Traced, list[Any], Any]]:
    """From arguments to the traced function, its flat outputs and the Jacobian."""
    check_function(function)
    check_argnums(request.argnums)
    order = tuple(order) if isinstance(order, Iterator) else order
    check_backend(backend)

    def evaluate(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Traced, list[Any], Any]:
        derivation, found = prepare(function, args, kwargs, order, request)
        traced, plan = derivation.traced, make_plan(derivation.graph, found)
        accumulation = Accumulation(derivation, plan, sparse, 0 if with_value else traced.out_count)
        outputs, blocks = run(accumulation, traced.args, backend)
        return traced, outputs, traced.nest(blocks)

    return evaluate


def hessve(
    function: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    order: Any = "auto",
    gradient_order: Any = "auto",
    backend: str = "auto",
) -> Callable:
    """The Hessian of ``function``: the Jacobian of its gradient, both by elimination.

    ``order`` is for the outer elimination, ``gradient_order`` for the gradient. Returns what `jax.hessian` does.
    """
    how = argnums, has_aux, holomorphic, allow_int
    gradient = jacve(function, *how, order=gradient_order, backend="xla")
    return jacve(gradient, *how, order=order, backend=backend)


def check_jacobian(
    function: Callable,
    *args: Any,
    order: Any = "auto",
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    probes: int = 3,
    rtol: float | None = None,
    seed: int = 0,
    **kwargs: Any,
) -> float:
    """Compare the Jacobian by elimination with `jax.jvp` along random directions.

    No dense Jacobian is formed, so any size can be checked. Returns the largest relative error; raises
    `JacobianMismatch`, naming the output, if it exceeds ``rtol`` (by default the square root of the precision).
    """
    if not isinstance(probes, int) or probes < 1:
        raise ValueError(f"probes is how many directions are tried, 1 or more, but is {probes!r}")
    if rtol is not None and not (isinstance(rtol, Real) and rtol >= 0):
        raise ValueError(f"rtol is a relative error, 0 or more, but is {rtol!r}")
    numbers = positions(argnums)
    blocks = jacve(function, numbers, order=order, has_aux=has_aux, sparse=True)(*args, **kwargs)
    blocks = blocks[0] if has_aux else blocks

    def restricted(*chosen: Any):
        full = list(args)
        for number, argument in zip(numbers, chosen, strict=True):
            full[number] = argument
        result = function(*full, **kwargs)
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
    """The blocks of each leaf of the output."""
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
    # Infinities and NaN where JAX has them as well are no difference.
    if not error <= limit and not jnp.allclose(got, want, rtol=limit, equal_nan=True):
        raise JacobianMismatch(
            f"the Jacobian of output{path} differs from jax.jvp by {error:.3g} (relative), more than {limit:.3g}. If "
            f"this is not a matter of precision (try float64), it is a bug in a structure rule: graphax.explain "
            f"shows which primitives are involved."
        )
    return error


def prepare(
    function: Callable,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    order: Any,
    request: Request,
) -> tuple[Derivation, Order]:
    """Trace, build the graph and find the order. The graph is simplified where no vertex numbers are at stake."""
    order = loaded(order)
    simplified = order.simplified if isinstance(order, Order) else isinstance(order, str) and order == "auto"
    derivation = derive(trace(function, args, kwargs, request, simplified), simplified)
    return derivation, resolve(order, derivation.graph)


def _random_like(key: Any, tree: Any) -> Any:
    leaves, structure = jax.tree_util.tree_flatten(tree)
    keys = jax.random.split(key, max(1, len(leaves)))
    return tree_unflatten(
        structure, [jax.random.normal(k, np.shape(x), jnp.result_type(x)) for k, x in zip(keys, leaves, strict=False)]
    )
