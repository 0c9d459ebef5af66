"""Features describe the cost of eliminating a vertex, and the effect on other vertices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import graphax as gx
from alphagrad.game import FEATURES, describe, init, legal_actions, make_tables, prices, step
from alphagrad.game.features import UNITS
from alphagrad.tasks import get

AT = {name: place for place, name in enumerate(FEATURES)}
look, eliminate, price_all = jax.jit(describe), jax.jit(step), jax.jit(prices)


@pytest.fixture(scope="module", params=["EnzymeReaction", "PropaneCombustion"])
def position(request):
    """Tables of a graph of scalars, and a state after a few moves."""
    tables = make_tables(get(request.param).graph())
    state = init(tables)
    for action in (5, 2, 3):
        state, _ = eliminate(tables, state, action)
    return tables, state


def column(position, name):
    return np.asarray(look(*position))[:, AT[name]]


def test_eliminated_vertices_have_no_features(position):
    alive = np.asarray(legal_actions(*position))
    found = np.asarray(look(*position))
    assert np.all(found[~alive] == 0)
    np.testing.assert_allclose(found[alive, AT["remaining"]], alive.mean(), rtol=1e-6)
    assert np.all(found[alive, AT["depth"]] > 0)
    assert found[alive, AT["height"]].max() <= 1


def test_effects_are_those_of_eliminating_the_vertex(position):
    """Between scalars, the changes of prices and the numbers of created and merged edges are exact."""
    tables, state = position
    unit = float(tables.reference) / (UNITS * int(np.sum(tables.intermediate)))
    for vertex in np.flatnonzero(legal_actions(tables, state)).tolist():
        after, cost = eliminate(tables, state, vertex)
        others = np.arange(len(tables.intermediate)) != vertex
        change = float(np.sum((price_all(tables, after) - price_all(tables, state))[others]))
        edges = [int(np.sum(np.asarray(each.edges) != 0)) for each in (state, after)]
        degree_in, degree_out = np.expm1([column(position, side)[vertex] for side in ("predecessors", "successors")])
        created = edges[1] - edges[0] + round(degree_in + degree_out)
        np.testing.assert_allclose(np.expm1(column(position, "price")[vertex]), cost, rtol=1e-5)
        np.testing.assert_allclose(np.expm1(column(position, "created")[vertex]), created, atol=1e-4)
        found = column(position, "change")[vertex]
        np.testing.assert_allclose(np.sign(found) * np.expm1(abs(found)) * unit, change, rtol=1e-4, atol=1e-4)


def test_slack_is_what_a_vertex_costs_above_its_bound(position):
    tables, state = position
    alive = np.asarray(legal_actions(tables, state))
    slack = np.asarray(price_all(tables, state) - tables.bounds)[alive]
    assert np.all(slack >= 0)
    np.testing.assert_array_equal(column(position, "tight")[alive] == 1, slack == 0)


@pytest.mark.parametrize(("inputs", "outputs", "side"), [(5, 2, "height"), (2, 5, "depth")])
def test_distance_is_from_where_the_cheaper_mode_begins(inputs, outputs, side):
    """Reverse mode begins at the outputs and is cheaper if there are few of them."""

    def function(*x):
        y = sum(x)
        for _ in range(4):
            y = jnp.sin(y)
        return [jnp.exp(k * y) for k in range(1, outputs + 1)]

    graph = gx.build_graph(function, *[1.0] * inputs, argnums=range(inputs))
    tables = make_tables(graph)
    forward, reverse = (graph.cost(mode, "raw").multiplications for mode in ("fwd", "rev"))
    expected = abs(np.log(forward / reverse)) * column((tables, init(tables)), side)
    assert expected.max() > 0.1
    np.testing.assert_allclose(column((tables, init(tables)), "distance"), expected, rtol=1e-5)
