"""Every finder gives valid orders, never worse than its start, and the same ones with the same seed."""

from itertools import islice

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

from alphagrad.elimination.objective import Objective
from alphagrad.elimination.problem import Problem, TooLarge
from alphagrad.finders import anneal
from alphagrad.finders.exact import exact
from alphagrad.finders.finder import cheapest
from alphagrad.finders.portfolio import FINDERS
from alphagrad.tasks import TASKS

from ...graphax.scalar_graphs import EDGES, scalar_graph, scalar_graphs
from ..graphs import optimum, program_graphs

relaxed = settings(deadline=None, print_blob=True)
# The number of steps for each finder. A beam needs as many as there are vertices.
STEPS = {"beam": 200, "policy+beam": 200, "greedy": 12}


def orders(name, problem, seed=0, starts=(), steps=None):
    found = islice(FINDERS[name](problem, seed, list(starts)), steps or STEPS.get(name, 8))
    return [step.nodes for step in found if step.nodes is not None]


@pytest.mark.parametrize("task", ["RobotArm_6DOF", "RoeFlux_3d", "MLP", "random_f"])
@pytest.mark.parametrize("name", FINDERS)
def test_orders_are_valid_and_no_worse_than_the_start(name, task):
    problem = Problem(TASKS[task].graph(), Objective())
    start = np.arange(problem.size, dtype=np.int32)[::-1].copy()
    found = orders(name, problem, starts=[start])
    assert all(sorted(nodes) == list(range(problem.size)) for nodes in found)
    assert found
    if name not in ("presets", "greedy"):
        assert min(map(problem.value, found)) <= problem.value(start)


@pytest.mark.parametrize("name", FINDERS)
def test_the_same_seed_takes_the_same_steps(name):
    """This also holds if one run knows all structures already and the other is interrupted to learn them."""
    graph = TASKS["RoeFlux_3d"].graph()
    known, fresh = (Problem(graph, Objective()) for _ in range(2))
    first = orders(name, known)
    again, elsewhere = orders(name, known), orders(name, fresh)
    for other in (again, elsewhere):
        assert len(first) == len(other)
        assert all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


def test_orders_with_too_much_fill_are_passed_over(monkeypatch):
    """A search skips such orders and starts from the others. If there are none, the error says so."""
    monkeypatch.setattr("alphagrad.elimination.problem.LARGEST_LOG", 400)
    problem = Problem(TASKS["RoeFlux_1d"].graph(), Objective())
    problem.net = problem._new_net(400)
    forward = np.arange(problem.size, dtype=np.int32)
    assert problem.value(forward) == np.inf
    assert orders("anneal", problem, starts=[forward, forward[::-1].copy()])
    with pytest.raises(TooLarge, match="more than 400 edges"):
        orders("anneal", problem, starts=[forward])


@pytest.mark.parametrize("reference", [0, 1, 5])
def test_prices_are_of_one_type(reference):
    """Kernels are compiled for types, before the clock of a search starts."""
    assert {type(price) for price in Objective().prices(reference)} == {float}


@given(graph=program_graphs(steps=14))
@settings(relaxed, max_examples=25)
def test_a_walk_knows_its_total(graph):
    """The sum over the windows equals the cost of the whole order, for all structures."""
    problem = Problem(graph, Objective("weighted", "folded", (1.0, 0.25)))
    if problem.size < 2:
        return
    walk = anneal.new_walk(problem, np.arange(problem.size, dtype=np.int32), 3)
    for _ in anneal.walked(problem, walk, 20, 5.0, 0.5):
        pass
    tie_break = problem.prices.addition - problem.plain_prices.addition
    for nodes, total in ((walk.order, walk.total[anneal.CURRENT]), (walk.best, walk.total[anneal.BEST])):
        cost = problem.cost(nodes)
        assert total == pytest.approx(problem.objective.value(cost) + tie_break * cost.additions)
    assert np.array_equal(walk.position[walk.order], np.arange(problem.size))


@given(graph=scalar_graphs(intermediates=6))
@settings(relaxed, max_examples=50)
@pytest.mark.parametrize("counting", ["raw", "folded"])
@pytest.mark.parametrize("minimize", ["multiplications", "operations"])
def test_exact_search_finds_and_proves_the_optimum(minimize, counting, graph):
    problem = Problem(graph, Objective.of(minimize, counting))
    steps = list(FINDERS["exact"](problem, 0, []))
    found = [step.nodes for step in steps if step.nodes is not None]
    best = min(map(problem.value, [*found, np.arange(problem.size, dtype=np.int32)[::-1].copy()]))
    assert best == steps[-1].bound == optimum(graph, counting, minimize)


def test_copies_are_free_so_nothing_is_forced_next_to_them():
    """Once, a vertex with one neighbour on each side was eliminated immediately for 1, although waiting is free."""
    copy, values = EDGES["copy"], EDGES["values"]
    edges = {(1, 0): values, (2, 1): copy, (3, 2): values, (3, 1): values, (4, 3): copy, (5, 4): values, (5, 2): copy}
    graph = scalar_graph(1, 4, 1, edges)
    problem = Problem(graph, Objective.of("multiplications", "raw"))
    assert list(FINDERS["exact"](problem, 0, []))[-1].bound == optimum(graph, "raw", "multiplications")


@given(graph=program_graphs(steps=6))
@settings(relaxed, max_examples=25)
def test_exact_search_finds_the_optimum_of_programs(graph):
    if len(graph.intermediates) > 6:
        return
    problem = Problem(graph, Objective())
    steps = list(exact(problem, 0, []))
    best = cheapest(problem, [step.nodes for step in steps if step.nodes is not None])
    assert problem.value(best) == steps[-1].bound == optimum(graph, "folded", "multiplications")


def test_parts_without_common_edges_are_solved_once():
    """Four copies of a function take four times as many states as one, not the fourth power."""
    import graphax as gx

    def one(x, y):
        product = jnp.sin(x) * jnp.cos(y)
        left, right = jnp.tanh(product) * x, jnp.exp(product) * y
        meeting = jnp.sin(left * right)
        return meeting * left, jnp.cos(meeting) * right * product

    def four(xs, ys):
        return [one(x, y) for x, y in zip(xs, ys, strict=True)]

    alone = Problem(gx.build_graph(one, 1.0, 2.0, argnums=(0, 1)), Objective())
    together = Problem(gx.build_graph(four, [1.0, 2.0, 3.0, 4.0], [2.0, 1.0, 4.0, 3.0], argnums=(0, 1)), Objective())
    (step,), (steps,) = exact(alone, 0, []), exact(together, 0, [])
    assert steps.bound == 4 * step.bound > 0
    assert step.evaluations > 500
    assert steps.evaluations <= 4 * step.evaluations


@given(graph=scalar_graphs(intermediates=7))
@settings(relaxed, max_examples=25)
def test_one_window_over_everything_is_optimal(graph):
    problem = Problem(graph, Objective.of("multiplications", "raw"))
    if problem.size < 2:
        return
    assert min(map(problem.value, orders("windows", problem))) == optimum(graph, "raw", "multiplications")


@given(graph=scalar_graphs(intermediates=6))
@settings(relaxed, max_examples=25)
def test_a_wide_beam_is_optimal(graph):
    problem = Problem(graph, Objective.of("multiplications", "raw"))
    if problem.size < 2:
        return
    assert min(map(problem.value, orders("beam", problem))) == optimum(graph, "raw", "multiplications")


@pytest.mark.parametrize("name", FINDERS)
@pytest.mark.parametrize("size", [0, 1])
def test_there_may_be_little_to_find(name, size):
    import graphax as gx

    function = (lambda x: x * 2.0) if size == 0 else (lambda x: (x * 2.0) ** 2)
    problem = Problem(gx.build_graph(function, 1.0), Objective())
    assert problem.size == size
    for nodes in orders(name, problem, steps=3):
        assert nodes.tolist() == list(range(size))
