"""Symbols fit inside a vertex and tell operations apart."""

import pytest

from alphagrad.page.symbols import symbol_of
from alphagrad.tasks import TASKS


@pytest.mark.parametrize("name", ["RoeFlux_1d", "BlackScholes", "MLP"])
def test_symbols_of_a_task_are_short_and_differ(name):
    names = {vertex.name for vertex in TASKS[name].graph().vertices.values() if vertex.kind != "input"}
    symbols = {symbol_of(operation) for operation in names}
    assert all(0 < len(symbol) <= 4 for symbol in symbols)
    assert len(symbols) == len(names)


def test_unknown_operations_are_abbreviated():
    assert symbol_of("sin") == "sin"
    assert symbol_of("triangular_solve") == "tri…"
