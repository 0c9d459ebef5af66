"""Kernels in JAX: a primitive that is a call of machine code on the CPU, a launch on a GPU, or else its program."""

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import _jax
from .._jax import Program
from ..common_work import Split, split_common
from ..errors import NativeError
from ..gpu_times import FEW_POINTS, SOLVERS, is_clearly_quicker, kernel_on_gpu, xla_on_gpu
from ..notices import left_to_xla
from . import cuda, host
from .divisions import Division, best_division, work
from .handler import chunk_size
from .loaded import Calling, Loaded, on_cpu, on_gpu
from .memory import PointLayout, Stores
from .operations import instructions
from .points import kernel_code
from .results import results_outside
from .statements import Statements
from .threads import ThreadCode, reason_for_xla, thread_code

# With arrays unrolled and a single point there are no vectors, which XLA would have made of long enough arrays. But XLA
# turns many operations into many loops, and starting those takes longer than the arithmetic. It does so in every step
# of a loop in the function, unless a step has much to do. Calling a kernel takes half a microsecond, in which XLA
# finishes a few equations.
_LARGEST_ARRAY_ALONE = 128
_MOST_EQUATIONS_OF_XLA_ALONE, _FEW_EQUATIONS_ALONE = 100, 50
_MOST_STATEMENTS_IN_LOOPS_ALONE = 16_000
# These take XLA as long as this many other equations of small arrays. A matrix product takes microseconds to start.
_AS_MANY_EQUATIONS = {"gather": 8, "scatter": 8, "scatter-add": 8, "scatter-mul": 8, "dot_general": 100}

# An element of a result is moved from lanes to neighbouring addresses, and stored per point.
_STORING = 8

# A step of a loop waits for the one before it, so short steps leave the processor idle unless there are several
# vectors, as many as registers allow: the maximum number of statements per step, and the number of vectors.
_SIDE_BY_SIDE = ((120, 4), (1_000, 2))

# Results of this many bytes do not fit the cache of a core, or leave all caches before anything reads them.
_PREFETCHED_FROM, _STREAMED_FROM = 2 << 20, 16 << 20


@dataclass(frozen=True, eq=False)
class Kernel:
    """A program for one point and its statements. Kernels with the same statements are equal.

    ``required`` says that the kernel was requested by name, not chosen because it should be faster. ``again`` makes the
    kernel of another program in the same way.
    """

    program: Program
    statements: Statements
    required: bool
    again: Callable[[Program], "Kernel"]

    @cached_property
    def digest(self) -> str:
        s = self.statements
        weak = [_jax.is_weak(atom) for atom in self.program.outputs]
        content = repr((s.statements, s.inputs, s.outputs, s.results, weak, self.required))
        return hashlib.sha256(content.encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kernel) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __call__(self, *operands: Any) -> list[Any]:
        return _kernel.bind(*operands, kernel=self, batched=(False,) * len(operands))

    @cached_property
    def instructions(self) -> int:
        """The approximate number of instructions in the code for a block of points."""
        return instructions(self.statements) + _STORING * results_outside(self.statements)

    @cached_property
    def executed(self) -> int:
        """The approximate number of instructions that run for a block of points."""
        return instructions(self.statements, True) + _STORING * sum(map(len, self.statements.results))

    @property
    def has_loops(self) -> bool:
        """Whether loops of the function are loops of the kernel. Loops of contractions do not count."""
        return bool(self.statements.loops) and _jax.has_loops(self.program)

    @property
    def failure(self) -> str | None:
        """The reason why the kernel could not be compiled or loaded, if that was tried and failed."""
        return _failures.get(self.digest)

    @property
    def reason_for_xla_alone(self) -> str | None:
        """The reason why a single point is better left to XLA, or None."""
        shapes = [shape for shape, _ in (*self.statements.inputs, *self.statements.outputs)]
        loops = self.has_loops and self.statements.operations <= _MOST_STATEMENTS_IN_LOOPS_ALONE
        if loops or not is_better_alone(shapes, self.program):
            return None
        return f"single point, few operations on arrays of {max(map(prod, shapes), default=0)} elements"

    @property
    def reason_for_xla_on_gpu(self) -> str | None:
        return reason_for_xla(self.statements)

    def seconds_on_gpu(self, points: int) -> float:
        """The estimated seconds for this many points on a GPU."""
        return kernel_on_gpu(work(self.statements, best_division(self.statements, points)), points)


def is_better_alone(shapes: Sequence[Sequence[int]], program: Program) -> bool:
    """Whether XLA is faster for a single point of a program without loops, by the shapes of operands and results."""
    names = [eqn.primitive.name for eqn in program.equations]
    equations = sum(_AS_MANY_EQUATIONS.get(name, 1) for name in names)
    if max(map(prod, shapes), default=0) > _LARGEST_ARRAY_ALONE:
        return equations <= _MOST_EQUATIONS_OF_XLA_ALONE
    return equations <= _FEW_EQUATIONS_ALONE and SOLVERS.isdisjoint(names)


def _results(
    avals: Sequence[Any], kernel: Kernel, batched: tuple[bool, ...]
) -> list[tuple[tuple[int, ...], Any, bool]]:
    batch = _batch_size([aval.shape for aval in avals], batched)
    leading = () if batch is None else (batch,)
    weak = [_jax.is_weak(atom) for atom in kernel.program.outputs]
    return [((*leading, *shape), dtype, w) for (shape, dtype), w in zip(kernel.statements.outputs, weak, strict=True)]


def _batch_size(shapes: Sequence[Sequence[int]], batched: tuple[bool, ...]) -> int | None:
    return next((shape[0] for shape, has_batch in zip(shapes, batched, strict=True) if has_batch), None)


def _program(kernel: Kernel, batched: tuple[bool, ...]) -> Any:
    axes = tuple(0 if has_batch else None for has_batch in batched)
    return jax.vmap(kernel.program, in_axes=axes) if any(batched) else kernel.program


def _batch(operands: Sequence[Any], dims: Sequence[Any], kernel: Kernel, batched: tuple[bool, ...]) -> Any:
    """Add one more axis of points, merged with the existing one. Operands with neither axis are still read once."""
    size = next(np.shape(x)[dim] for x, dim in zip(operands, dims, strict=True) if dim is not None)
    split = None if any(batched) else split_mapped(kernel.program, operands, dims)
    if split is not None:
        try:
            each = split.each.program
            return run_split(split, operands, dims, kernel.again(each) if each.outputs else each)
        except NativeError as error:
            left_to_xla(f"common work stays in the kernel: {error}")
    moved = [x if dim is None else jnp.moveaxis(x, dim, 0) for x, dim in zip(operands, dims, strict=True)]
    inner = _batch_size([np.shape(x)[dim is not None :] for x, dim in zip(moved, dims, strict=True)], batched)
    if inner is not None:
        moved = [
            x if dim is None and not has_batch else _merged(x, dim is not None, has_batch, size, inner)
            for x, dim, has_batch in zip(moved, dims, batched, strict=True)
        ]
    now = tuple(dim is not None or has_batch for dim, has_batch in zip(dims, batched, strict=True))
    results = _kernel.bind(*moved, kernel=kernel, batched=now)
    if inner is not None:
        results = [jnp.reshape(x, (size, inner, *x.shape[1:])) for x in results]
    return results, [0] * len(results)


def split_mapped(program: Program, operands: Sequence[Any], dims: Sequence[Any]) -> Split | None:
    """Split off the work that does not depend on the mapped operands, for the rule of `jax.vmap`."""
    # Without `jax.jit`, every equation of the common part would be a call of its own.
    if not _jax.is_staged(operands):
        return None
    size = next(np.shape(x)[dim] for x, dim in zip(operands, dims, strict=True) if dim is not None)
    return split_common(program, [dim is not None for dim in dims], size if isinstance(size, int) else 1)


def run_split(split: Split, operands: Sequence[Any], dims: Sequence[Any], by: Callable) -> tuple[list[Any], list[Any]]:
    """All results of a split program, and their mapped axes. ``by`` computes one point of those that are mapped."""
    results = split.run(operands, jax.vmap(by, in_axes=split.axes(dims)))
    return results, split.merged([None] * len(split.same), [0] * (len(results) - len(split.same)))


def _merged(x: Any, has_outer: bool, has_inner: bool, outer: int, inner: int) -> Any:
    rest = np.shape(x)[has_outer + has_inner :]
    x = x if has_outer else x[None]
    x = x if has_inner else x[:, None]
    return jnp.broadcast_to(x, (outer, inner, *rest)).reshape(outer * inner, *rest)


def _lower_on_cpu(avals: Sequence[Any], kernel: Kernel, batched: tuple[bool, ...]) -> Any:
    batch = _batch_size([aval.shape for aval in avals], batched)
    if not _has_results(kernel, batch):
        return None
    if not kernel.required and (not host.available() or (batch is None and kernel.reason_for_xla_alone)):
        return None
    return _lowered(kernel, lambda: _loaded_on_cpu(kernel, _layout(kernel.statements, batched, batch)))


def _lower_on_gpu(avals: Sequence[Any], kernel: Kernel, batched: tuple[bool, ...]) -> Any:
    batch = _batch_size([aval.shape for aval in avals], batched)
    # Code depends on the GPU, so programs lowered elsewhere are left to XLA.
    if not _has_results(kernel, batch) or not _jax.computes_on_gpu():
        return None
    reason = kernel.reason_for_xla_on_gpu
    if reason and kernel.required:
        raise NativeError(reason).within("a function", _jax.first_source_line(kernel.program))
    if reason or (not kernel.required and not _is_quick_on_gpu(kernel, batch or 1)):
        return None
    return _lowered(kernel, lambda: _loaded_on_gpu(kernel, batched, best_division(kernel.statements, batch or 1)))


def _is_quick_on_gpu(kernel: Kernel, points: int) -> bool:
    """Whether a kernel should be faster than those of XLA, which also split single points among threads."""
    seconds = kernel.seconds_on_gpu(points)
    return points > FEW_POINTS or is_clearly_quicker(seconds, [xla_on_gpu(kernel.program, points)])


def _has_results(kernel: Kernel, batch: Any) -> bool:
    """True if there is something to compute, for a known number of points."""
    some = bool(kernel.statements.outputs) and not any(0 in shape for shape, _ in kernel.statements.outputs)
    return some and isinstance(batch, int | None) and batch != 0


def _lowered(kernel: Kernel, load: Callable[[], Loaded]) -> Any:
    """The lowering rule of a kernel; None if it cannot be loaded and was not requested by name."""
    try:
        loaded = load()
    except Exception as error:
        reason = f"its kernel cannot be compiled or loaded ({type(error).__name__}: {error})"
        if kernel.required:
            raise NativeError(reason).within("a function", _jax.first_source_line(kernel.program)) from error
        _failures[kernel.digest] = reason
        left_to_xla(reason)
        return None

    def lower(ctx: Any, *operands: Any) -> Any:
        _jax.keep_alive(ctx, loaded)
        return _jax.apart(jax.ffi.ffi_lowering(loaded.name)(ctx, *operands))

    return lower


def _layout(statements: Statements, batched: tuple[bool, ...], batch: int | None) -> PointLayout:
    widest = 64 if any(s.kind in ("f64", "i64", "u64") for s in statements.statements) else 32
    most = host.host().vector_bits // widest * _vectors(statements)
    lanes = min(most, 1 << ((batch or 1).bit_length() - 1))
    return PointLayout(lanes, batched, _stores(statements, batch or 1) if lanes == most else Stores.CACHED)


def _vectors(statements: Statements) -> int:
    """The number of vectors that are computed side by side."""
    if not statements.loops:
        return 1
    largest = max(Counter(s.scope for s in statements.statements).values())
    return next((vectors for most, vectors in _SIDE_BY_SIDE if largest <= most), 1)


def _stores(statements: Statements, batch: int) -> Stores:
    written = batch * sum(prod(shape) * dtype.itemsize for shape, dtype in statements.outputs)
    if written < _PREFETCHED_FROM:
        return Stores.CACHED
    return Stores.PREFETCHED if written < _STREAMED_FROM else Stores.STREAMED


def _loaded_on_cpu(kernel: Kernel, layout: PointLayout) -> Loaded:
    program = kernel.statements
    work = program.executed + 2 * sum(map(len, program.results))
    calling = Calling(len(program.inputs), len(program.outputs), chunk_size(work, layout.lanes), layout.has_batch)
    return on_cpu.load(_code(kernel, layout), calling)


def _loaded_on_gpu(kernel: Kernel, batched: tuple[bool, ...], division: Division) -> Loaded:
    cuda.check_available()
    code, program = _code_of_threads(kernel, batched, division), kernel.statements
    calling = Calling(
        len(program.inputs), len(program.outputs), code.room, any(batched), code.points, code.threads, code.portions
    )
    return on_gpu.load(code.text, calling)


@lru_cache(16)
def _code(kernel: Kernel, layout: PointLayout) -> str:
    return kernel_code(kernel.statements, layout)


@lru_cache(16)
def _code_of_threads(kernel: Kernel, batched: tuple[bool, ...], division: Division) -> ThreadCode:
    return thread_code(kernel.statements, batched, division)


# The reasons why kernels could not be made, by their digest.
_failures: dict[str, str] = {}

_kernel = _jax.define_primitive(
    "graphax_kernel", _results, _program, _batch, {"cpu": _lower_on_cpu, "cuda": _lower_on_gpu}
)
