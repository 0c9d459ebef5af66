"""Hessians by JAX itself: `jax.hessian`, or its passes one after the other in the loop of a kernel."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np
from jax import lax

from . import _jax
from .estimates import (
    has_long_sums,
    has_too_long_sums,
    hessian_of_passes,
    is_long_for_second,
    is_quickest,
    plain_second,
)
from .hessian import Found, NestedHessian, SymmetricHessian, is_floating, mirrored_array, turned_array
from .modes import apart, arithmetic, blocks_of, has_one_type, joined, seeds
from .pipeline import Pipeline
from .rule import only_renames
from .sizes import elements_of
from .trace import Traced

_POLYNOMIAL = frozenset({"add", "sub", "mul", "neg", "square", "dot_general", "reduce_sum", "add_any", "cumsum"})


@dataclass(frozen=True, eq=False)
class PlainHessian:
    """The derivatives of a function with one real result, by `jax.hessian`, mirrored."""

    traced: Traced

    def __call__(self, *args: Any) -> Found:
        atoms, numbers = self.traced.program.outputs, tuple(range(len(args)))

        def value(*args: Any) -> Any:
            return self.traced.program(*args)[0]

        outputs = [_jax.typed_like(x, atom) for x, atom in zip(self.traced.program(*args), atoms, strict=True)]
        gradient = [_jax.typed_like(x, atoms[0]) for x in jax.grad(value, numbers)(*args)]
        rows = jax.hessian(value, numbers)(*args)

        def entry(row: int, column: int) -> Any:
            above = rows[min(row, column)][max(row, column)]
            if row == column:
                above = mirrored_array(above, np.size(args[row]))
            elif row > column:
                above = turned_array(above, np.ndim(args[column]), np.ndim(args[row]))
            return _jax.typed_like(above, atoms[0])

        return outputs, [gradient], [[[entry(row, column) for column in numbers] for row in numbers]]


@dataclass(frozen=True, eq=False)
class HessianPasses:
    """The derivatives of a function with one real result, by a loop of forward passes through its gradient.

    The Hessian is mirrored.
    """

    traced: Traced
    label = "one pass of jax.hessian after the other"

    @cached_property
    def is_possible(self) -> bool:
        """Whether the function has one real result, real arguments of the same dtype, and more than one pass."""
        return self.count > 1 and has_one_type(self.traced) and _is_real_number(self.traced)

    @property
    def count(self) -> int:
        return elements_of(self.traced.program.inputs)

    def __call__(self, *args: Any) -> Any:
        return self._finished(*self._derivatives(*args))

    @property
    def _shapes(self) -> list[tuple[int, ...]]:
        return [_jax.shape(atom) for atom in self.traced.program.inputs]

    def _derivatives(self, *args: Any) -> tuple[list[Any], Any, Any]:
        """The outputs, the gradient with respect to all arguments, and the second derivatives, row by row."""

        def value(x: Any) -> tuple[Any, list[Any]]:
            found = self.traced.program(*apart(x, self._shapes))
            return found[0], found

        gradient, tangents, found = jax.linearize(jax.grad(value, has_aux=True), joined(args), has_aux=True)
        return found, gradient, lax.map(tangents, seeds(gradient))

    def _finished(self, outputs: list[Any], gradient: Any, matrix: Any) -> Found:
        shapes, atoms = self._shapes, self.traced.program.outputs
        matrix = mirrored_array(matrix, self.count)
        slopes = [_jax.typed_like(x, atoms[0]) for x in apart(gradient, shapes)]
        rows = [[_jax.typed_like(x, atoms[0]) for x in row] for row in blocks_of(matrix, shapes, shapes)]
        return [_jax.typed_like(x, atom) for x, atom in zip(outputs, atoms, strict=True)], [slopes], [rows]


@dataclass(frozen=True, eq=False)
class ThreadHessianPasses(HessianPasses):
    """Like `HessianPasses`, with each pass in a GPU thread. `finished` mirrors the matrix and cuts it into blocks."""

    label = "each pass of jax.hessian in a thread of its own"

    def __call__(self, *args: Any) -> Any:
        return self._derivatives(*args)

    def finished(self, results: Any) -> Found:
        return self._finished(*results)


def plain_hessian(program: SymmetricHessian | NestedHessian) -> PlainHessian | None:
    """`jax.hessian` where it is faster with XLA, which is for few arguments and sums over long arrays; None otherwise.

    Elimination would have one sum per pair of arguments, and each sum would be a loop over all its elements.
    """
    pipeline = program.pipeline
    if isinstance(program, NestedHessian) or pipeline.sparse or not pipeline.is_automatic:
        return None
    return PlainHessian(pipeline.traced) if has_long_sums(pipeline.traced.program) else None


def plain_at_once(pipeline: Pipeline) -> PlainHessian | None:
    """`jax.hessian`, if it is certain before planning that `plain_hessian` will choose it for a single point."""
    traced = pipeline.traced
    program, equations = traced.program, list(_jax.all_equations(traced.program.equations))
    if pipeline.sparse or not pipeline.is_automatic or not has_too_long_sums(program):
        return None
    if not _is_real_number(traced):
        return None
    if all(is_polynomial(eqn) for eqn in equations):
        # The second derivatives may be constant, which elimination detects.
        return None
    between = _jax.has_complex(program)
    return None if between or _jax.has_loops(program) else PlainHessian(traced)


def is_polynomial(eqn: Any) -> bool:
    """Whether an equation consists of products and sums of its operands only."""
    name = eqn.primitive.name
    return name in _POLYNOMIAL or only_renames(name) or (name == "integer_pow" and eqn.params["y"] >= 0)


def _is_real_number(traced: Traced) -> bool:
    """Whether the result is one real number, of real arguments, without collectives in between."""
    program, outputs = traced.program, traced.program.outputs[: traced.out_count]
    real = all(is_floating(_jax.dtype(atom)) for atom in (*outputs, *program.inputs))
    alone = not any(map(_jax.is_collective, _jax.all_equations(program.equations)))
    return real and alone and [_jax.shape(atom) for atom in outputs] == [()]


def passes_of(pipeline: Pipeline) -> HessianPasses | None:
    """The Hessian pass by pass, if it may be a kernel and XLA should be slower; None otherwise."""
    if pipeline.sparse or not pipeline.is_automatic:
        return None
    on_gpu = _jax.computes_on_gpu()
    kind, program, points = ThreadHessianPasses if on_gpu else HessianPasses, pipeline.traced.program, pipeline.points
    passes = kind(pipeline.traced)
    if on_gpu or not passes.is_possible:
        return passes if passes.is_possible else None
    ours = hessian_of_passes(passes.count, arithmetic(program), points)
    return passes if is_quickest(ours, [plain_second(program, passes.count, points)], points) else None


def is_passed_first(passes: HessianPasses) -> bool:
    """Whether passes are tried before anything is planned."""
    program = passes.traced.program
    equations = sum(1 for _ in _jax.all_equations(program.equations))
    return is_long_for_second(arithmetic(program), passes.count, equations)
