from dataclasses import replace

import jax
import numpy as np
import pytest

from alphagrad.agents.alphazero import AlphaZero
from alphagrad.agents.games import Games
from alphagrad.agents.groups import Share, by_size, together
from alphagrad.agents.ppo import PPO as Agent
from alphagrad.agents.training import Trainer, train
from alphagrad.game import sizes_of

from .tiny import ALPHAZERO, GRAPH, PPO, tiny_graph

SMALL, SIMILAR, LARGE = tiny_graph(), tiny_graph(seed=0, intermediates=9), tiny_graph(seed=1, intermediates=24)
GRAPHS = {"small": SMALL, "large": LARGE, "similar": SIMILAR}
AGENT = replace(ALPHAZERO, environments=7, simulations=2, epochs=1, network=GRAPH)


def games(*graphs):
    return Games.of(graphs)


def test_tasks_of_similar_size_are_played_together():
    groups = by_size(games(*GRAPHS.values()))
    assert [group.tasks for group in groups] == [(1,), (0, 2)]
    assert groups[0].games.sizes == sizes_of(LARGE)
    assert groups[1].games.sizes.intermediates == 9
    assert [group.tasks for group in by_size(games(SMALL, SIMILAR))] == [(0, 1)]


@pytest.mark.parametrize("environments", [7, 32, 33])
@pytest.mark.parametrize("devices", [1, 2, 3])
@pytest.mark.parametrize(("kind", "config"), [(AlphaZero, AGENT), (Agent, PPO)])
def test_devices_share_the_games_of_each_group(environments, devices, kind, config):
    groups = by_size(games(*GRAPHS.values()))
    shares = Share.of(groups, kind, replace(config, environments=environments), devices)
    for share in shares:
        assert share.games >= len(share.group.tasks)
        assert share.is_equal(devices)
    assert environments <= sum(share.games for share in shares) <= 2 * environments + 8 * devices


def test_a_single_group_plays_as_many_games_as_it_is_told():
    (share,) = Share.of(together(games(SMALL, SIMILAR)), Agent, replace(PPO, environments=33), 1)
    assert share.games == 33
    assert not share.is_equal(1)


def test_networks_for_one_size_play_all_games_in_it():
    assert len(Trainer.of(GRAPHS, replace(AGENT, network=ALPHAZERO.network)).fitting.groups) == 1
    assert len(Trainer.of(GRAPHS, AGENT).fitting.groups) == 2


@pytest.mark.slow
def test_groups_are_learnt_in_turns_and_resumed(tmp_path):
    reports = []
    whole = train(GRAPHS, AGENT, iterations=3, until_optimal=False, progress=reports.append)
    train(GRAPHS, AGENT, iterations=1, until_optimal=False, folder=tmp_path)
    resumed = train(GRAPHS, AGENT, iterations=3, until_optimal=False, folder=tmp_path)
    for one, other in zip(jax.tree.leaves(whole.learner), jax.tree.leaves(resumed.learner), strict=True):
        np.testing.assert_array_equal(one, other)
    assert whole.orders == resumed.orders
    for task, (name, graph) in enumerate(GRAPHS.items()):
        cost = graph.cost(whole.orders[name], "raw").multiplications
        assert cost == whole.orders[name].cost == reports[-1].metrics["best_cost"][task]
        assert reports[-1].metrics["mean_cost"][task] >= reports[-1].metrics["least_cost"][task] >= cost
