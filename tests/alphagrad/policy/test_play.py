import numpy as np
import pytest
from hypothesis import given, settings

from alphagrad.elimination.objective import Objective
from alphagrad.elimination.problem import Problem
from alphagrad.policy.network import initial, shipped
from alphagrad.policy.play import policy_order
from alphagrad.tasks import TASKS

from ..graphs import program_graphs

NETWORK = initial(0, hidden=8)


@settings(max_examples=20, deadline=None)
@given(program_graphs())
def test_every_vertex_is_eliminated_once(graph):
    problem = Problem(graph, Objective())
    order = policy_order(problem, NETWORK, seed=1, temperature=1.0)
    assert sorted(order) == list(range(problem.size))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_the_same_seed_plays_the_same_game(temperature):
    """Also when the structures are known already, so that the kernel is not interrupted to learn them."""
    graph = TASKS["MLP"].graph()
    problem = Problem(graph, Objective())
    orders = [policy_order(each, NETWORK, 5, temperature) for each in (problem, problem, Problem(graph, Objective()))]
    np.testing.assert_array_equal(orders[0], orders[1])
    np.testing.assert_array_equal(orders[0], orders[2])


def test_noise_makes_other_games():
    problem = Problem(TASKS["RoeFlux_1d"].graph(), Objective())
    games = {tuple(policy_order(problem, NETWORK, seed, 1.0)) for seed in range(5)}
    assert len(games) == 5
    assert tuple(policy_order(problem, NETWORK, 0)) == tuple(policy_order(problem, NETWORK, 1))


@pytest.mark.parametrize("counting", ["raw", "folded"])
def test_the_shipped_policy_beats_markowitz(counting):
    """This holds for the tasks, on which it was not trained. benchmarks/policy.py tests more functions."""
    ratios = []
    for task in TASKS.values():
        problem = Problem(task.graph(), Objective(counting=counting))
        markowitz = problem.graph.cost("markowitz", counting).multiplications
        ratios.append(problem.value(policy_order(problem, shipped())) / markowitz)
    assert np.mean(ratios) < 0.95
    assert np.mean(np.array(ratios) <= 1) >= 0.8
