"""How large programs are: equations, and elements that they compute."""

from collections.abc import Iterable
from math import prod
from typing import Any

from . import _jax
from ._jax import Program


def size(program: Program) -> tuple[int, int]:
    """How many equations there are, and elements that they compute; what loops repeat counts once."""
    return sum(1 for _ in _jax.all_equations(program.equations)), elements_computed(program)


def elements_computed(program: Program) -> int:
    return sum(map(elements_of_equation, _jax.all_equations(program.equations)))


def elements_of_equation(eqn: Any) -> int:
    """How many elements an equation computes; one of a matrix product is a sum of as many as it contracts."""
    computed = elements_of(eqn.outvars)
    if eqn.primitive.name != "dot_general":
        return computed
    (contracted, _), _ = eqn.params["dimension_numbers"]
    return computed * prod(_jax.shape(eqn.invars[0])[axis] for axis in contracted)


def elements_of(atoms: Iterable[Any]) -> int:
    return sum(prod(_jax.shape(atom)) for atom in atoms)
