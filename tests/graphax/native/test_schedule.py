from hypothesis import given, settings, strategies as st

from graphax.native.schedule import pressure, schedule
from graphax.native.statements import Statement


@st.composite
def programs(draw):
    statements = [Statement("input", (), "f64", (n, 0)) for n in range(draw(st.integers(1, 4)))]
    for n in range(len(statements), len(statements) + draw(st.integers(1, 60))):
        operands = draw(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)))
        statements.append(Statement("add", operands, "f64"))
    return statements


def _needed(statements, results):
    needed = set(results)
    for number in range(len(statements) - 1, -1, -1):
        if number in needed:
            needed.update(statements[number].operands)
    return needed


@settings(max_examples=60, deadline=None)
@given(programs())
def test_every_statement_comes_once_and_after_its_operands(statements):
    users = {n for s in statements for n in s.operands}
    results = [n for n in range(len(statements)) if n not in users]
    assert _needed(statements, results) == set(range(len(statements)))
    order = schedule(statements, results)
    assert sorted(order) == list(range(len(statements)))
    places = {number: place for place, number in enumerate(order)}
    assert all(places[n] < places[m] for m, s in enumerate(statements) for n in s.operands)
    assert pressure(statements, results, order) <= pressure(statements, results, range(len(statements)))


def test_values_are_used_while_they_are_fresh():
    """If many values are computed first and then combined one by one, all are alive at once in the order as written."""
    count = 80
    statements = [Statement("input", (), "f64", (0, 0))]
    statements += [Statement("sin", (n,), "f64") for n in range(count)]
    squares = [len(statements) + n for n in range(count)]
    statements += [Statement("mul", (n + 1, n + 1), "f64") for n in range(count)]
    total = squares[0]
    for square in squares[1:]:
        statements.append(Statement("add", (total, square), "f64"))
        total = len(statements) - 1
    assert pressure(statements, [total], range(len(statements)))[0] > 0
    assert pressure(statements, [total], schedule(statements, [total]))[0] == 0
