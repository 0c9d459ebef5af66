"""The compiled kernels count what the plan counts, and can be undone."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from alphagrad.elimination import compiling, kernels, random_numbers
from alphagrad.elimination.objective import Objective
from alphagrad.elimination.problem import Problem
from alphagrad.tasks import TASKS

from ...graphax.scalar_graphs import scalar_graphs
from ..graphs import program_graphs

relaxed = settings(deadline=None, print_blob=True)
COUNTINGS = ("raw", "folded")


def assert_counts_agree(graph, order):
    for counting in COUNTINGS:
        problem = Problem(graph, Objective.of("multiplications", counting))
        assert problem.cost(problem.nodes(order)) == graph.cost(order, counting)


@given(graph=program_graphs(), shuffle=st.randoms(use_true_random=False))
@settings(relaxed, max_examples=60)
def test_counts_are_those_of_the_plan(graph, shuffle):
    order = list(graph.intermediates)
    shuffle.shuffle(order)
    assert_counts_agree(graph, order)


@given(graph=scalar_graphs(), shuffle=st.randoms(use_true_random=False))
@settings(relaxed, max_examples=60)
def test_counts_are_those_of_the_plan_on_scalars(graph, shuffle):
    order = list(graph.intermediates)
    shuffle.shuffle(order)
    assert_counts_agree(graph, order)


@pytest.mark.parametrize("name", TASKS)
def test_counts_are_those_of_the_plan_on_tasks(name):
    graph = TASKS[name].graph()
    rng = np.random.default_rng(0)
    # A random order of a network costs a plan of hundreds of thousands of entries, so one is enough there.
    for _ in range(3 if name in ("RoeFlux_1d", "BlackScholes", "RoeFlux_3d") else 1):
        assert_counts_agree(graph, rng.permutation(graph.intermediates).tolist())


def links(net):
    """The neighbours of every node, according to the linked lists."""
    lists = []
    for following, end in ((kernels.NEXT_IN, kernels.SOURCE), (kernels.NEXT_OUT, kernels.TARGET)):
        for node in range(len(net.mark)):
            edge, found = net.edges[node, following], []
            while edge != node:
                found.append((int(net.edges[edge, end]), int(net.edges[edge, kernels.STRUCTURE])))
                edge = net.edges[edge, following]
            lists.append(found)
    return lists


@given(graph=program_graphs(), shuffle=st.randoms(use_true_random=False))
@settings(relaxed, max_examples=30)
def test_undoing_gives_the_graph_back(graph, shuffle):
    problem = Problem(graph, Objective())
    nodes = list(range(problem.size))
    shuffle.shuffle(nodes)
    order = np.array(nodes, np.int32)
    problem.cost(order)
    kernels.rewind(problem.net, 0)
    net = problem.net
    states = [(links(net), int(net.digest[0]), net.now[: kernels.DEPTH].tolist())]
    for node in order:
        assert kernels.eliminate(net, problem.structures.table, problem.prices, node) >= 0
        states.append((links(net), int(net.digest[0]), net.now[: kernels.DEPTH].tolist()))
    for state in reversed(states):
        assert (links(net), int(net.digest[0]), net.now[: kernels.DEPTH].tolist()) == state
        if net.now[kernels.DEPTH]:
            kernels.undo(net)


@given(graph=scalar_graphs(), shuffle=st.randoms(use_true_random=False))
@settings(relaxed, max_examples=30)
def test_the_state_after_a_set_of_scalars_depends_on_the_set(graph, shuffle):
    """Except for known numbers, whose products are rounded in the order of multiplication."""
    problem = Problem(graph, Objective())
    digests = set()
    for _ in range(3):
        order = list(range(problem.size))
        shuffle.shuffle(order)
        problem.cost(np.array(order, np.int32))
        digests.add(int(problem.net.digest[0]))
    assert len(digests) == 1


def test_cached_kernels_are_stamped_with_all_sources():
    """A kernel that inlines another one must be compiled again when that one changes."""
    stamps = {kernels.eliminate._cache._cache_file._source_stamp, kernels.undo._cache._cache_file._source_stamp}
    assert stamps == {compiling._STAMP}


def test_random_numbers_lie_where_they_should():
    rng = np.array([7], np.uint64)
    units = np.array([random_numbers.random_unit(rng) for _ in range(1000)])
    assert np.all((units > 0) & (units <= 1))
    assert 0.4 < units.mean() < 0.6
    assert {int(random_numbers.random_below(rng, 3)) for _ in range(100)} == {0, 1, 2}


def test_a_cache_that_names_types_of_another_version_is_empty(tmp_path):
    """Kernels are cached next to their source, where an older version may have left kernels."""

    def gone():
        raise ModuleNotFoundError("No module named 'alphagrad.kernels'")

    assert compiling._readable(gone) == {}
    assert compiling._readable(lambda: {"a": 1}) == {"a": 1}
