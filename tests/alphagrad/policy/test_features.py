import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from alphagrad.elimination.objective import Objective
from alphagrad.elimination.problem import Problem
from alphagrad.policy.features import FEATURES, STATIC, UNITS, facts_of
from alphagrad.policy.network import initial
from alphagrad.policy.play import new_game, play
from alphagrad.policy.training.lessons import surveyed
from alphagrad.tasks import TASKS
from graphax import build_graph

from ..graphs import program_graphs

NETWORK = initial(0, hidden=8)


def check_state_features(graph, counting, seed):
    """Check features. Only vertices near the last elimination are updated, but all must be as if computed anew."""
    problem = Problem(graph, Objective(counting=counting))
    game = new_game(problem, NETWORK, seed, log=True)
    problem.call(play, NETWORK, game, 1.0)
    for place in range(0, problem.size, 1 + problem.size // 7):
        fresh, _ = surveyed(problem, NETWORK, game.order, place)
        left = game.order[place:]
        np.testing.assert_allclose(game.log[place][left], fresh.facts.features[left], atol=1e-5)


@settings(max_examples=20, deadline=None)
@given(program_graphs(), st.sampled_from(["raw", "folded"]), st.integers(0, 99))
def test_features_are_those_of_the_state(graph, counting, seed):
    check_state_features(graph, counting, seed)


@pytest.mark.parametrize("name", ["RoeFlux_1d", "random_f", "TransformerEncoder"])
def test_features_are_those_of_the_state_on_tasks(name):
    check_state_features(TASKS[name].graph(), "raw", 1)


def test_features_of_a_known_graph():
    def f(x, y):
        a = x * y
        b = a * a
        return b * x, a * y

    problem = Problem(build_graph(f, 1.0, 2.0, argnums=(0, 1)), Objective(counting="raw"))
    game, _ = surveyed(problem, NETWORK, np.array([0, 1], np.int32), 0)
    # The mean price of a and b is 2.5 units.
    unit = 2.5 / UNITS
    a, b = (dict(zip(FEATURES, row.tolist(), strict=True)) for row in game.facts.features)
    # a = x·y has two inputs before it, and b and the second output after it.
    assert round(np.expm1(a["price"]) * unit, 3) == 4
    assert [round(np.expm1(a[name])) for name in ("predecessors", "successors", "created")] == [2, 2, 3]
    assert [a[name] for name in ("one_predecessor", "one_successor", "position")] == [0, 0, 0]
    # Without a, b has two predecessors instead of one.
    assert [round(np.expm1(a[name]) * unit, 3) for name in ("change_after", "change_before")] == [1, 0]
    assert [b["one_predecessor"], b["one_successor"], round(np.expm1(b["price"]) * unit, 3)] == [1, 1, 1]
    assert [round(np.expm1(b[name])) for name in ("inputs", "outputs", "outputs_after", "inputs_before")] == [
        2,
        1,
        1,
        0,
    ]
    assert [a["depth"], b["depth"], a["height"], b["height"]] == [0.5, 1, 1, 0.5]


def test_what_does_not_change_is_written_at_once():
    facts = facts_of(Problem(TASKS["RoeFlux_3d"].graph(), Objective()))
    assert np.isfinite(facts.features).all()
    assert (facts.features[:, -len(STATIC) :].std(0) > 0).all()
