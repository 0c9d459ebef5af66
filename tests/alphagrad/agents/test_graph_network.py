"""The network on the graph works for any numbering and any size, and plays well from the start."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagrad.agents.games import Games
from alphagrad.agents.networks import ILLEGAL, PolicyValueNetwork
from alphagrad.agents.player import _play
from alphagrad.game import Sizes, init, make_tables, step
from alphagrad.tasks import get

from .tiny import GRAPH, tiny_graph


@pytest.fixture(scope="module")
def network():
    """A network whose heads and edge weights are not close to zero."""
    fresh = PolicyValueNetwork.joint(GRAPH, Sizes(3, 7, 2, 1), jax.random.key(0))
    keys = iter(jax.random.split(jax.random.key(1), 1000))
    return eqx.filter_jit(jax.tree.map(lambda leaf: leaf + 0.3 * jax.random.normal(next(keys), leaf.shape), fresh))


def renumbered(tables, state, places):
    """The same game with its intermediate vertices numbered in another order."""
    sizes = tables.sizes
    rows = np.concatenate([places, np.arange(sizes.intermediates, sizes.intermediates + sizes.outputs)])
    columns = np.concatenate([np.arange(sizes.inputs), sizes.inputs + places])
    turned = {name: getattr(tables, name)[places] for name in ("intermediate", "bounds", "places")}
    edges, scale = (value[rows][:, columns] for value in (state.edges, state.scale))
    return tables._replace(**turned), state._replace(edges=edges, scale=scale, eliminated=state.eliminated[places])


def test_the_numbering_of_vertices_does_not_matter(network):
    tables = make_tables(tiny_graph())
    state, _ = step(tables, init(tables), 2)
    places = np.random.default_rng(0).permutation(7)
    logits, value = network(tables, state)
    turned_logits, turned_value = network(*renumbered(tables, state, places))
    assert len(set(np.asarray(logits).tolist())) == 7
    np.testing.assert_allclose(turned_logits, logits[places], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(turned_value, value, rtol=1e-4, atol=1e-5)


def test_padding_does_not_matter(network):
    tight, loose = make_tables(tiny_graph()), make_tables(tiny_graph(), sizes=Sizes(5, 12, 4, 60))
    states = [step(tables, init(tables), 3)[0] for tables in (tight, loose)]
    (logits, value), (padded, padded_value) = (
        network(tables, state) for tables, state in zip((tight, loose), states, strict=True)
    )
    np.testing.assert_allclose(padded[:7], logits, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(padded_value, value, rtol=1e-4, atol=1e-5)
    assert jnp.all(padded[7:] == ILLEGAL)
    assert logits[3] == ILLEGAL


def test_games_of_several_sizes_are_played_by_one_network(network):
    environments = Games.of([tiny_graph(), tiny_graph(seed=0, intermediates=9)]).boards.environments(jnp.arange(2))
    logits, values = environments.each(network)(environments.start())
    assert jnp.sum(logits > ILLEGAL, 1).tolist() == [7, 9]
    assert jnp.all(jnp.isfinite(values))


def test_all_is_finite_when_no_vertex_is_left():
    tables = make_tables(tiny_graph())
    state = init(tables)
    over = state._replace(edges=0 * state.edges, eliminated=jnp.ones(7, bool))
    value, gradient = jax.jit(jax.value_and_grad(lambda network: network(tables, over)[1]))(
        PolicyValueNetwork.joint(GRAPH, tables.sizes, jax.random.key(0))
    )
    assert value == 0
    assert all(jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(gradient))


@pytest.mark.parametrize("name", ["HumanHeartDipole", "PropaneCombustion"])
def test_an_untrained_network_beats_markowitz(name):
    graph = get(name).graph()
    tables = make_tables(graph)
    fresh = PolicyValueNetwork.joint(GRAPH, tables.sizes, jax.random.key(0))
    actions = np.asarray(_play(fresh, tables, len(graph.intermediates))).tolist()
    played = graph.cost([graph.intermediates[action] for action in actions], "raw").multiplications
    assert played < graph.cost("markowitz", "raw").multiplications
    value = eqx.filter_jit(fresh)(tables, init(tables))[1]
    assert abs(value - graph.lower_bound("multiplications", "raw") / tables.reference) < 0.1
