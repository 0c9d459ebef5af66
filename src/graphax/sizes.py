"""The size of programs: the number of equations, and of elements that they compute."""

from collections.abc import Iterable
from math import prod
from typing import Any

from . import _jax
from ._jax import Program


def size(program: Program) -> tuple[int, int]:
    """The number of equations and of elements that they compute. Bodies of loops count once."""
    return sum(1 for _ in _jax.all_equations(program.equations)), elements_computed(program)


def elements_computed(program: Program) -> int:
    return sum(map(elements_of_equation, _jax.all_equations(program.equations)))


def elements_of_equation(eqn: Any) -> int:
    """The number of elements that an equation computes. Elements of matrix products count once per summand."""
    computed = elements_of(eqn.outvars)
    if eqn.primitive.name != "dot_general":
        return computed
    (contracted, _), _ = eqn.params["dimension_numbers"]
    return computed * prod(_jax.shape(eqn.invars[0])[axis] for axis in contracted)


def elements_of(atoms: Iterable[Any]) -> int:
    return sum(prod(_jax.shape(atom)) for atom in atoms)
