"""Functions that read from other points of a mapped axis, by `lax.psum`, `lax.ppermute` and so on.

The axis may be that of `vmap`, `pmap` or `shard_map`. The result of a collective depends on the inputs of all points,
so its block cannot be composed with the blocks of one point. `jax.jacfwd` pushes the tangents of all points through it
together. Here, everything between the inputs and the collectives becomes a single equation, whose blocks are also found
by pushing tangents. The equations after it are eliminated as usual.
"""

from dataclasses import replace

from . import _jax
from ._jax import JaxprEqn, Program, Var


def with_collectives_apart(program: Program) -> Program:
    """The program with a single equation for everything that leads from its inputs to collectives."""
    changing = set(program.inputs)
    for eqn in program.equations:
        if not changing.isdisjoint(_variables(eqn)):
            changing.update(eqn.outvars)
    between = _leading_to_collectives(program, changing)
    if not between:
        return program
    defined = {var for eqn in between for var in eqn.outvars}
    before, after = [], []
    later = set(defined)
    for eqn in program.equations:
        if not defined.isdisjoint(eqn.outvars):
            continue
        if later.isdisjoint(_variables(eqn)):
            before.append(eqn)
        else:
            after.append(eqn)
            later.update(eqn.outvars)
    wanted = {var for eqn in after for var in _variables(eqn)} | {a for a in program.outputs if isinstance(a, Var)}
    results = tuple(var for eqn in between for var in eqn.outvars if var in wanted)
    operands = tuple(dict.fromkeys(var for eqn in between for var in _variables(eqn) if var not in defined))
    together = _jax.as_equation(Program(operands, {}, tuple(between), results), like=between[-1])
    return replace(program, equations=(*before, together, *after))


def _leading_to_collectives(program: Program, changing: set[Var]) -> list[JaxprEqn]:
    """The collectives that depend on the inputs and the equations that lead to them, in order."""
    needed: set[Var] = set()
    found = []
    for eqn in reversed(program.equations):
        moving = changing.intersection(_variables(eqn))
        if moving and (_jax.is_collective(eqn) or not needed.isdisjoint(eqn.outvars)):
            found.append(eqn)
            needed |= moving
    return found[::-1]


def _variables(eqn: JaxprEqn) -> list[Var]:
    return [atom for atom in eqn.invars if isinstance(atom, Var)]
