import numpy as np
import pytest
from hypothesis import given, settings

from alphagrad.elimination.objective import Objective
from alphagrad.elimination.problem import Problem
from alphagrad.policy.network import initial, shipped
from alphagrad.policy.play import policy_order
from alphagrad.policy.polish import answer, polished
from alphagrad.tasks import TASKS, UNSEEN
from graphax.presets import BASELINES

from ..graphs import program_graphs

NETWORK = initial(0, hidden=8)


@settings(max_examples=20, deadline=None)
@given(program_graphs())
@pytest.mark.parametrize("counting", ["raw", "folded"])
def test_an_answer_is_no_more_expensive_than_simple_orders(counting, graph):
    problem = Problem(graph, Objective(counting=counting))
    order = answer(problem, NETWORK)
    assert sorted(order) == list(range(problem.size))
    simple = [graph.cost(name, counting).multiplications for name in BASELINES]
    assert problem.value(order) <= min(*simple, problem.value(policy_order(problem, NETWORK)))


def test_the_same_graph_has_the_same_answer():
    """Also when the structures are known already, so that the kernel is not interrupted to learn them."""
    graph = TASKS["RoeFlux_3d"].graph()
    problem = Problem(graph, Objective())
    answers = [answer(each, shipped()) for each in (problem, problem, Problem(graph, Objective()))]
    np.testing.assert_array_equal(answers[0], answers[1])
    np.testing.assert_array_equal(answers[0], answers[2])


@pytest.mark.parametrize(("task", "counting", "most"), [
    ("LSTMCell", "raw", 660), ("LSTMCell", "folded", 500), ("NeoHookean", "folded", 320), ("Chebyquad", "raw", 165),
    ("TorsionForces", "folded", 860), ("HLLCFlux_2d", "raw", 350),
])  # fmt: skip
def test_array_graphs_are_no_exception(task, counting, most):
    """The network alone takes up to four times as many multiplications as a search finds."""
    problem = Problem(UNSEEN[task].graph(), Objective(counting=counting))
    assert problem.value(answer(problem, shipped())) <= most


def test_moves_make_reverse_order_better():
    problem = Problem(TASKS["random_f"].graph(), Objective())
    reverse = np.arange(problem.size, dtype=np.int32)[::-1].copy()
    assert problem.value(polished(problem, reverse)) < 0.95 * problem.value(reverse)


def test_an_answer_without_room_for_the_game_is_a_simple_order(monkeypatch):
    monkeypatch.setattr("alphagrad.elimination.problem.LARGEST_LOG", 400)
    problem = Problem(TASKS["RoeFlux_1d"].graph(), Objective())
    problem.net = problem._new_net(400)
    assert problem.value(answer(problem, shipped())) < np.inf
