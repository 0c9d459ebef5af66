from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import alphagrad
from alphagrad.agents.alphazero import AlphaZero
from alphagrad.agents.games import Experience, Games
from alphagrad.agents.player import Player
from alphagrad.agents.training import train
from alphagrad.agents.updates import DEVICES, number_of_minibatches

from .tiny import ALPHAZERO, GRAPH, tiny_graph


@pytest.fixture(scope="module")
def self_play():
    """Games of two sizes, played by an untrained agent: games, function, episodes and policies."""
    games = Games.of([tiny_graph(), tiny_graph(seed=0, intermediates=9)])
    agent = AlphaZero(replace(ALPHAZERO, environments=4, simulations=4), games.boards.sizes)
    network = agent.init(jax.random.key(0)).network
    play = jax.jit(lambda tasks, keys: agent.play(network, games.boards, tasks, keys, Experience.none(2, 9)))
    return games, play, *play(jnp.array([0, 1, 0, 1]), jax.random.split(jax.random.key(1), 4))


def test_games_are_elimination_orders_that_cost_what_the_plan_counts(self_play):
    games, _, episodes, _ = self_play
    for task, actions, cost in zip(*(np.asarray(part).tolist() for part in episodes), strict=True):
        order = games.order(task, actions)
        assert sorted(order) == list(games.graphs[task].intermediates)
        assert order == tuple(games.graphs[task].intermediates[a] for a in actions[: len(order)])
        assert games.cost(task, order) == cost


def test_improved_policies_are_distributions_over_legal_actions(self_play):
    games, _, episodes, policies = self_play
    played = games.boards.environments(episodes.tasks).replay(episodes.actions)
    legal = ~played.seen.eliminated & games.boards.tables.intermediate[episodes.tasks]
    active, policies = np.asarray(played.active), jnp.swapaxes(policies, 0, 1)
    np.testing.assert_allclose(policies.sum(-1)[active], 1, rtol=1e-5)
    assert np.all(np.asarray(policies)[active][~np.asarray(legal)[active]] == 0)
    assert active.sum(0).tolist() == [7, 9, 7, 9]


def test_a_game_does_not_depend_on_those_beside_it(self_play):
    _, play, episodes, _ = self_play
    turned, _ = play(jnp.array([1, 0, 1, 0]), jnp.roll(jax.random.split(jax.random.key(1), 4), 1))
    np.testing.assert_array_equal(turned.actions, jnp.roll(episodes.actions, 1, 0))


def test_minibatches_are_as_large_as_allowed():
    assert number_of_minibatches(32, 100, 4096) == 1
    assert number_of_minibatches(32, 100, 1700) == 2
    assert number_of_minibatches(12, 100, 350) == 4
    assert number_of_minibatches(6, 100, 50) == 6


def test_the_best_order_is_imitated_or_else_reverse_mode(self_play):
    games, _, episodes, policies = self_play
    agent = AlphaZero(replace(ALPHAZERO, environments=4, imitation=0.5), games.boards.sizes)
    known = Experience(jnp.array([jnp.inf, 1.0]), jnp.tile(jnp.arange(9), (2, 1)), jnp.zeros(2))
    actions, taught = agent.lessons(games.boards, episodes, policies, known)
    order = games.order(0, actions[0, :7].tolist())
    assert games.cost(0, order) == games.graphs[0].cost("rev", "raw").multiplications
    assert actions[1].tolist() == list(range(9))
    np.testing.assert_array_equal(taught[1], jax.nn.one_hot(actions[1], 9))
    for game in (2, 3):
        np.testing.assert_array_equal(actions[game], episodes.actions[game])
        np.testing.assert_array_equal(taught[game], policies[game])


def test_some_games_follow_the_best_order_or_else_reverse_mode():
    games = Games.of([tiny_graph(), tiny_graph(seed=0, intermediates=9)])
    agent = AlphaZero(replace(ALPHAZERO, environments=8, simulations=2, following=1.0), games.boards.sizes)
    network = agent.init(jax.random.key(0)).network
    examples = np.array([[6, 5, 4, 3, 2, 1, 0, -1, -2], [4, 0, 8, 1, 7, 2, 6, 3, 5]])
    known = Experience(jnp.array([jnp.inf, 1.0]), jnp.stack([jnp.arange(9), examples[1]]), jnp.zeros(2))
    tasks = jnp.repeat(jnp.arange(2), 4)
    episodes, policies = jax.jit(lambda keys: agent.play(network, games.boards, tasks, keys, known))(
        jax.random.split(jax.random.key(1), 8)
    )
    followed = np.zeros(8)
    for n, (task, actions) in enumerate(zip(tasks, np.asarray(episodes.actions), strict=True)):
        moves = len(games.graphs[task].intermediates)
        for move in range(moves):
            expected = next(action for action in examples[task] if action not in actions[:move])
            is_given = np.asarray(policies)[n, move].max() == 1
            followed[n] += is_given
            assert actions[move] == expected or not is_given or move == moves - 1
    assert followed.min() < followed.max()


def test_large_errors_of_values_count_linearly(self_play):
    games, _, episodes, _ = self_play
    keys, nothing, losses = jax.random.split(jax.random.key(1), 4), Experience.none(2, 9), {}
    for reach in (100.0, 0.01):
        agent = AlphaZero(replace(ALPHAZERO, environments=4, simulations=2, value_reach=reach), games.boards.sizes)
        learner = agent.init(jax.random.key(0))

        def learn(_, agent=agent, learner=learner):
            return agent.iterate(learner, games.boards, episodes.tasks, keys, nothing, 1)[2]["value_loss"]

        (losses[reach],) = jax.jit(jax.vmap(learn, axis_name=DEVICES))(jnp.zeros(1))
    assert 0 < losses[0.01] < 0.1 * losses[100.0]


@pytest.mark.slow
def test_a_network_on_the_graph_learns_several_tasks_and_plays_them(tmp_path):
    config = replace(
        ALPHAZERO, environments=4, simulations=4, network=GRAPH, scaling="linear", value_units="reference",
        least_gumbel_scale=0.0, imitation=0.25, epochs=1,
    )  # fmt: skip
    graphs = {"one": tiny_graph(), "other": tiny_graph(seed=0, intermediates=9)}
    train(graphs, config, iterations=1, folder=tmp_path, until_optimal=False)
    result = train(graphs, config, iterations=2, folder=tmp_path, until_optimal=False)
    player = Player.load(tmp_path)
    for name, graph in graphs.items():
        assert graph.cost(result.orders[name], "raw").multiplications == result.orders[name].cost
        assert sorted(player.order(graph)) == list(graph.intermediates)


@pytest.mark.slow
def test_learns_the_certified_optimum():
    graph = tiny_graph()
    certified = alphagrad.search(graph, counting="raw", method="exact", budget="certified", record=False)
    presets = [graph.cost(order, "raw").multiplications for order in ("fwd", "rev", "markowitz")]
    assert certified.optimal
    assert certified.value < min(presets)
    means = []
    result = train(
        graph,
        ALPHAZERO,
        iterations=40,
        until_optimal=False,
        progress=lambda now: means.append(now.metrics["mean_cost"][0]),
    )
    order = result.orders["graph-0"]
    assert order.cost == graph.cost(order, "raw").multiplications == certified.value
    assert np.mean(means[-5:]) < certified.value + 1 < means[0]
