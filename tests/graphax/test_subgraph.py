"""No order spends less on some vertices than the search for their least cost says."""

from itertools import permutations
from unittest.mock import patch

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, note, settings, strategies as st

import graphax as gx
from graphax import products, terms
from graphax.bound import vertex_bounds
from graphax.plan import COUNTINGS
from graphax.subgraph import LeastCosts
from graphax.subgraph_bound import _can_be_bounded, subgraph_bound

from .programs import programs
from .scalar_graphs import scalar_graphs
from .spending import spent

thorough = settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
shuffles = st.randoms(use_true_random=False)
# Blocks of at least this many entries stay apart, and products of at least this many numbers may be lists.
limits = st.sampled_from([(512, 2_048), (2, 2_048), (12, 2_048), (12, 0), (512, 0)])


def graph_of(program):
    args = program.arguments()
    return gx.build_graph(program, *args, argnums=tuple(range(len(args))))


def subsets(graph, shuffle, count=4):
    vertices = list(graph.intermediates)
    return [shuffle.sample(vertices, shuffle.randint(1, len(vertices))) for _ in range(count)]


def check_each_vertex(graph, order, chosen):
    """Check that no vertex takes more in the subgraph than in the graph, with the same vertices gone."""
    for counting, taken in spent(graph, order).items():
        costs = LeastCosts(graph, counting, dict.fromkeys(graph.intermediates, 0))
        state = costs.start(chosen)
        for vertex in order:
            if vertex in chosen:
                assert state.prices[vertex] <= taken[vertex], (vertex, counting, order, chosen)
                state = state.without(costs.algebra, vertex)


def check_searches(graph, orders, chosen, most):
    """Check the least costs of growing sets, of which each search continues the last."""
    taken = [spent(graph, order) for order in orders]
    for counting in COUNTINGS:
        least = vertex_bounds(graph, counting)
        costs = LeastCosts(graph, counting, least)
        for count in range(1, len(chosen) + 1):
            part = chosen[:count]
            costs.extend(costs.search(part, most))
            found = costs.total + sum(least[vertex] for vertex in part)
            cheapest = min(sum(each[counting][vertex] for vertex in part) for each in taken)
            assert found <= cheapest, (counting, part)


@given(program=programs(), shuffle=shuffles, limits=limits)
@settings(thorough, max_examples=80)
def test_a_subgraph_never_costs_more(program, shuffle, limits):
    note(program)
    with patch.object(terms, "WORTH_KEEPING_APART", limits[0]), patch.object(products, "LARGE", limits[1]):
        terms.compose.cache_clear(), terms.add.cache_clear(), products.compose.cache_clear()
        graph = graph_of(program)
        assume(graph.intermediates and _can_be_bounded(graph))
        for chosen in subsets(graph, shuffle):
            check_each_vertex(graph, shuffle.sample(graph.intermediates, len(graph.intermediates)), chosen)
    terms.compose.cache_clear(), terms.add.cache_clear(), products.compose.cache_clear()


@given(graph=scalar_graphs(), shuffle=shuffles)
@settings(thorough, max_examples=60)
def test_a_subgraph_of_single_numbers_never_costs_more(graph, shuffle):
    note(graph.edges)
    for chosen in subsets(graph, shuffle):
        check_each_vertex(graph, shuffle.sample(graph.intermediates, len(graph.intermediates)), chosen)


@given(program=programs(steps=5), shuffle=shuffles, most=st.sampled_from([1, 5, 1_000]))
@settings(thorough, max_examples=60)
def test_no_order_at_all_beats_a_search(program, shuffle, most):
    note(program)
    graph = graph_of(program)
    assume(1 <= len(graph.intermediates) <= 5 and _can_be_bounded(graph))
    orders = list(permutations(graph.intermediates))
    for chosen in subsets(graph, shuffle):
        check_searches(graph, orders, chosen, most)


@given(graph=scalar_graphs(intermediates=5), shuffle=shuffles, most=st.sampled_from([1, 5, 1_000]))
@settings(thorough, max_examples=40)
def test_no_order_of_single_numbers_beats_a_search(graph, shuffle, most):
    note(graph.edges)
    orders = list(permutations(graph.intermediates))
    for chosen in subsets(graph, shuffle):
        check_searches(graph, orders, chosen, most)


@given(graph=scalar_graphs(intermediates=5, kinds=("values",)))
@settings(thorough, max_examples=40)
def test_whole_graphs_are_solved_exactly(graph):
    least = dict.fromkeys(graph.intermediates, 0)
    found = LeastCosts(graph, "raw", least).search(graph.intermediates, 1_000).total
    assert found == min(graph.cost(order, "raw").multiplications for order in permutations(graph.intermediates))


def test_known_numbers_that_fill_up_stay_known():
    """The second and third piece of x fill the gap between the others, so their sum is known only with all of them."""

    def function(x):
        pieces = [jnp.zeros(8).at[2 * n : 2 * n + 2].set(x[2 * n : 2 * n + 2]) for n in range(4)]
        return jnp.sin(sum(pieces[n] + 0.0 for n in (0, 1, 3)) + pieces[2])

    graph = gx.build_graph(function, np.ones(8))
    for chosen in (graph.intermediates[:n] + graph.intermediates[-3:] for n in range(len(graph.intermediates))):
        check_each_vertex(graph, list(graph.intermediates), list(dict.fromkeys(chosen)))


def test_chains_of_matrix_products_are_bounded_by_their_joint_cost():
    """Each vertex is cheap in some order, but the chain is not."""

    def function(x, y):
        return jnp.sin(jnp.sin(jnp.sin(x @ y) @ y) @ y)

    graph = gx.build_graph(function, np.ones((3, 3)), np.ones((3, 3)), argnums=(0, 1))
    least = min(graph.cost(order).multiplications for order in permutations(graph.intermediates))
    assert 2 * sum(vertex_bounds(graph).values()) <= least
    assert graph.lower_bound() == least


def test_others_are_bounded_separately():
    graph = gx.build_graph(lambda x: jnp.sin(jnp.sin(jnp.sin(x) @ x) @ x), np.ones((3, 3)))
    least = vertex_bounds(graph)
    alone = subgraph_bound(graph, "folded", least, lambda chosen: 0)
    assert subgraph_bound(graph, "folded", least, lambda chosen: 7) == alone + 7


@pytest.mark.parametrize("function", [lambda x: x[jnp.array([0, 2, 3])], lambda x: jnp.sort(x) * 2.0])
def test_lists_are_not_bounded(function):
    graph = gx.build_graph(lambda x: jnp.sin(function(jnp.sin(x))), np.ones(5))
    assert subgraph_bound(graph, "raw", vertex_bounds(graph, "raw"), lambda chosen: 7) == 0


@pytest.mark.parametrize(("task", "counting", "least"), [
    ("random_f", "raw", 3_600), ("random_f", "folded", 3_400), ("TransformerEncoder", "folded", 1_150),
    ("NeoHookean", "raw", 300), ("Multibody", "folded", 960), ("Network_16", "raw", 12_800),
])  # fmt: skip
def test_array_tasks_have_bounds(task, counting, least):
    from alphagrad.tasks import MIDDLE, TASKS, UNSEEN

    assert (TASKS | UNSEEN | MIDDLE)[task].graph().lower_bound(counting=counting) >= least
