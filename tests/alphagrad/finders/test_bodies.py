"""Searches of graphs with loops: their bodies are searched, counted and certified as well."""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import alphagrad
import graphax as gx
from alphagrad import Budget, Objective

from ...graphax.comparing import assert_same

RNG = np.random.default_rng(0)
STATE, PARAMETERS = RNG.random(3), RNG.random(4)
FEW = Budget(evaluations=3000)


def end(y, p):
    def step(y, _):
        a, b, c = y
        return y + 0.01 * jnp.stack([p[0] * (b - a), a * (p[1] - c) - b, a * b - p[2] * c]), None

    return lax.scan(step, y, None, length=5)[0]


def gated(h, p):
    return lax.scan(lambda h, x: (jnp.sin(h) * x + h, h * x), h, p, reverse=True)


def nested(y, p):
    def step(y, _):
        return lax.scan(lambda z, k: (jnp.sin(z) * p[0] + y * k, z[0]), y, p)

    return lax.scan(step, y, None, length=3)


def scalar(x, p):
    """A loop whose body has only scalars, so that certificates prove its order optimal."""

    def step(c, _):
        a, b = c
        return (jnp.sin(a * b) * jnp.exp(a), jnp.cos(a * b) + b * b), None

    return lax.scan(step, (x[0], x[1] * p[0]), None, length=4)[0]


def two(y, p):
    return end(jnp.sin(end(y, p)), p)


FUNCTIONS = {"end": end, "gated": gated, "nested": nested, "scalar": scalar, "two": two}


def graph_of(name):
    return gx.build_graph(FUNCTIONS[name], STATE, PARAMETERS, argnums=(0, 1))


def found(name, **options):
    return alphagrad.search(graph_of(name), budget=options.pop("budget", FEW), record=False, **options)


@pytest.mark.parametrize("counting", ["folded", "raw"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_order_is_counted_with_its_bodies(name, counting):
    graph, result = graph_of(name), found(name, counting=counting)
    assert graph.cost(result.order, counting) == result.cost
    assert result.value == result.cost.multiplications == result.order.cost
    presets = [graph.cost(preset, counting).multiplications for preset in gx.PRESETS]
    assert result.value <= min(presets)
    assert result.history[-1][2] == result.value
    assert [vertex for vertex, _ in result.bodies] == [vertex for vertex, _ in result.order.bodies]
    for _, body in result.bodies:
        assert body.graph.cost(body.order, counting) == body.cost
        assert body.bound <= body.value


@pytest.mark.parametrize("name", ["end", "gated", "nested", "two"])
def test_an_order_with_bodies_goes_into_jacve(name, tmp_path):
    found(name).order.save(tmp_path / "order.json")
    got = gx.jacve(FUNCTIONS[name], order=tmp_path / "order.json", argnums=(0, 1))(STATE, PARAMETERS)
    assert_same(got, jax.jacfwd(FUNCTIONS[name], (0, 1))(STATE, PARAMETERS), tolerance=1e-10)


@pytest.mark.parametrize("name", ["end", "two"])
def test_searching_bodies_pays(name):
    result = found(name)
    assert result.value < graph_of(name).cost(replace(result.order, bodies=())).multiplications


def test_bodies_are_certified_and_the_graph_is_not():
    result = found("scalar", budget=3)
    ((vertex, body),) = result.bodies
    assert body.optimal
    assert not result.optimal
    assert result.order.bodies[0][1].bound == body.value
    text = str(result)
    assert "Steps of loops" in text
    assert "optimal" in text
    assert "no lower bound is known for a graph with loops" in text
    assert result.as_dict()["bodies"][0]["vertex"] == vertex
    explained = gx.explain(scalar, STATE, PARAMETERS, order=result.order, argnums=(0, 1))
    assert "auto (optimal)" in str(explained)


def test_bodies_of_bodies_are_searched():
    ((_, body),) = found("nested").bodies
    assert len(body.bodies) == 1
    assert len(body.order.bodies) == 1
    assert "1 → " in str(found("nested"))


@pytest.mark.parametrize("name", ["end", "nested", "two"])
def test_the_same_seed_gives_the_same_orders_of_bodies(name):
    assert found(name, seed=3).order == found(name, seed=3).order


def test_a_search_continues_from_orders_of_bodies():
    known = found("two", seed=1)
    again = found("two", start=known.order, budget=Budget(evaluations=1), method="windows")
    assert again.value <= known.value


def test_a_start_for_another_body_is_refused():
    other = found("gated").order
    order = replace(gx.Order.of("fwd", graph_of("end")), bodies={1: other.bodies[0][1]})
    with pytest.raises(gx.FingerprintError, match=other.bodies[0][1].fingerprint):
        found("end", start=order)


def test_records_hold_orders_of_bodies():
    graph = graph_of("gated")
    result = alphagrad.search(graph, budget=FEW)
    known = alphagrad.best_known(graph)
    assert known is not None
    assert known.bodies
    assert known.cost <= result.value


@pytest.mark.parametrize("minimize", ["operations", "peak", (1.0, 0.3)])
def test_every_objective_is_minimised(minimize):
    graph, result = graph_of("gated"), found("gated", minimize=minimize)
    assert graph.cost(result.order) == result.cost
    objective = Objective.of(minimize)
    assert result.value == objective.value(result.cost) <= objective.value(graph.cost("auto"))


@pytest.mark.parametrize("method", ["auto", "presets", "exact", "anneal"])
def test_nothing_is_proven_about_a_graph_with_loops(method):
    """Kernels count products with a loop one by one, which is more than their joint cost."""
    result = found("end", method=method)
    assert result.bound == 0
    assert result.stopped != "optimal"


def test_a_search_without_limit_ends_when_bodies_are_certified():
    result = found("scalar", budget="certified")
    assert all(body.optimal for _, body in result.bodies)


def test_an_interrupted_search_has_the_bodies_so_far():
    def interrupt(progress):
        if "loop at vertex" in progress.finder:
            raise KeyboardInterrupt

    result = found("two", budget=Budget(evaluations=200_000), progress=interrupt)
    assert result.stopped == "interrupted"
    assert graph_of("two").cost(result.order) == result.cost


@pytest.mark.slow
def test_bodies_are_searched_by_workers():
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        result = found("nested", executor=executor, workers=2)
    assert graph_of("nested").cost(result.order) == result.cost
    assert result.value <= graph_of("nested").cost("auto").multiplications
