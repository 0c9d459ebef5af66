from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagrad.agents.training import train
from alphagrad.agents.updates import filled_up, in_chunks, moves_at_once, summed_gradient

from .tiny import AGENTS, NETWORK, tiny_graph

GRAPHS = {"one": tiny_graph(), "other": tiny_graph(seed=0, intermediates=9)}


@pytest.mark.parametrize(("games", "states", "expected"), [(8, 80, 10), (8, 79, 5), (8, 24, 3), (8, 1, 1), (3, 20, 5)])
def test_chunks_have_about_the_same_size(games, states, expected):
    assert moves_at_once(10, games, states) == expected


def test_a_sum_over_chunks_is_the_sum_over_moves():
    moves, weight = jnp.arange(10.0).reshape(1, 10), jnp.asarray(3.0)

    def loss(weight, moves):
        return jnp.sum(weight**2 * moves), {"total": jnp.sum(moves)}

    chunks = in_chunks(filled_up(moves, 4).T, 4)
    assert chunks.shape == (3, 4, 1)
    gradient, metrics = summed_gradient(loss, weight, chunks)
    assert (gradient, metrics["total"]) == (2 * 3 * 45, 45)
    assert filled_up(moves, 4, -1)[0, -2:].tolist() == [-1, -1]


@pytest.mark.slow
@pytest.mark.parametrize("name", AGENTS)
def test_agents_learn_the_same_however_much_they_compute_at_once(name):
    small = {"environments": 8, "epochs": 1, ("network" if name == "alphazero" else "value_network"): NETWORK}
    learners = [
        train(GRAPHS, replace(AGENTS[name], **small, states_at_once=states), iterations=1).learner
        for states in (1, 10_000)
    ]
    for leaf, expected in zip(*map(jax.tree.leaves, learners), strict=True):
        np.testing.assert_allclose(leaf, expected, rtol=1e-3, atol=1e-5)
