from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import alphagrad
from alphagrad.agents.games import Games, ValueScale, costs_to_go
from alphagrad.agents.ppo import PPO as Agent
from alphagrad.agents.training import train
from alphagrad.errors import SearchError

from .tiny import PPO, tiny_graph


@pytest.mark.parametrize("scaling", ["root", "log"])
def test_values_are_read_back_as_costs(scaling):
    values, reference = ValueScale(scaling), jnp.array([50.0, 3.0, 1e5], jnp.float32)
    cost = jnp.array([0.0, 7.0, 1.3e5], jnp.float32)
    targets = values.target(cost, reference)
    np.testing.assert_allclose(values.cost(targets, reference), cost / reference, rtol=1e-4)
    np.testing.assert_allclose(values.cost(jnp.full(3, 1e9, jnp.float32), reference), 100, rtol=1e-3)
    assert jnp.all(values.cost(jnp.full(3, -1.0, jnp.float32), reference) == 0)


def test_advantages_without_decay_are_what_was_paid_less_than_expected():
    games = Games.of([tiny_graph(), tiny_graph(seed=0, intermediates=9)])
    agent = Agent(replace(PPO, trace=1.0), games.boards.sizes)
    network = agent.init(jax.random.key(3)).network
    actions = jnp.array([[3, 1, 0, 2, 4, 6, 5, 0, 0], [8, 7, 6, 5, 4, 3, 2, 1, 0]], jnp.int32)
    environments = games.boards.environments(jnp.arange(2))
    replay = environments.replay(actions)
    found = agent._advantages(network, environments, actions)
    _, predictions = jax.vmap(environments.each(network))(replay.seen)
    expected = agent._values.cost(predictions, environments.references)
    paid = costs_to_go(replay.costs) / environments.references
    active = np.asarray(replay.active)
    np.testing.assert_allclose(found[active], (expected - paid)[active], rtol=1e-4, atol=1e-5)


def test_environments_that_cannot_be_divided():
    with pytest.raises(SearchError, match="32 environments cannot be shared equally by 1 devices in 5 minibatches"):
        train(tiny_graph(), replace(PPO, minibatches=5), iterations=1)
    with pytest.raises(SearchError, match="2 environments cannot play 3 tasks"):
        train([tiny_graph(seed) for seed in range(3)], replace(PPO, environments=2), iterations=1)


@pytest.mark.slow
def test_learns_the_certified_optimum():
    graph = tiny_graph()
    certified = alphagrad.search(graph, counting="raw", method="exact", budget="certified", record=False)
    means = []
    result = train(
        graph, PPO, iterations=40, until_optimal=False, progress=lambda now: means.append(now.metrics["mean_cost"][0])
    )
    order = result.orders["graph-0"]
    assert order.cost == graph.cost(order, "raw").multiplications == certified.value
    assert np.mean(means[-5:]) < certified.value + 1 < means[0]
