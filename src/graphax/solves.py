"""The derivative of a linear solve in two steps: from the matrix to the residual, and on to the solution.

The solution x of ``A x = b`` depends on A and b through the residual ``r = b - A x``, in which x is fixed: ``dr = db -
dA x`` and ``dx = A⁻¹ dr``. As one step, the block of x with respect to A is an outer product with three axes. With the
residual as a vertex, an order can multiply by x first, as forward mode does, or by A⁻¹ first, as reverse mode does.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import jax

from . import _jax
from ._jax import JaxprEqn, Var
from .block import JacobianBlock
from .labelled import nothing_told_apart
from .linear_map import Pair
from .partials import EquationKey, Partials, equation_partials, partials_from_results
from .rule import remembered

_CACHE_SIZE = 1024


def moves_matrix(eqn: JaxprEqn, active: Iterable[Var]) -> bool:
    """Whether an equation is a linear solve whose matrix depends on active operands."""
    return _jax.is_solve(eqn) and not set(active).isdisjoint(
        atom for atom in _jax.linear_product(eqn, eqn.invars)[1] if isinstance(atom, Var)
    )


def solve_partials(eqn: JaxprEqn, variables: Sequence[Var], active: Sequence[Var], whole: bool) -> Partials:
    """The blocks of a linear solve in two steps.

    Residuals count as results after the solutions, and as operands after the active ones.
    """
    key = EquationKey.of(eqn, variables, active, whole)
    return _derived(key) if _jax.has_function(eqn) else _remembered(key)


@remembered(_CACHE_SIZE)
def _remembered(key: EquationKey) -> Partials:
    return _derived(key)


def _derived(key: EquationKey) -> Partials:
    eqn, given, count, moving = key.eqn, len(key.avals), len(key.eqn.outvars), len(key.active)
    avals = [*key.avals, *(var.aval for var in eqn.outvars)]

    def residuals(*values: Any) -> list[Any]:
        product, constants, sides = _jax.linear_product(eqn, key.read(values[:given]))
        return [side - image for side, image in zip(sides, product(*constants, *values[given:]), strict=True)]

    def solutions(*values: Any) -> list[Any]:
        # The whole equation, because the derivative of a solver is that of the solve that it belongs to.
        return _jax.evaluate(eqn, [*key.read(values[:given])[:-count], *values[given:]])

    to_residuals = equation_partials(*_step(key, residuals, avals, key.active))
    to_solutions = _from_results(*_step(key, solutions, avals, range(given, given + count)))
    trees: list[Any] = []

    def run(*operands: Any) -> list[Any]:
        found = _jax.evaluate(eqn, key.read(operands))
        blocks = {(count + o, i): block for (o, i), block in _blocks(to_residuals, count, operands, found).items()}
        blocks |= {(o, moving + i): block for (o, i), block in _blocks(to_solutions, count, operands, found).items()}
        arrays, tree = jax.tree_util.tree_flatten(blocks)
        trees.append(tree)
        return [*found, *arrays]

    # Cached partials may be run by any backend.
    with nothing_told_apart(False):
        program = _jax.trace(run, *key.avals)
    lean = replace(program, equations=_jax.needed(program.equations, program.outputs))
    probed = [(count + o, i) for o, i in to_residuals.probed] + [(o, moving + i) for o, i in to_solutions.probed]
    return Partials(lean, trees[-1], tuple(probed))


def _from_results(*step: Any) -> Partials:
    """The blocks of a step, from the transposed map if JAX can transpose it.

    XLA of JAX 0.10 may never end if a batch of matrices is solved for a vector and, beside it, for other right-hand
    sides. It ends if the transposed matrices are solved for these.
    """
    try:
        return partials_from_results(*step)
    except Exception:  # noqa: BLE001  a solve need not come with a transposed one
        return equation_partials(*step)


def _step(key: EquationKey, function: Callable, avals: Sequence[Any], active: Iterable[int]) -> tuple[Any, ...]:
    """A function as an equation, its variables, the active ones, and whether small arrays are kept whole."""
    program = _jax.trace(function, *avals)
    eqn = _jax.as_equation(program, key.eqn)
    return eqn, program.inputs, [program.inputs[n] for n in active], key.whole


def _blocks(step: Partials, count: int, operands: Sequence[Any], found: Sequence[Any]) -> dict[Pair, JacobianBlock]:
    """The blocks of a step at the operands of a solve and its solutions."""
    return step.blocks(step.program(*operands, *found)[count:])
