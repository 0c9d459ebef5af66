"""Counting without plans gives the same numbers as plans, and eliminations can be undone."""

from concurrent.futures import ThreadPoolExecutor
from time import sleep

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given, settings, strategies as st

import graphax as gx
from alphagrad.tasks import TASKS
from graphax.prices import Prices, Tally, counted, peak

from .programs import programs

# A number that a loop writes and reads again counts as this many operations.
MOVING = 4


def assert_counted(graph, vertices):
    plan, prices = graph.plan(vertices), Prices(graph)
    cost = plan.cost()
    assert counted(prices, vertices) == cost.operations + MOVING * plan.moved
    assert peak(prices, vertices) == cost.peak


@given(program=programs(), shuffle=st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=20)
def test_counts_are_those_of_plans(program, shuffle):
    args = program.arguments()
    graph = gx.build_graph(program, *args, argnums=tuple(range(len(args))))
    order = list(graph.intermediates)
    shuffle.shuffle(order)
    assert_counted(graph, order)


def scanned(x):
    y, _ = jax.lax.scan(lambda c, _: (jnp.sin(c) * x, c), x, length=5)
    return jnp.sum(jnp.cos(y) * x)


@pytest.mark.parametrize("order", ["fwd", "rev"])
def test_loops_count_what_they_move(order):
    graph = gx.build_graph(scanned, jnp.ones(3))
    assert graph.has_loops
    assert_counted(graph, graph.plan(order).order)


@given(program=programs(), shuffle=st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=10)
def test_undoing_restores_everything(program, shuffle):
    args = program.arguments()
    graph = gx.build_graph(program, *args, argnums=tuple(range(len(args))))
    order = list(graph.intermediates)
    shuffle.shuffle(order)
    tally, fresh = Tally(Prices(graph)), Tally(Prices(graph))
    for vertex in order:
        tally.eliminate(vertex)
    tally.rewind(len(order))
    assert tally.predecessors == fresh.predecessors
    assert tally.successors == fresh.successors


def test_counting_stops_at_a_limit():
    graph = TASKS["RoeFlux_1d"].graph()
    prices = Prices(graph)
    total = counted(prices, graph.intermediates)
    assert counted(prices, graph.intermediates, total) == total
    assert counted(prices, graph.intermediates, total - 1) == float("inf")
    assert Prices(graph).known == 0 < prices.known


class SlowToHash:
    """A key that lets other threads run whenever it is looked up."""

    def __hash__(self):
        sleep(1e-4)
        return id(self)


def test_threads_that_share_prices_number_structures_alike():
    prices = Prices(gx.build_graph(jnp.sin, 1.0))
    structures = [SlowToHash() for _ in range(30)]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: [prices.number(s) for s in structures], range(4)))
    assert all(numbers == found[0] for numbers in found)
    assert [prices.structures[number] for number in found[0]] == structures
    assert len(prices.products) == len(prices.sums) == len(prices.structures)
