import jax.numpy as jnp
import pytest
from jax import lax

import graphax as gx
from graphax.table import table

from .comparing import array


def function(w, x):
    halved = lax.custom_linear_solve(lambda v: 2 * v, jnp.tanh(w @ x), lambda _, v: v / 2, symmetric=True)
    return halved, x * 2.0


@pytest.fixture(scope="module")
def explanation():
    return gx.explain(function, array(3, 4), array(4), argnums=(0, 1), order="rev")


def test_answers_as_data(explanation):
    assert [row.vertex.name for row in explanation.eliminations] == ["tanh", "dot_general"]
    assert set(explanation.costs) == {"this order (rev)", "fwd", "rev", "markowitz"}
    folded, raw = explanation.costs["this order (rev)"]
    assert folded == explanation.graph.cost("rev")
    assert raw == explanation.graph.cost("rev", counting="raw")
    assert sum(row.multiplications for row in explanation.eliminations) == folded.multiplications
    assert explanation.order.vertices == explanation.plan.order


def test_names_blocks_and_their_sparsity(explanation):
    rows = {(row.output, row.inp): row for row in explanation.results}
    assert rows[0, "w"].entries == 3 * 12
    assert rows[1, "w"].structure is None
    assert str(rows[1, "x"].structure) == "2[i|i]"


def test_names_what_fell_back(explanation):
    assert [(value.name, operand.name) for value, operand, _ in explanation.fallbacks] == [
        ("custom_linear_solve", "tanh")
    ]


def test_prints_as_tables(explanation):
    text = str(explanation)
    for part in ("this order (rev)", "markowitz", "dot_general", "test_explanation.py", "zero", "2[i|i]", "solve"):
        assert part in text


def test_a_function_with_nothing_to_eliminate_is_explained():
    assert "Nothing to eliminate." in str(gx.explain(lambda x: x, array(3)))


def test_long_orders_are_cut():
    def chain(x):
        for _ in range(60):
            x = jnp.sin(x)
        return x

    assert "19 more" in str(gx.explain(chain, 0.3))


def test_explicit_orders():
    explanation = gx.explain(function, array(3, 4), array(4), order=[2, 1])
    assert next(iter(explanation.costs)) == "this order"
    assert explanation.order.finder == "explicit"


def test_table():
    assert table("Title", ["name", "count"], [["a", 1000], ["bc", 2]]) == "Title\nname  count\na     1,000\nbc        2"


def test_a_function_without_results_is_explained():
    assert "0 outputs" in str(gx.explain(lambda x: (), array(3)))


def test_keeps_what_is_known_about_an_order():
    graph = gx.build_graph(function, array(3, 4), array(4))
    order = gx.Order((1, 2), graph.fingerprint, "somewhere", seed=3)
    assert gx.explain(function, array(3, 4), array(4), order=order).order.finder == "somewhere"
