"""Programs that XLA runs for a single point, and that become kernels only when mapped over points.

Unrolling arrays takes most of the time of a first call. A function under `jax.jit` may still be mapped, so the decision
is deferred until it is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax

from .. import _jax
from .._jax import Program
from ..notices import left_to_xla
from .primitive import Kernel, is_better_alone, run_split, split_mapped


@dataclass(frozen=True, eq=False)
class Unmapped:
    """A program for one point, and a function that makes the kernel of a program."""

    program: Program
    kernel: Callable[[Program], Kernel]

    def __call__(self, *operands: Any) -> list[Any]:
        return _unmapped.bind(*operands, unmapped=self)


def is_left_to_xla(program: Program) -> bool:
    """Whether XLA runs a single point on the CPU, independent of the kernel."""
    atoms = (*program.inputs, *program.outputs)
    alone = is_better_alone([_jax.shape(atom) for atom in atoms], program)
    # Collectives have to see the map that they are part of.
    apart = any(map(_jax.is_collective, _jax.all_equations(program.equations))) or _jax.has_loops(program)
    return alone and not apart and not _jax.computes_on_gpu()


def _results(avals: Sequence[Any], unmapped: Unmapped) -> list[tuple[tuple[int, ...], Any, bool]]:
    return [(_jax.shape(atom), _jax.dtype(atom), _jax.is_weak(atom)) for atom in unmapped.program.outputs]


def _batch(operands: Sequence[Any], dims: Sequence[Any], unmapped: Unmapped) -> Any:
    split = split_mapped(unmapped.program, operands, dims)
    program = unmapped.program if split is None else split.each.program
    by: Callable = program
    try:
        by = unmapped.kernel(program) if program.outputs else program
    except Exception as error:  # noqa: BLE001  on any error, XLA can run the program
        left_to_xla(str(error))
    if split is not None:
        return run_split(split, operands, dims, by)
    results = jax.vmap(by, in_axes=tuple(dims))(*operands)
    return results, [0] * len(results)


_unmapped = _jax.define_primitive("graphax_unmapped", _results, lambda unmapped: unmapped.program, _batch, {})
