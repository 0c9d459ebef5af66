"""Derivatives of functions of arrays whose sizes are unknown until they run, as `jax.export` traces them.

Structures consist of numbers, so JAX computes these derivatives.
"""

from dataclasses import replace
from typing import Any

import jax

from . import _jax
from .errors import GraphaxError, NativeError, OrderError
from .hessian import Found
from .modes import REVERSE, PlainMode
from .pipeline import Pipeline
from .sizes import elements_of


def jacobian(pipeline: Pipeline, backend: str) -> tuple[list[Any], Any]:
    """The requested flat outputs and the Jacobian, like `Pipeline.run`."""
    _check(pipeline, backend)
    traced = pipeline.traced
    program, mode = traced.program, PlainMode(traced, pipeline.first)
    inputs, outputs = (elements_of(atoms) for atoms in (program.inputs, program.outputs[: traced.out_count]))
    if isinstance(outputs, int) and not isinstance(inputs, int):
        mode = replace(mode, name=REVERSE)
    found, blocks = mode(*traced.args)
    return found, traced.nest(blocks)


def hessian(pipeline: Pipeline, backend: str) -> Found:
    """The flat outputs, the Jacobian and the Hessian, as `hessian_program` computes them."""
    _check(pipeline, backend)
    traced = pipeline.traced
    numbers = tuple(range(len(traced.args)))

    def outputs(*args: Any) -> tuple[list[Any], list[Any]]:
        found = traced.program(*args)
        return found[: traced.out_count], found

    def gradients(*args: Any) -> tuple[Any, Any]:
        rows, found = jax.jacrev(outputs, numbers, has_aux=True)(*args)
        return rows, (found, rows)

    matrices, (found, rows) = jax.jacfwd(gradients, numbers, has_aux=True)(*traced.args)
    return found, rows, matrices


def _check(pipeline: Pipeline, backend: str) -> None:
    """Raise if something is requested that JAX does not compute."""
    shape = _jax.unknown_shape(pipeline.traced.program)
    cause = f"the sizes of all arrays must be known, but one has the shape {shape}"
    if backend == "native":
        raise NativeError(f"to compile a kernel, {cause}")
    if not pipeline.is_automatic:
        raise OrderError(f"to eliminate in an order, {cause}")
    if pipeline.sparse or not PlainMode(pipeline.traced).is_possible:
        raise GraphaxError(f"for blocks, complex numbers and integers, {cause}")
