"""The Gymnasium environment plays the game."""

import warnings

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env

from alphagrad.errors import AlphagradError
from alphagrad.game import Sizes
from alphagrad.game.environment import VertexEnvironment
from alphagrad.tasks import TASKS
from graphax import build_graph


@pytest.fixture(scope="module")
def graph():
    return TASKS["MLP"].graph()


def test_gymnasium_accepts_it(graph):
    with warnings.catch_warnings():
        # The checker warns because the upper bound of block sizes is infinite.
        warnings.filterwarnings("ignore", message=".*Box observation space maximum value is infinity.*")
        check_env(VertexEnvironment(graph), skip_render_check=True)


def test_an_episode_costs_what_the_plan_counts(graph):
    environment = VertexEnvironment(graph, "folded", "operations")
    rng = np.random.default_rng(3)
    for _ in range(2):
        observation, info = environment.reset(seed=0)
        order, total, over = [], 0.0, False
        while not over:
            assert observation in environment.observation_space
            action = rng.choice(np.flatnonzero(info["action_mask"]))
            observation, reward, over, truncated, info = environment.step(action)
            order.append(int(action))
            total -= reward
            assert not truncated
            assert info["cost"] == total
        assert not info["action_mask"].any()
        assert total == graph.cost(environment.game.vertices(order), "folded").operations


def test_illegal_actions_change_nothing_and_are_not_rewarded(graph):
    environment = VertexEnvironment(graph)
    environment.reset()
    observation, reward, _, _, info = environment.step(np.int64(5))
    again, nothing, over, _, same = environment.step(np.int64(5))
    assert reward < 0
    assert nothing == 0
    assert not over
    np.testing.assert_array_equal(observation, again)
    np.testing.assert_array_equal(info["action_mask"], same["action_mask"])


def test_padded_actions_are_masked(graph):
    environment = VertexEnvironment(graph, sizes=Sizes(10, 40, 3, 100))
    _, info = environment.reset()
    assert info["action_mask"].sum() == len(graph.intermediates)
    assert environment.action_space.n == 40


def test_a_graph_without_intermediates_is_no_game():
    with pytest.raises(AlphagradError, match="nothing to play"):
        VertexEnvironment(build_graph(lambda x: 2.0 * x, 1.0))
