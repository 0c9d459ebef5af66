"""Which backend runs a derivative program, and why."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jax.tree_util import tree_flatten, tree_unflatten

from . import _jax
from .errors import GraphaxError, NativeError
from .notices import left_to_xla

BACKENDS = ("auto", "native", "xla")


def check_backend(backend: str) -> None:
    if backend not in BACKENDS:
        raise GraphaxError(f"unknown backend {backend!r}; it is one of: {', '.join(BACKENDS)}")


def run(function: Callable, args: Sequence[Any], backend: str) -> Any:
    """``function(*args)``, which returns a pytree, on a backend."""
    # Outside of jit and vmap every operation is a call of its own anyway; a kernel for one point would not pay.
    # What is shared out over devices is left to XLA, which knows how to split its own operations and not a kernel.
    if backend == "xla" or (backend == "auto" and (not _jax.is_traced(args) or _jax.is_sharded(args))):
        return function(*args)
    try:
        kernel, operands, tree = _kernel(function, args, backend == "native")
    except Exception as error:
        if backend == "native":
            raise
        left_to_xla(str(error))
        return function(*args)
    return tree_unflatten(tree, kernel(*operands))


def _kernel(function: Callable, args: Sequence[Any], required: bool) -> tuple[Any, list[Any], Any]:
    from . import native

    if _jax.is_varying(args):
        raise NativeError("kernels do not say along which axes of a mesh they vary, which jax.shard_map checks")
    trees = []

    def flat(*leaves: Any) -> list[Any]:
        results, tree = tree_flatten(function(*leaves))
        trees.append(tree)
        return results

    kernel, operands = native.as_kernel(flat, args, required)
    return kernel, operands, trees[-1]


def kernel(function: Callable, args: Sequence[Any]) -> Any:
    """The kernel that ``backend="native"`` runs for traced arguments like these; `NativeError` if there is none."""
    return _kernel(function, args, required=True)[0]


@dataclass(frozen=True)
class BackendChoice:
    """What runs a program under `jax.jit` or `jax.vmap`, and why.

    Attributes:
        name, reason: on the CPU.
        reason_for_xla_on_gpu: why XLA runs it on a GPU, or None where a kernel does.
    """

    name: str
    reason: str
    reason_for_xla_on_gpu: str | None

    def __str__(self):
        reason = self.reason_for_xla_on_gpu
        gpu = f"xla ({reason})" if reason else "a kernel, where mapped over points"
        return f"Backend on the CPU: {self.name} ({self.reason})\nBackend on a GPU: {gpu}"


def choice(function: Callable, args: Sequence[Any], backend: str) -> BackendChoice:
    """What `run` would do with traced arguments of these shapes."""
    check_backend(backend)
    if backend == "xla":
        return BackendChoice("xla", "as asked for", "as asked for")
    try:
        kernel, _, _ = _kernel(function, args, backend == "native")
    except Exception as error:
        if backend == "native":
            raise
        return BackendChoice("xla", str(error), str(error))
    if kernel.failure is not None and backend != "native":
        return BackendChoice("xla", kernel.failure, kernel.reason_for_xla_on_gpu)
    size = f"{kernel.statements.operations:,} operations on single numbers"
    alone = None if backend == "native" else kernel.reason_for_xla_alone
    return BackendChoice(
        "native", size + (f"; xla unless mapped: {alone}" if alone else ""), kernel.reason_for_xla_on_gpu
    )
