"""The public functions: Jacobians and Hessians by elimination, and the graphs behind them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from jax.tree_util import tree_unflatten

from . import _jax, unknown_sizes
from ._jax import Program
from .backend import Backend, attempted, check_backend, compiled, is_alone, run
from .entries import Sparsity, sparsity_of
from .graph import ComputationGraph
from .hessian import hessian_program, typed
from .hessian_modes import is_passed_first, passes_of, plain_at_once, plain_hessian
from .order import OrderLike
from .pipeline import Pipeline
from .structure import zero
from .trace import Request, Traced, check_argnums, check_function

P = ParamSpec("P")
Value = TypeVar("Value")


def jacve(
    function: Callable[P, object],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    order: OrderLike = "auto",
    sparse: bool = False,
    backend: Backend = "auto",
) -> Callable[P, Any]:
    """The Jacobian of ``function`` by vertex elimination, exact for every order.

    Has the call signature of `jax.jacfwd` and returns the same; options that JAX does not have are keyword-only.

    Args:
        function: any function that JAX can differentiate, of pytrees of arrays.
        argnums: the positional arguments to differentiate with respect to: a number, or a tuple of numbers.
        has_aux: whether ``function`` returns a pair of the result and auxiliary data that passes through.
        holomorphic: whether ``function`` is holomorphic, with complex inputs and outputs.
        allow_int: whether ``argnums`` may include integer arguments; their derivatives are zeros of their dtype, as
            in `jax.jacrev`.
        order: the elimination order of the intermediate values: a preset (``"auto"``, ``"fwd"``, ``"rev"``,
            ``"markowitz"``, ...), a sequence of vertex numbers (equations of the inlined jaxpr, counted from 1 by
            output variable), an `Order`, the path of a saved order, or a function that maps the graph to an order.
        sparse: return a `JacobianBlock` in place of every array, without structural zeros and repetitions. Blocks of
            complex outputs are dense.
        backend: ``"xla"`` leaves the arithmetic to XLA; ``"native"`` compiles it to one kernel, vectorised over mapped
            points, and raises `NativeError` for unsupported functions; ``"auto"`` compiles a kernel if that is possible
            and should be faster. Kernels run on the CPU and, for mapped functions, on NVIDIA GPUs; XLA runs everything
            else. `explain` says which backend runs and why.

    Returns:
        A function with the arguments of ``function`` that returns the Jacobian, as `jax.jacfwd` arranges it, or a
        pair of the Jacobian and the auxiliary data.
    """
    request = Request(argnums, has_aux, holomorphic, allow_int)
    evaluate = _evaluation(function, order, request, backend, sparse=sparse)

    @wraps(function, assigned=("__name__", "__qualname__", "__module__"))
    def jacobian(*args: P.args, **kwargs: P.kwargs) -> Any:
        traced, aux, result = evaluate(args, kwargs)
        return (result, tree_unflatten(traced.aux_tree, aux)) if has_aux else result

    return jacobian


def value_and_jacve(
    function: Callable[P, Value],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    order: OrderLike = "auto",
    sparse: bool = False,
    backend: Backend = "auto",
) -> Callable[P, tuple[Value, Any]]:
    """Like `jacve`, but returns ``(value, Jacobian)``, or ``((value, aux), Jacobian)`` with ``has_aux``."""
    request = Request(argnums, has_aux, holomorphic, allow_int)
    evaluate = _evaluation(function, order, request, backend, sparse=sparse, with_value=True)

    @wraps(function, assigned=("__name__", "__qualname__", "__module__"))
    def value_and_jacobian(*args: P.args, **kwargs: P.kwargs) -> tuple[Value, Any]:
        traced, outputs, result = evaluate(args, kwargs)
        value = tree_unflatten(traced.out_tree, outputs[: traced.out_count])
        if has_aux:
            value = value, tree_unflatten(traced.aux_tree, outputs[traced.out_count :])
        return value, result

    return value_and_jacobian


def _evaluation(
    function: Callable, order: Any, request: Request, backend: str, **how: bool
) -> Callable[[Sequence[Any], dict[str, Any]], tuple[Traced, list[Any], Any]]:
    """A function that maps arguments to the traced function, its flat outputs and the Jacobian."""
    order = _checked(function, order, request, backend)

    def evaluate(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Traced, list[Any], Any]:
        pipeline = Pipeline(function, args, kwargs, request, order, **how)
        unknown = _jax.unknown_shape(pipeline.traced.program) is not None
        outputs, jacobian = unknown_sizes.jacobian(pipeline, backend) if unknown else pipeline.run(backend)
        return pipeline.traced, outputs, jacobian

    return evaluate


def _checked(function: Callable, order: Any, request: Request, backend: str) -> Any:
    """Raise if no arguments could make the request valid. Returns the order in a form that can be read repeatedly."""
    check_function(function)
    check_argnums(request.argnums)
    check_backend(backend)
    return tuple(order) if isinstance(order, Iterator) else order


def hessve(
    function: Callable[P, object],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    order: OrderLike = "auto",
    sparse: bool = False,
    backend: Backend = "auto",
) -> Callable[P, Any]:
    """The Hessian of ``function`` by elimination, symmetric.

    Has the call signature of `jax.hessian` and returns the same. For a real scalar function without loops, graphax
    computes one half and mirrors it. Matrices of up to 256 × 256 numbers are exactly symmetric. In larger ones, XLA may
    round the two halves differently, because reading both from one costs as much as computing them. ``order`` is an
    order of the graph of ``function``; every intermediate value is eliminated together with its adjoint. For other
    functions, graphax differentiates the Jacobian once more, and ``order`` is the order of the Jacobian.

    The other arguments are those of `jacve`.
    """
    request = Request(argnums, has_aux, holomorphic, allow_int)
    evaluate = _second_derivatives(function, order, request, backend, sparse)

    @wraps(function, assigned=("__name__", "__qualname__", "__module__"))
    def hessian(*args: P.args, **kwargs: P.kwargs) -> Any:
        # Returning the value would compute it for nothing, and constant Hessians would then depend on the arguments.
        traced, (outputs, rows) = evaluate(args, kwargs, lambda outputs, _, rows: (outputs if has_aux else [], rows))
        found = _nested_twice(traced, rows)
        return (found, tree_unflatten(traced.aux_tree, outputs[traced.out_count :])) if has_aux else found

    return hessian


def value_grad_hess(
    function: Callable[P, Value],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    order: OrderLike = "auto",
    sparse: bool = False,
    backend: Backend = "auto",
) -> Callable[P, tuple[Value, Any, Any]]:
    """Like `hessve`, but returns ``(value, gradient, Hessian)``.

    With ``has_aux``, it returns ``((value, aux), gradient, Hessian)``. The gradient is dense.
    """
    request = Request(argnums, has_aux, holomorphic, allow_int)
    evaluate = _second_derivatives(function, order, request, backend, sparse)

    @wraps(function, assigned=("__name__", "__qualname__", "__module__"))
    def derivatives(*args: P.args, **kwargs: P.kwargs) -> tuple[Value, Any, Any]:
        traced, (outputs, blocks, rows) = evaluate(args, kwargs, lambda *found: found)
        value = tree_unflatten(traced.out_tree, outputs[: traced.out_count])
        if has_aux:
            value = value, tree_unflatten(traced.aux_tree, outputs[traced.out_count :])
        return value, traced.nest(blocks), _nested_twice(traced, rows)

    return derivatives


def _second_derivatives(function: Callable, order: Any, request: Request, backend: str, sparse: bool) -> Callable:
    """A function that maps arguments and a selector to the traced function and the selected results.

    The selector picks among the results of `hessian_program`.
    """
    order = _checked(function, order, request, backend)

    def evaluate(args: Sequence[Any], kwargs: dict[str, Any], chosen: Callable) -> tuple[Traced, Any]:
        pipeline = Pipeline(function, args, kwargs, request, order, sparse=sparse)
        if _jax.unknown_shape(pipeline.traced.program) is not None:
            return pipeline.traced, chosen(*typed(unknown_sizes.hessian(pipeline, backend), pipeline.traced.args))
        plain = plain_at_once(pipeline) if is_alone(pipeline.traced.args, backend) else None
        found = attempted(plain, pipeline.traced.args) if plain else None
        if found is not None:
            return pipeline.traced, chosen(*typed(found, pipeline.traced.args))
        program = hessian_program(pipeline)

        def chosen_of(program: Callable) -> Callable:
            return _Chosen(program, chosen, pipeline.traced.args)

        def better(_: Program) -> Callable | None:
            plain = plain_hessian(program)
            return None if plain is None else chosen_of(plain)

        eliminated, passes = chosen_of(program), passes_of(pipeline)
        candidates = [eliminated]
        if passes is not None:
            candidates.insert(0 if is_passed_first(passes) else 1, chosen_of(passes))
        return pipeline.traced, run(eliminated, pipeline.traced.args, backend, better=better, candidates=candidates)

    return evaluate


@dataclass(frozen=True, eq=False)
class _Chosen:
    """A program that returns a selection of the derivatives of another program, for arguments like ``args``.

    If the program leaves work to be done outside of its kernel, `finished` does that work and the selection follows it.
    """

    program: Callable
    choose: Callable
    args: Sequence[Any]

    def __call__(self, *leaves: Any) -> Any:
        found = self.program(*leaves)
        return found if hasattr(self.program, "finished") else self._chosen(found)

    def finished(self, results: Any) -> Any:
        finished = getattr(self.program, "finished", None)
        return results if finished is None else self._chosen(finished(results))

    def _chosen(self, found: Any) -> Any:
        return self.choose(*typed(found, self.args))


def _nested_twice(traced: Traced, rows: Sequence[Any]) -> Any:
    """Arrange a Hessian, given by flat output and two flat inputs, as `jax.hessian` does."""
    return traced.nest([[traced.like_arguments(row) for row in matrix] for matrix in rows])


def kernel(function: Callable[P, Value], *, backend: Backend = "auto") -> Callable[P, Value]:
    """Compile ``function`` to one kernel if it is mapped or has loops. Use it like `jax.jit`.

    `kernel` suits functions of small arrays: a Jacobian by `jacve`, the linear solve and the update become one kernel.

    Args:
        function: a JAX function of pytrees of arrays.
        backend: ``"auto"`` uses XLA for unsupported functions and where XLA is as quick; ``"native"`` raises a
            `NativeError` that names the unsupported equation; ``"xla"`` is ``jax.jit``.

    Returns:
        A function with the same arguments and results. It can be called, mapped and differentiated.
    """
    if not callable(function):
        raise TypeError(f"graphax.kernel takes a function, but got {function!r}")
    check_backend(backend)

    return compiled(function, backend)


def build_graph(
    function: Callable[..., object],
    *args: Any,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    simplify: bool = False,
    **kwargs: Any,
) -> ComputationGraph:
    """The computational graph of ``function`` at the shapes of the example arguments.

    Arguments under ``argnums`` may be arrays or `jax.ShapeDtypeStruct`s. ``simplify`` removes dead code and common
    subexpressions first, which gives other vertex numbers.
    """
    return Pipeline(function, args, kwargs, Request(argnums, has_aux), simplify=simplify).graph


def sparsity(
    function: Callable[..., object],
    *args: Any,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    order: OrderLike = "auto",
    **kwargs: Any,
) -> Any:
    """The sparsity pattern of the Jacobian of ``function``, found from shapes without computing values.

    Arguments under ``argnums`` may be arrays or `jax.ShapeDtypeStruct`s. Returns a `Sparsity` in place of every array
    that `jacve` would return. Print one to see it; `Sparsity.spy` draws it.
    """
    pipeline = Pipeline(function, args, kwargs, Request(argnums, has_aux), order, sparse=True)
    graph, found = pipeline.graph, pipeline.plan.results
    inputs = [(number, graph.vertices[number].shape) for number in graph.inputs]

    def entries(output: int | None, number: int, shape: tuple[int, ...], inp_shape: tuple[int, ...]) -> Sparsity:
        known = None if output is None else found.get((output, number))
        return sparsity_of(known or zero(shape, inp_shape))

    outputs = zip(graph.outputs, map(_jax.shape, pipeline.traced.program.outputs), strict=False)
    return pipeline.traced.nest([[entries(o, n, shape, inp) for n, inp in inputs] for o, shape in outputs])
