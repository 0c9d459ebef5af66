"""Rewrites programs before the graph is built.

`fold_constants` keeps all equations, so vertex numbers stay those of the traced program. `simplify` removes equations
(dead code, common subexpressions), so it gives new numbers.
"""

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import jax
import numpy as np

from . import _jax
from ._jax import Literal, Program, Var
from .by_numpy import INTEGER_ARITHMETIC, MOVES, computed, is_saturating

# Constant arrays up to the first size are inspected before execution; integers, which may be indices, up to the second.
SMALL, MANY = 4096, 1 << 24
# A loop with more equations in all its steps is not run before execution.
MOST_FOLDED = 4096
# An array of at least this many numbers is sparse if at most one in this many differs from zero.
_FEWEST, _NONZERO_SHARE = 64, 4


def fold_constants(program: Program) -> Program:
    """Write values known at trace time into the equations as literals: numbers, and small integer arrays.

    NumPy computes them, without a device, so that rules can see constant factors and constant indices.
    """
    return replace(program, equations=tuple(_with_known(program)[0]))


def _with_known(program: Program) -> tuple[list[_jax.JaxprEqn], dict[Var, np.ndarray]]:
    """The equations with literals for known values, and all known values."""
    known = {var: value for var, value in program.constants.items() if _worth_knowing(value)}
    known = {var: np.asarray(value) for var, value in known.items()}
    equations = []
    for eqn in program.equations:
        invars = [Literal(known[a], a.aval) if isinstance(a, Var) and a in known else a for a in eqn.invars]
        eqn = eqn.replace(invars=invars)
        equations.append(eqn)
        for var, value in zip(eqn.outvars, _folded(eqn) or (), strict=False):
            value = np.broadcast_to(value, var.aval.shape).astype(var.aval.dtype)
            if _worth_knowing(value):
                known[var] = value
    return equations, known


def _folded(eqn: _jax.JaxprEqn) -> list[Any] | None:
    """The results of an equation of literals, by NumPy; None if this is impossible or might round differently."""
    if any(not isinstance(atom, Literal) or not prod(_jax.shape(atom)) for atom in eqn.invars):
        return None
    if any(prod(_jax.shape(var)) > MANY for var in eqn.outvars):
        return None
    operands = [np.asarray(atom.val) for atom in eqn.invars if isinstance(atom, Literal)]
    if eqn.primitive.name == "scan":
        return _folded_scan(eqn, operands)
    fold = _fold_of(eqn)
    if fold is None:
        return None
    return computed(fold, eqn, operands)


def _folded_scan(eqn: _jax.JaxprEqn, operands: list[np.ndarray]) -> list[Any] | None:
    """The results of a loop over integers, such as a search for indices; None if they cannot be found."""
    body, length = _jax.inlined(eqn.params["jaxpr"]), eqn.params["length"]
    if any(x.dtype.kind not in "iub" for x in operands) or len(body.equations) * length > MOST_FOLDED:
        return None
    first, count = _jax.scan_counts(eqn.params)
    fixed, carried, along = operands[:first], operands[first : first + count], operands[first + count :]
    stacked = []
    for step in range(length)[:: -1 if eqn.params["reverse"] else 1]:
        values = [*fixed, *carried, *(x[step] for x in along)]
        results = _known_results(body, values)
        if results is None:
            return None
        carried = results[:count]
        stacked.append(results[count:])
    ordered = stacked[::-1] if eqn.params["reverse"] else stacked
    return [*carried, *(np.stack(each) for each in zip(*ordered, strict=True))]


def _known_results(program: Program, values: list[Any]) -> list[Any] | None:
    """The results of a program at known values, by NumPy; None if one of them is not known."""
    given = {var: np.asarray(value) for var, value in zip(program.inputs, values, strict=True)}
    known = _with_known(replace(program, inputs=(), constants=program.constants | given))[1]
    found = [atom.val if isinstance(atom, Literal) else known.get(atom) for atom in program.outputs]
    return None if any(value is None for value in found) else found


def _fold_of(eqn: _jax.JaxprEqn) -> Callable | None:
    """A function that computes an equation with NumPy; None if this is impossible or might round differently."""
    name = eqn.primitive.name
    if is_saturating(eqn):
        return None
    integers = all(_jax.dtype(atom).kind in "iub" for atom in eqn.invars)
    return MOVES.get(name) or (INTEGER_ARITHMETIC.get(name) if integers else None)


def _worth_knowing(value: Any) -> bool:
    if isinstance(value, jax.core.Tracer) or not hasattr(value, "dtype") or value.size > MANY:
        return False
    if jax.dtypes.issubdtype(value.dtype, jax.dtypes.extended):
        return False
    return value.dtype.kind in "iub" or uniform_value(value) is not None or is_sparse(value)


def uniform_value(array: Any) -> float | None:
    """The number that a constant array holds everywhere; None if there is none or it is not known yet."""
    if isinstance(array, jax.core.Tracer) or np.size(array) == 0 or np.size(array) > SMALL:
        return None
    numbers = np.asarray(array)
    first = numbers.flat[0]
    if np.iscomplexobj(numbers):
        return None
    return float(first) if np.all(numbers == first) else None


def is_sparse(array: Any) -> bool:
    """Whether most of a constant array is zero, or false. False if the array is not known yet."""
    if isinstance(array, jax.core.Tracer) or not _FEWEST <= np.size(array) <= MANY:
        return False
    numbers = np.asarray(array)
    return numbers.dtype.kind in "fb" and bool(_NONZERO_SHARE * np.count_nonzero(numbers) <= numbers.size)


def simplify(program: Program) -> Program:
    """The program without dead code and with each subexpression computed once."""
    names: dict[Var, Any] = {}
    seen: dict[Any, list[Var]] = {}
    equations = []
    for eqn in _jax.needed(program.equations, program.outputs):
        invars = [names.get(atom, atom) if isinstance(atom, Var) else atom for atom in eqn.invars]
        key = _expression(eqn, invars)
        if key is not None and key in seen:
            names.update(zip(eqn.outvars, seen[key], strict=True))
            continue
        if key is not None:
            seen[key] = list(eqn.outvars)
        equations.append(eqn.replace(invars=invars))
    outputs = tuple(names.get(atom, atom) if isinstance(atom, Var) else atom for atom in program.outputs)
    return replace(program, equations=tuple(equations), outputs=outputs)


def _expression(eqn: _jax.JaxprEqn, invars: list[Any]) -> Any:
    """A hashable description of what an equation computes; None if it has effects or cannot be compared."""
    if eqn.effects:
        return None
    operands = [(atom.aval, np.asarray(atom.val).tobytes()) if isinstance(atom, Literal) else atom for atom in invars]
    key = (eqn.primitive, tuple(sorted(eqn.params.items())), tuple(operands))
    try:
        hash(key)
    except TypeError:
        return None
    return key
