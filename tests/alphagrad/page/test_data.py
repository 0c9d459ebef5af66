import json

import pytest
from hypothesis import given, settings

from alphagrad.elimination.structures import StructureTable, with_coefficient
from alphagrad.page.algebra import ADDS, KEEPS, algebra_of
from alphagrad.page.data import page_data
from alphagrad.page.html import as_html
from alphagrad.page.replay import Replay
from alphagrad.page.view import make_view
from graphax import Order, build_graph
from graphax.terms import add, compose

from ..graphs import program_graphs
from .views import LOOPS, ORDERS, graph_of, view_of

NAMES = [
    "five",
    "EnzymeReaction",
    "RoeFlux_1d",
    "MLP",
    "random 500",
    pytest.param("lorenz", marks=pytest.mark.slow),
    "nested",
]
COEFFICIENTS = (1.0, -1.0, 0.5, 3.0)


def unpacked(flat):
    return {(t, s): (number, known) for t, s, number, known in zip(*[iter(flat)] * 4, strict=True)}


def replayed(data, order):
    """The edges that the steps of an order leave, as the page finds them."""
    edges = unpacked(data["edges"])
    for vertex, _, _, changed in order["steps"]:
        edges = {edge: what for edge, what in edges.items() if vertex not in edge} | unpacked(changed)
    return edges


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("counting", [pytest.param("folded", marks=pytest.mark.slow), "raw"])
def test_steps_add_up_to_the_cost_of_the_plan(name, counting):
    view = view_of(name, counting)
    data = page_data(view)
    for order, preset in zip(data["orders"], ORDERS, strict=True):
        plan = view.graph.plan(preset)
        cost = plan.cost(counting)
        assert [step[0] for step in order["steps"]] == list(plan.order)
        assert sum(step[1] for step in order["steps"]) == order["multiplications"] == cost.multiplications
        assert sum(step[2] for step in order["steps"]) == order["additions"] == cost.additions
        assert order["peak"] == cost.peak


@pytest.mark.parametrize("name", NAMES)
def test_every_order_ends_in_the_jacobian(name):
    view = view_of(name)
    data = page_data(view)
    kinds = {vertex["number"]: vertex["kind"] for vertex in data["vertices"]}
    for order, replay in zip(data["orders"], view.replays, strict=True):
        edges = replayed(data, order)
        assert {(kinds[target], kinds[source]) for target, source in edges} == {("output", "input")}
        assert edges.keys() == replay.plan.results.keys()
        for edge, (number, known) in edges.items():
            structure = replay.plan.results[edge]
            values, labels, stored = data["structures"][number]
            assert str(structure) == f"{f'{known:g}' if values is None else values}{labels}"
            assert structure.stored == stored
        assert replay.edges_after(len(replay.moves)) == replay.plan.results
        assert replay.edges_after(0) == view.graph.edges


def check_algebra(graph, counting):
    table = StructureTable(coefficients=False)
    algebra = algebra_of(graph, counting, table)
    structures = [structure for _, structure in table.numbered()]
    for outer, inner, result, factor, multiplications, if_scaled, additions in algebra.get("products", ()):
        for first, second in [(1.0, 1.0), (0.5, -1.0), (3.0, 0.5)]:
            left, right = with_coefficient(structures[outer], first), with_coefficient(structures[inner], second)
            product = compose(left, right)
            if product is None:
                assert result == -1
                continue
            known = (1.0 if left.scale is None else first) * (1.0 if right.scale is None else second) * factor
            counted = product.multiplications if counting == "folded" else product.raw_multiplications
            # A coefficient other than one is not a renaming, so raw counting charges it.
            if counting == "folded" or (known == 1 and first == second == 1):
                assert (0 if if_scaled and abs(known) == 1 else multiplications) == counted
            assert additions == product.additions
            assert product.structure.scale in (None, known)
            if not product.structure.renaming and not structures[result].renaming:
                assert table.number(product.structure) - 1 == result
    for left, right, equal, different, equal_additions, different_additions, mode in algebra.get("sums", ()):
        for first, second in [(a, b) for a in COEFFICIENTS for b in COEFFICIENTS]:
            if (structures[left].renaming and first != 1) or (structures[right].renaming and second != 1):
                continue
            total = add(with_coefficient(structures[left], first), with_coefficient(structures[right], second))
            both = structures[left].scale is not None and structures[right].scale is not None
            same = first == second or not both
            assert table.number(total.structure) - 1 == (equal if same else different)
            assert total.additions == (equal_additions if same else different_additions)
            known = first + second if mode == ADDS else first if mode == KEEPS and same else None
            assert total.structure.scale == known
    return algebra


@pytest.mark.parametrize("counting", ["folded", "raw"])
@pytest.mark.parametrize("name", ["five", "EnzymeReaction", "MLP", "OrbitJ2", "TransformerEncoder"])
def test_the_table_agrees_with_the_algebra(name, counting):
    assert "unavailable" not in check_algebra(graph_of(name), counting)


@settings(max_examples=15, deadline=None)
@given(graph=program_graphs())
def test_tables_of_any_graph_agree(graph):
    check_algebra(graph, "folded")


def test_tables_that_are_too_large_are_reported(monkeypatch):
    monkeypatch.setattr("alphagrad.page.algebra.MOST_ENTRIES", 50)
    data = page_data(view_of("MLP"))
    assert data["algebra"] == {"unavailable": "the structures of the graph have more than 50 products and sums"}
    assert len(data["orders"]) == len(ORDERS)


def test_coefficients_that_json_lacks():
    graph = build_graph(lambda x: (x * 2.0) * float("inf") + x, 1.0)
    data = page_data(make_view("infinite", graph, "folded", ("fwd",), budget=0.1))
    assert "infinite" in data["algebra"]["unavailable"]
    assert "inf" in data["edges"]
    assert "NaN" not in as_html([data], "infinite")


def test_vertices_know_where_they_come_from():
    data = page_data(view_of("RoeFlux_1d"))
    inputs = [v for v in data["vertices"] if v["kind"] == "input"]
    assert [v["name"] for v in reversed(inputs)] == ["ul0", "ul1", "ul2", "ur0", "ur1", "ur2"]
    root = next(v for v in data["vertices"] if v["name"] == "sqrt")
    assert root["where"].startswith("fluids.py:")
    assert "sqrt" in root["code"]
    assert not any("/" in v["where"] for v in data["vertices"])


def test_pages_are_complete_and_load_nothing():
    data = page_data(view_of("five"))
    data["title"] = "</script><b>&"
    page = as_html([data], data["title"])
    assert "{{" not in page.split("<script")[0]
    assert page.count("</script>") == 2
    for address in ("http:", "https:", "//cdn", "@import", "url("):
        assert address not in page.replace("http://www.w3.org/2000/svg", "")
    embedded = page.split('id="data">')[1].split("</script>")[0]
    assert json.loads(embedded)["targets"][0] == json.loads(json.dumps(data))


def test_replays_of_any_order():
    graph = graph_of("five")
    replay = Replay.of("mine", graph, Order.of([3, 1, 5, 2, 4], graph), "raw")
    assert sum(move.multiplications for move in replay.moves) == replay.cost.multiplications


@pytest.mark.parametrize("counting", [pytest.param("folded", marks=pytest.mark.slow), "raw"])
@pytest.mark.parametrize("name", LOOPS)
def test_bodies_are_graphs_with_the_orders_that_pass_them(name, counting):
    view = view_of(name, counting)
    data = page_data(view)
    assert "loop" in data["algebra"]["unavailable"]
    for order, replay in zip(data["orders"], view.replays, strict=True):
        assert [vertex for vertex, _, _ in order["bodies"]] == [vertex for vertex, _ in replay.plan.passings]
        for (_, place, how), (_, passing) in zip(order["bodies"], replay.plan.passings, strict=True):
            inside = next(each for each in data["bodies"][place]["orders"] if each["name"] == replay.name)
            assert tuple(step[0] for step in inside["steps"]) == passing.how.plan.order
            assert inside["multiplications"] * passing.length == sum(
                step.multiplications(counting) for step in replay.plan.instructions if step.together
            )
            assert how == f"{'forward' if passing.forward else 'backward'}, {passing.length} steps"
    assert len({body["title"] for body in data["bodies"]}) == 2


@pytest.mark.slow
def test_bodies_know_where_they_come_from():
    for body in page_data(view_of("lorenz"))["bodies"]:
        assert any(vertex["where"].startswith("views.py:") for vertex in body["vertices"])


def test_bodies_inside_of_bodies_can_be_played():
    for body in page_data(view_of("nested"))["bodies"]:
        assert body["bodies"]
        for inner in body["bodies"]:
            assert not inner["bodies"]
            assert "unavailable" not in inner["algebra"]


def test_bodies_have_the_bounds_that_a_search_proved():
    view = view_of("nested", orders=("fwd", "best"))
    ((_, body),) = view.bodies.items()
    assert all(inner.bound == view.proven.get(graph, inner.bound) for graph, inner in body.bodies.items())
    assert any(inner.bound == inner.replays[-1].cost.multiplications for inner in body.bodies.values())
