"""All ways in which graphax could run a Jacobian, whichever it would choose: as functions, and their estimated times.

`divisions.py`, `estimates.py` and `middle.py` share this.
"""

from collections.abc import Callable, Sequence
from typing import Any

import graphax as gx
from graphax import _jax, backend, estimates
from graphax.errors import GraphaxError
from graphax.modes import FORWARD, REVERSE, Passes, ThreadPasses
from graphax.pipeline import Pipeline
from graphax.trace import Request

KERNEL, XLA = "kernel", "xla"
PASSES = {f"passes of {mode}": mode for mode in (FORWARD, REVERSE)}


def ways(function: Callable, argnums: Any) -> dict[str, Callable]:
    """The Jacobian in each of our ways, by name. JAX's own modes are not among them."""
    by_passes = {name: _by_passes(function, argnums, mode) for name, mode in PASSES.items()}
    return {
        name: gx.jacve(function, argnums, backend=by) for name, by in ((KERNEL, "native"), (XLA, "xla"))
    } | by_passes


def _pipeline(function: Callable, argnums: Any, args: Sequence[Any]) -> Pipeline:
    return Pipeline(function, args, {}, Request(argnums))


def _passes(pipeline: Pipeline, mode: str) -> Passes:
    return (ThreadPasses if _jax.computes_on_gpu() else Passes)(pipeline.traced, pipeline.first, mode)


def _by_passes(function: Callable, argnums: Any, mode: str) -> Callable:
    def jacobian(*args: Any) -> Any:
        pipeline = _pipeline(function, argnums, args)
        _, blocks = backend.run(_passes(pipeline, mode), pipeline.traced.args, "native")
        return pipeline.traced.nest(blocks)

    return jacobian


def estimated(function: Callable, argnums: Any, args: Sequence[Any], points: int) -> dict[str, float]:
    """The estimated seconds of each way, with JAX's own modes. Ways that are impossible are left out."""
    pipeline = _pipeline(function, argnums, args)
    found = {way.name: way.run for way in pipeline.modes(points)}
    programs = {KERNEL: pipeline.program, **{name: _passes(pipeline, mode) for name, mode in PASSES.items()}}
    for name, program in programs.items():
        try:
            kernel = backend.kernel_of(program, pipeline.traced.args)
        except GraphaxError:
            continue
        if name == KERNEL:
            found[XLA] = estimates.elimination(kernel.program, points).run
        on_cpu = estimates.kernel(kernel.instructions, kernel.executed, points).run
        found[name] = kernel.seconds_on_gpu(points) if _jax.computes_on_gpu() else on_cpu
    return found
