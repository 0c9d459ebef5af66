"""Orders that go forward through a part of a graph and in reverse through the rest."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

import graphax as gx
from graphax.mixed import mixed_orders, widths
from graphax.presets import cheapest_preset
from graphax.prices import Prices, counted

from .programs import programs

N, NECK = 12, 2
RNG = np.random.default_rng(0)
WIDE, IN, OUT = RNG.normal(size=(N, N)), RNG.normal(size=(NECK, N)), RNG.normal(size=(N, NECK))


def hourglass(x):
    """Wide, narrow, wide: twelve numbers, two, and twelve again."""
    for matrix in (np.eye(N), WIDE):
        x = matrix @ x / jnp.linalg.norm(x)
    x = IN @ x
    for matrix in (OUT, WIDE):
        x = matrix @ x
        x = x / jnp.linalg.norm(x)
    return x


@given(program=programs(steps=8))
@settings(deadline=None, max_examples=15)
def test_mixed_orders_are_orders(program):
    args = program.arguments()
    graph = gx.build_graph(program, *args, argnums=tuple(range(len(args))))
    for order in mixed_orders(graph):
        assert sorted(order) == list(graph.intermediates)


def test_widths_are_those_of_what_is_used_later():
    graph = gx.build_graph(lambda x: jnp.sin(jnp.cos(x).sum()) * x, jnp.ones(5))
    # After the cosine, x and the cosine are alive; after the sum, x and a number.
    assert list(widths(graph).values())[:3] == [10, 6, 6]


def test_graphs_too_small_to_cut_have_none():
    assert not list(mixed_orders(gx.build_graph(jnp.sin, 1.0)))
    assert not list(mixed_orders(gx.build_graph(lambda x: jnp.sin(jnp.cos(x)), 1.0)))


@pytest.fixture(scope="module")
def graph():
    return gx.build_graph(hourglass, jnp.ones(N), simplify=True)


def test_a_mixed_order_wins_over_all_presets(graph):
    prices = Prices(graph)
    mixed = min(counted(prices, order) for order in mixed_orders(graph))
    presets = {name: counted(prices, graph.plan(name).order) for name in gx.PRESETS if name != "auto"}
    assert mixed < min(presets.values()) == counted(prices, cheapest_preset(graph, prices))
    assert graph.cost("auto").operations <= mixed


def test_its_jacobian_is_exact(graph):
    x = RNG.normal(size=N)
    want = jax.jacfwd(hourglass)(x)
    for order in ("auto", *mixed_orders(graph)):
        got = gx.jacve(hourglass, order=order if order == "auto" else graph.order(order))(x)
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
