"""Derivative programs by JAX's own modes: all passes at once, or one after the other in the loop of a kernel."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import _jax
from ._jax import Program
from .rule import only_renames
from .sizes import elements_of_equation
from .trace import Traced

FORWARD, REVERSE = "jax.jacfwd", "jax.jacrev"


def arithmetic(program: Program) -> int:
    """The approximate number of statements of a program on single numbers. Moving elements takes none."""
    equations = _jax.all_equations(program.equations)
    return sum(elements_of_equation(eqn) for eqn in equations if not only_renames(eqn.primitive.name))


@dataclass(frozen=True, eq=False)
class Mode:
    """A mode of JAX, as a program from flat arguments to flat outputs and a dense Jacobian, like an `Accumulation`.

    Attributes:
        traced: the function.
        first: outputs before this number are left out.
        name: the name of the mode.
    """

    traced: Traced
    first: int = 0
    name: str = FORWARD

    @cached_property
    def is_possible(self) -> bool:
        """Whether arguments and results are real numbers, without collectives between them."""
        ends = (*self.traced.program.inputs, *self._atoms)
        real = all(jax.dtypes.issubdtype(_jax.dtype(atom), np.floating) for atom in ends)
        return real and not any(map(_jax.is_collective, self.traced.program.equations))

    @property
    def _atoms(self) -> list[Any]:
        """The outputs that are differentiated."""
        return list(self.traced.program.outputs[: self.traced.out_count])

    def _finished(self, outputs: list[Any], rows: list[list[Any]]) -> tuple[list[Any], list[list[Any]]]:
        atoms = self.traced.program.outputs
        result = [[_jax.typed_like(x, atom) for x in row] for atom, row in zip(atoms, rows, strict=False)]
        wanted = list(zip(outputs, atoms, strict=True))[self.first :]
        return [_jax.typed_like(x, atom) for x, atom in wanted], result


@dataclass(frozen=True, eq=False)
class PlainMode(Mode):
    """All passes side by side, as in JAX itself. Numbers may be complex."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The modes that accept the arguments and results of the function; none where there are collectives."""
        if any(map(_jax.is_collective, self.traced.program.equations)):
            return ()
        inputs, outputs = (
            {_kind(_jax.dtype(atom)) for atom in atoms} for atoms in (self.traced.program.inputs, self._atoms)
        )
        if self.traced.holomorphic:
            return (FORWARD, REVERSE) if inputs | outputs == {np.complexfloating} else ()
        if inputs - {np.floating} or None in outputs:
            return ()
        return (FORWARD,) if np.complexfloating in outputs else (FORWARD, REVERSE)

    @cached_property
    def is_possible(self) -> bool:
        return bool(self.names)

    def __call__(self, *args: Any) -> tuple[list[Any], list[list[Any]]]:
        def outputs(*args: Any) -> tuple[list[Any], list[Any]]:
            found = self.traced.program(*args)
            return found[: self.traced.out_count], found

        mode = {FORWARD: jax.jacfwd, REVERSE: jax.jacrev}[self.name]
        holomorphic = self.traced.holomorphic
        rows, found = mode(outputs, tuple(range(len(args))), has_aux=True, holomorphic=holomorphic)(*args)
        return self._finished(found, rows)


def _kind(dtype: Any) -> Any:
    """`numpy.floating` or `numpy.complexfloating`; None for anything else."""
    kinds = (np.floating, np.complexfloating)
    return next((kind for kind in kinds if jax.dtypes.issubdtype(dtype, kind)), None)


@dataclass(frozen=True, eq=False)
class Passes(Mode):
    """One pass after the other, in a loop. The code of one pass is short, and in a kernel just as fast."""

    @property
    def label(self) -> str:
        return f"one pass of {self.name} after the other"

    @cached_property
    def is_possible(self) -> bool:
        """Whether there is more than one pass, and all numbers have the same dtype."""
        return self.count > 1 and has_one_type(self.traced) and Mode(self.traced).is_possible

    @property
    def count(self) -> int:
        atoms = self.traced.program.inputs if self.name == FORWARD else self._atoms
        return sum(prod(_jax.shape(atom)) for atom in atoms)

    def __call__(self, *args: Any) -> tuple[list[Any], list[list[Any]]]:
        found, matrix = self._matrix(*args)
        return self._finished(found, self._blocks(matrix))

    @property
    def _given(self) -> list[tuple[int, ...]]:
        return [_jax.shape(atom) for atom in self.traced.program.inputs]

    def _matrix(self, *args: Any) -> tuple[list[Any], Any]:
        """The outputs, and their Jacobian with respect to all arguments as one matrix."""

        def outputs(x: Any) -> tuple[Any, list[Any]]:
            found = self.traced.program(*apart(x, self._given))
            return joined(found[: self.traced.out_count]), found

        x = joined(args)
        if self.name == FORWARD:
            _, tangents, found = jax.linearize(outputs, x, has_aux=True)
            return found, lax.map(tangents, seeds(x)).T
        y, cotangents, found = jax.vjp(outputs, x, has_aux=True)
        return found, lax.map(lambda seed: cotangents(seed)[0], seeds(y))

    def _blocks(self, matrix: Any) -> list[list[Any]]:
        return blocks_of(matrix, [_jax.shape(atom) for atom in self._atoms], self._given)


@dataclass(frozen=True, eq=False)
class ThreadPasses(Passes):
    """Passes side by side, each in a thread of a GPU.

    The kernel returns the whole matrix, because threads can only share a loop that writes whole arrays. `finished` cuts
    the matrix into blocks.
    """

    @property
    def label(self) -> str:
        return f"each pass of {self.name} in a thread of its own"

    def __call__(self, *args: Any) -> Any:
        found, matrix = self._matrix(*args)
        return found[self.first :], matrix

    def finished(self, results: Any) -> tuple[list[Any], list[list[Any]]]:
        wanted, matrix = results
        return self._finished([*[None] * self.first, *wanted], self._blocks(matrix))


def has_one_type(traced: Traced) -> bool:
    """Whether all differentiated arguments and results have the same dtype."""
    ends = (*traced.program.inputs, *traced.program.outputs[: traced.out_count])
    return len({_jax.dtype(atom) for atom in ends}) == 1


def joined(arrays: Sequence[Any]) -> Any:
    return jnp.concatenate([jnp.ravel(x) for x in arrays])


def seeds(x: Any) -> Any:
    return jnp.eye(x.size, dtype=x.dtype)


def apart(x: Any, shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    """Split a vector into arrays of the given shapes."""
    return [jnp.reshape(x[begin:end], shape) for shape, begin, end in _ranges(shapes)]


def blocks_of(matrix: Any, rows: Sequence[tuple[int, ...]], columns: Sequence[tuple[int, ...]]) -> list[list[Any]]:
    """Split a matrix into blocks, given the shapes that its rows and its columns stand for."""
    return [
        [jnp.reshape(matrix[top:end, left:right], (*out, *inp)) for inp, left, right in _ranges(columns)]
        for out, top, end in _ranges(rows)
    ]


def _ranges(shapes: Sequence[tuple[int, ...]]) -> list[tuple[tuple[int, ...], int, int]]:
    """Each shape, with the range of its elements among those of all shapes."""
    ends = [0, *accumulate(map(prod, shapes))]
    return [(shape, *ends_of) for shape, ends_of in zip(shapes, pairwise(ends), strict=True)]
