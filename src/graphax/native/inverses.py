"""Quotients by the same number become products with its inverse, because a division takes as long as ten products.

Such a product has two roundings, where a quotient has one. If the inverse is too small to be a normal number, the
kernel computes the block again with actual quotients: see `Emitter.exact`. Quotients that a jump depends on, however
indirectly, are kept, since one more rounding may lead to its other side: 41 * (1 / 41) is below one in float32, and its
floor is zero. The sign of a quotient equals that of the product, so a jump at zero that looks at the quotient itself is
safe.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .emit import dtype_of
from .needed import becoming
from .statements import Statement, Statements

# The operation of an inverse that replaces a division in quotients, and that of a quotient whose error may be a unit in
# the last place larger than that of a division.
INVERSE, QUOTIENT = "inverse", "quotient"
_JUMPS = frozenset({"floor", "ceil", "round", "round_to_even", "rem", "sign", "eq", "ne", "lt", "le", "gt", "ge"})
_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})


def share_inverses(program: Statements) -> Statements:
    """The same program with one division per number that several are divided by."""
    quotients, divisors = _relaxed(program)
    statements: list[Statement] = []
    places: dict[int, int] = {}
    inverses: dict[int, int] = {}

    def add(statement: Statement) -> int:
        statements.append(statement)
        return len(statements) - 1

    for number, statement in enumerate(program.statements):
        operands = tuple(places[n] for n in statement.operands)
        if number not in quotients or divisors[statement.operands[1]] == 1:
            places[number] = add(statement._replace(operands=operands))
            continue
        dividend, divisor = operands
        if divisor not in inverses:
            inverses[divisor] = add(Statement(INVERSE, (divisor,), statement.kind, scope=statements[divisor].scope))
        is_inverse = _is(statements[dividend], 1)
        inverse = inverses[divisor]
        product = statement._replace(operation="mul", operands=(dividend, inverse))
        places[number] = inverse if is_inverse else add(product)
    results = tuple(tuple(places[n] for n in result) for result in program.results)
    return replace(program, statements=tuple(statements), results=results)


def relax_quotients(program: Statements) -> Statements:
    """The same program for a GPU, which is faster with quotients that are not correctly rounded.

    In double precision this applies only if several quotients have the same divisor.
    """
    quotients, divisors = _relaxed(program)
    statements = tuple(
        s._replace(operation=QUOTIENT) if n in quotients and (s.kind == "f32" or divisors[s.operands[1]] > 1) else s
        for n, s in enumerate(program.statements)
    )
    return replace(program, statements=statements)


def _relaxed(program: Statements) -> tuple[set[int], Counter[int]]:
    """The quotients whose last bit no jump depends on, and the number of them per divisor."""
    exact = _before_jumps(program.statements)
    quotients = {n for n, s in enumerate(program.statements) if _is_quotient(s)} - exact
    divisors = Counter(program.statements[n].operands[1] for n in quotients)
    # A divisor that is the same in every step of a loop counts as several.
    divisors.update(
        d for n in quotients if _changes_less(program.statements, n, d := program.statements[n].operands[1])
    )
    return quotients, divisors


def _changes_less(statements: Sequence[Statement], number: int, operand: int) -> bool:
    """True if an operand stays the same in a loop that contains the statement."""
    return statements[operand].scope < statements[number].scope


def _is_quotient(statement: Statement) -> bool:
    return statement.operation == "div" and dtype_of(statement.kind).kind == "f"


def _before_jumps(statements: Sequence[Statement]) -> set[int]:
    """The numbers whose last bit may decide which side of a jump is taken."""
    found: set[int] = set()
    for statement in statements:
        if _is_jump(statement):
            looked_at = [n for n in statement.operands if not _is(statements[n], 0)]
            if _only_sign_matters(statements, statement, looked_at):
                # A quotient has the sign of its operands, so the jump effectively looks at those.
                looked_at = [n for quotient in looked_at for n in statements[quotient].operands]
            found.update(looked_at)
    becomes, size = becoming(statements), -1
    while size < len(found):
        size = len(found)
        for number in range(len(statements) - 1, -1, -1):
            if number in found and statements[number].operation != "repeat":
                found.update(statements[number].operands)
                found.update(becomes.get(number, ()))
    return found


def _is_jump(statement: Statement) -> bool:
    if statement.operation in ("convert", "bitcast"):
        return dtype_of(statement.kind).kind != "f"
    return statement.operation in _JUMPS


def _only_sign_matters(statements: Sequence[Statement], jump: Statement, looked_at: Sequence[int]) -> bool:
    """True if a jump is at zero and looks at quotients themselves."""
    at_zero = jump.operation == "sign" or (jump.operation in _COMPARISONS and len(looked_at) < len(jump.operands))
    return at_zero and all(_is_quotient(statements[n]) for n in looked_at)


def _is(statement: Statement, value: int) -> bool:
    return statement.operation == "constant" and bool(np.equal(statement.attribute, value))
