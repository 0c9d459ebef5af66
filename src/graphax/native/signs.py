"""Whether results depend on the signs of eigenvectors, which nothing but the algorithm determines.

Every eigenvector with a free sign has a bit. The **parity** of a number is the set of the eigenvectors with which it
changes its sign, as an integer of these bits: the parity of a product is that of both factors together, so it is 0 for
``v[i] * v[j]``.
"""

from collections.abc import Mapping, Sequence

from .needed import becoming
from .statements import Statement

# A number that is zero has every parity; one that depends on signs in other ways has none.
_EVERY, _NONE = -1, -2
_PRODUCTS = frozenset({"mul", "div"})
_SUMS = frozenset({"add", "sub"})
_ODD = frozenset({"neg", "sign", "convert"})
_EVEN = frozenset({"abs", "is_finite"})


def depends_on_signs(
    statements: Sequence[Statement], results: Sequence[Sequence[int]], vectors: Mapping[int, tuple[int, ...]]
) -> bool:
    """Whether a result may change if eigenvectors change their signs.

    ``vectors`` maps each number that belongs to an eigenvector to a name of it, or to () if it belongs to several.
    """
    if not vectors:
        return False
    bits = {vector: 1 << n if vector else _NONE for n, vector in enumerate(sorted(set(vectors.values())))}
    known = {number: bits[vector] for number, vector in vectors.items()}
    becomes = becoming(statements)
    changed: set[int] = set()
    while True:
        parities = _parities(statements, known, changed)
        # A carry that starts as an even number may become another one.
        found = {carry for carry, (new,) in becomes.items() if parities[new] not in (0, _EVERY)}
        if found <= changed:
            return any(parities[number] not in (0, _EVERY) for result in results for number in result)
        changed |= found


def _parities(statements: Sequence[Statement], known: Mapping[int, int], changed: set[int]) -> list[int]:
    parities: list[int] = []
    for number, statement in enumerate(statements):
        if number in known:
            parities.append(known[number])
        elif statement.operation == "constant":
            parities.append(_EVERY if statement.attribute == 0 else 0)
        else:
            found = _parity(statement.operation, [parities[n] for n in statement.operands])
            # The sign of a vector differs between the steps of a loop, so odd numbers do not leave a step.
            leaves = statement.operation in ("carry", "written")
            parities.append(_NONE if number in changed or (leaves and found > 0) else found)
    return parities


def _parity(operation: str, operands: Sequence[int]) -> int:
    if all(parity in (0, _EVERY) for parity in operands):
        return _EVERY if operation in _PRODUCTS and _EVERY in operands else 0
    if _NONE in operands:
        return _NONE
    if operation in _PRODUCTS:
        return _EVERY if _EVERY in operands else operands[0] ^ operands[1]
    if operation in _SUMS:
        return _common(operands)
    if operation == "select":
        return _common(operands[1:]) if operands[0] in (0, _EVERY) else _NONE
    if operation in _ODD:
        return operands[0]
    # Whether a number is zero does not depend on its sign.
    return 0 if operation in _EVEN or (operation in ("eq", "ne") and _EVERY in operands) else _NONE


def _common(operands: Sequence[int]) -> int:
    """The parity that numbers have in common."""
    found = {parity for parity in operands if parity != _EVERY}
    return _EVERY if not found else found.pop() if len(found) == 1 else _NONE
