"""No order may cost less than the bound: random programs, random orders, and all orders of small graphs."""

from itertools import permutations

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, note, settings, strategies as st

import graphax as gx
from graphax.bound import OBJECTIVES, vertex_bounds
from graphax.plan import COUNTINGS, Elimination

from .programs import ELEMENTWISE, programs
from .scalar_graphs import EDGES, scalar_graph, scalar_graphs

thorough = settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)


def graph_of(program):
    args = program.arguments()
    return gx.build_graph(program, *args, argnums=tuple(range(len(args))))


def uncached(graph):
    """An equal graph that caches treat as different."""
    return gx.ComputationGraph(
        graph.vertices, graph.inputs, graph.outputs, graph.edges, graph.numbered, not graph.simplified, ()
    )


def check(graph, order):
    for counting in COUNTINGS:
        cost = graph.cost(order, counting)
        for objective in OBJECTIVES:
            assert graph.lower_bound(objective, counting) <= getattr(cost, objective), (objective, counting, order)
        state = Elimination(graph)
        bounds = vertex_bounds(graph, counting)
        for vertex in order:
            products = [fill.product for fill in state.eliminate(vertex)]
            spent = sum(p.multiplications if counting == "folded" else p.raw_multiplications for p in products)
            assert bounds[vertex] <= spent, (vertex, counting, order)


@given(program=programs(), shuffle=st.randoms(use_true_random=False))
@settings(thorough, max_examples=80)
def test_no_random_order_beats_the_bound(program, shuffle):
    note(program)
    graph = graph_of(program)
    for _ in range(8):
        order = list(graph.intermediates)
        shuffle.shuffle(order)
        check(graph, order)


@given(program=programs(steps=4))
@settings(thorough, max_examples=60)
def test_no_order_at_all_beats_the_bound(program):
    note(program)
    graph = graph_of(program)
    assume(len(graph.intermediates) <= 5)
    for order in permutations(graph.intermediates):
        check(graph, order)


@given(graph=scalar_graphs(), shuffle=st.randoms(use_true_random=False))
@settings(thorough, max_examples=80)
def test_scalar_graphs_with_known_numbers_and_copies(graph, shuffle):
    note(graph.edges)
    for _ in range(30):
        order = list(graph.intermediates)
        shuffle.shuffle(order)
        check(graph, order)


@given(graph=scalar_graphs())
@settings(thorough, max_examples=60)
def test_looking_less_far_still_bounds(graph):
    """In large graphs, the bound only visits a few vertices on each side of every vertex."""
    full = {counting: vertex_bounds(graph, counting) for counting in COUNTINGS}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graphax.bound._WORK", 0)
        patch.setattr("graphax.bound._NEAREST", 2)
        renewed = uncached(graph)
        for counting, bounds in full.items():
            near = vertex_bounds(renewed, counting)
            assert all(near[vertex] <= bounds[vertex] for vertex in bounds)
        check(renewed, list(graph.intermediates))


@given(program=programs(), limits=st.sampled_from([(0, 12), (10**6, 1), (10**6, 2), (0, 2)]), shuffle=st.randoms())
@settings(thorough, max_examples=60)
def test_telling_less_apart_still_bounds(program, limits, shuffle):
    note(program)
    graph = graph_of(program)
    order = list(graph.intermediates)
    shuffle.shuffle(order)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graphax.bound._WORK", limits[0])
        patch.setattr("graphax.bound._MOST_STRUCTURES", limits[1])
        check(uncached(graph), order)


def test_chains_of_elementwise_functions_are_bounded_exactly():
    def function(x):
        for name in ("sin", "tanh", "sin", "tanh"):
            x = ELEMENTWISE[name](x)
        return x

    graph = gx.build_graph(function, np.ones(5))
    assert graph.lower_bound() == graph.cost("rev").multiplications > 0


def test_dense_blocks_are_bounded_by_their_size():
    weights = np.ones((3, 4))
    graph = gx.build_graph(lambda x: jnp.sin(weights @ jnp.sin(x)), np.ones(4))
    assert graph.lower_bound() == min(graph.cost(order).multiplications for order in gx.PRESETS) == 24


def test_windows_do_not_hide_what_is_beside_them():
    def function(x):
        for _ in range(6):
            x = jnp.sin(x) * jnp.roll(x, 1)
        return x

    graph = gx.build_graph(function, np.ones(10))
    assert graph.lower_bound() >= 10 * 5


def test_known_numbers_are_free_only_in_folded_counting():
    graph = gx.build_graph(lambda x: 2.0 * (x + 1.0) * 3.0, 0.5)
    assert graph.lower_bound(counting="folded") == 0
    assert graph.lower_bound(counting="raw") == graph.cost("rev", "raw").multiplications


def least_by_trial(graph):
    return min(graph.cost(order).multiplications for order in permutations(graph.intermediates))


@pytest.mark.parametrize(
    ("function", "bound"),
    [
        (lambda x: jnp.sin(2.0 * jnp.sin(x)), 2),
        (lambda x: jnp.sin(-jnp.sin(x)), 1),
        (lambda x: jnp.sin(2.0 * jnp.sin(x) * 0.5), 1),
        # Two paths of known numbers add up to one.
        (lambda x: (y := jnp.sin(x), jnp.sin(0.5 * y + 0.5 * (y + 0.0)))[1], 1),
    ],
)
def test_known_numbers_count_where_they_are_certain_not_to_become_one(function, bound):
    graph = gx.build_graph(function, 0.3)
    assert bound <= graph.lower_bound() <= least_by_trial(graph)


def test_known_numbers_are_free_in_very_large_graphs(monkeypatch):
    graph = gx.build_graph(lambda x: jnp.sin(2.0 * jnp.sin(x)), 0.3)
    free = vertex_bounds(graph, known_is_free=True)
    monkeypatch.setattr("graphax.bound._MOST_CERTAIN", 3)
    assert vertex_bounds(uncached(graph)) == free
    assert sum(free.values()) < graph.lower_bound()


def test_known_numbers_may_become_one_by_a_sum_over_equal_elements():
    graph = gx.build_graph(lambda x: jnp.sin(jnp.mean(jnp.broadcast_to(jnp.sin(x), (6,)))), 0.3)
    assert graph.lower_bound() <= least_by_trial(graph) == 1


def test_a_graph_without_intermediates():
    graph = gx.build_graph(jnp.sin, np.ones(3))
    assert [graph.lower_bound(objective) for objective in OBJECTIVES] == [0, 0, 3]


def test_operations_include_additions():
    # x and y each reach both products; every order must add.
    def function(x, y):
        a, b = jnp.sin(x * y), jnp.cos(x / y)
        return a * b, a / b

    graph = gx.build_graph(function, 0.5, 0.7, argnums=(0, 1))
    best = min(graph.cost(order).operations for order in permutations(graph.intermediates))
    assert graph.lower_bound() < graph.lower_bound("operations") <= best


def test_bounds_can_be_changed_without_harm():
    graph = gx.build_graph(lambda x: jnp.sin(jnp.sin(x)), 0.5)
    vertex_bounds(graph).clear()
    assert vertex_bounds(graph) == {1: 1}


@pytest.mark.slow
def test_long_chains_take_seconds():
    count = 5_000
    edges = {(n + 1, n): EDGES["values"] for n in range(count)}
    graph = scalar_graph(1, count - 1, 1, edges)
    assert graph.lower_bound() == count - 1
    assert graph.lower_bound("peak") == count + 1


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"minimize": "time"}, "unknown objective 'time'; choose one of: multiplications, operations, peak"),
        ({"counting": "cooked"}, "unknown counting 'cooked'; choose one of: folded, raw"),
        ({"minimize": "peak", "counting": "cooked"}, "unknown counting"),
    ],
)
def test_unknown_names_are_errors(names, message):
    with pytest.raises(gx.GraphaxError, match=message):
        gx.build_graph(jnp.sin, 0.5).lower_bound(**names)


def test_unknown_countings_of_vertices_are_errors():
    with pytest.raises(gx.GraphaxError, match="unknown counting"):
        vertex_bounds(gx.build_graph(jnp.sin, 0.5), "cooked")
