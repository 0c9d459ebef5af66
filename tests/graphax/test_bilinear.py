"""The lower bound of a group of vertices never exceeds the cost that an order spends on the group."""

import sys
from itertools import islice, permutations
from math import factorial

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, note, settings, strategies as st
from threadpoolctl import threadpool_info

import graphax as gx
from graphax.bilinear import RandomDerivatives, entries_of
from graphax.rank_bound import _can_be_bounded, _on_one_thread, rank_bound

from .programs import programs
from .scalar_graphs import scalar_graphs
from .spending import spent

thorough = settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)


def graph_of(function, *args):
    return gx.build_graph(function, *args, argnums=tuple(range(len(args))))


def convex(graph, some):
    """All vertices on paths between ``some``."""
    above, below = set(some), set(some)
    for target, source in sorted(graph.edges):
        if source in below:
            below.add(target)
    for target, source in sorted(graph.edges, key=lambda edge: edge[1], reverse=True):
        if target in above:
            above.add(source)
    return sorted(above & below)


def check(graph, groups, orders):
    """Check bounds. Both countings count products of values; only raw counting counts products with known numbers."""
    taken = [spent(graph, order) for order in orders]
    for raw, counting in ((False, "folded"), (False, "raw"), (True, "raw")):
        derivatives = RandomDerivatives(graph, raw)
        total = rank_bound(graph, dict.fromkeys(graph.intermediates, 0), raw)
        assert total <= min(sum(each[counting].values()) for each in taken), (raw, counting)
        for group in groups:
            least = min(sum(each[counting][vertex] for vertex in group) for each in taken)
            assert derivatives.multiplications(group) <= least, (group, raw, counting)


def groups_of(graph, shuffle):
    vertices = list(graph.intermediates)
    chosen = [shuffle.sample(vertices, shuffle.randint(1, min(3, len(vertices)))) for _ in range(12)]
    return [[vertex] for vertex in vertices] + [convex(graph, some) for some in chosen]


@given(program=programs(), shuffle=st.randoms(use_true_random=False))
@settings(thorough, max_examples=40)
def test_no_random_order_beats_a_group(program, shuffle):
    note(program)
    graph = graph_of(program, *program.arguments())
    assume(graph.intermediates and _can_be_bounded(graph))
    orders = [shuffle.sample(graph.intermediates, len(graph.intermediates)) for _ in range(12)]
    check(graph, groups_of(graph, shuffle), [*orders, graph.intermediates, graph.intermediates[::-1]])


@given(graph=scalar_graphs(), shuffle=st.randoms(use_true_random=False))
@settings(thorough, max_examples=30)
def test_scalar_graphs_with_known_numbers(graph, shuffle):
    note(graph.edges)
    assume(graph.intermediates)
    orders = [shuffle.sample(graph.intermediates, len(graph.intermediates)) for _ in range(20)]
    check(graph, groups_of(graph, shuffle), orders)


FUNCTIONS = {
    "one factor for a sum": lambda x, a: jnp.sum(jnp.sin(a) * jnp.exp(x)),
    "a broadcast in between": lambda x, a: jnp.sum(jnp.tanh(jnp.broadcast_to(jnp.sin(x), (3,)) + a)),
    "a repeated row": lambda x, a: jnp.tanh(jnp.outer(jnp.sin(a), jnp.ones(2)).sum(1) * x),
    "equal rows": lambda x, a: x * jnp.sum(jnp.sin(jnp.broadcast_to(a, (2, 3)) @ np.array([0.3, 0.5, 0.7]))),
    "sums of sums": lambda x, a: jnp.sin(jnp.sum(jnp.cos(jnp.sum(a) * a)) * x),
    "a matrix product": lambda x, a: jnp.sin(x * a[:, None]) @ (jnp.exp(a) * x)[None],
    "differences that cancel": lambda x, a: jnp.sin(jnp.sin(a) - a) * x + (jnp.cos(a) - jnp.cos(a)),
    "slices": lambda x, a: jnp.concatenate([jnp.sin(a[:2]) * x, jnp.cumsum(jnp.exp(a))[1:]]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_order_at_all_beats_a_group(name):
    graph = graph_of(FUNCTIONS[name], 0.7, np.array([0.3, 0.5, 0.9]))
    vertices = graph.intermediates
    assert 1 < len(vertices) <= 9
    subsets = [convex(graph, [a, b]) for a in vertices for b in vertices]
    orders = list(islice(permutations(vertices), 0, None, max(1, factorial(len(vertices)) // 400)))
    check(graph, subsets, orders)


def test_a_sum_is_multiplied_once_where_its_factor_is_one_number():
    """Three equal rows need two products, not six, because their factors are added up first."""
    rows = gx.build_graph(lambda a: jnp.sum(jnp.sin(jnp.broadcast_to(a, (3, 2)) @ np.array([0.3, 0.5]))), np.ones(2))
    orders = permutations(rows.intermediates)
    assert rows.lower_bound() == min(rows.cost(order).multiplications for order in orders) == 2


def test_every_number_of_a_matrix_product_counts():
    """Ranks alone would allow for clever matrix products, which elimination cannot use."""

    def function(a, b):
        return jnp.sin(a @ jnp.sin(b))

    graph = graph_of(function, np.ones((3, 3)), np.ones((3, 2)))
    assert graph.lower_bound() == min(graph.cost(name).multiplications for name in gx.PRESETS)


def test_entries_name_their_numbers():
    graph = graph_of(lambda w, x: w @ x, np.ones((2, 3)), np.ones(3))
    by_matrix, by_vector = (entries_of(graph.edges[1, source]) for source in graph.inputs)
    assert (by_matrix.count, by_vector.count) == (3, 6)
    assert by_matrix.numbers.tolist() == [0, 1, 2, 0, 1, 2]
    assert (by_matrix.rows * 6 + by_matrix.columns).tolist() == [0, 1, 2, 9, 10, 11]
    assert by_vector.numbers.tolist() == list(range(6))


@pytest.mark.parametrize(("task", "counting", "least"), [
    ("MLP", "folded", 170), ("LSTMCell", "folded", 270), ("NeoHookean", "folded", 250), ("RoeFlux_3d", "folded", 200),
    ("ElasticRod", "folded", 75), ("KalmanUpdate", "folded", 45), ("MLP", "raw", 220), ("NeoHookean", "raw", 250),
    ("Chebyquad", "raw", 130), ("HLLCFlux_2d", "raw", 255), ("LSTMCell", "raw", 300),
])  # fmt: skip
def test_array_tasks_have_bounds(task, counting, least):
    from alphagrad.tasks import TASKS, UNSEEN

    assert (TASKS | UNSEEN)[task].graph().lower_bound(counting=counting) >= least


@pytest.mark.parametrize("installed", [True, False])
def test_ranks_are_computed_on_one_thread_if_that_can_be_set(installed, monkeypatch):
    if not installed:
        monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    before = [each["num_threads"] for each in threadpool_info()]
    with _on_one_thread():
        blas = [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]
    assert set(blas) == {1} if installed else blas
    assert [each["num_threads"] for each in threadpool_info()] == before
