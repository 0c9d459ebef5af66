from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagrad.agents.graph_network import SPREAD, limited
from alphagrad.agents.networks import ILLEGAL, NetworkConfig, PolicyValueNetwork, masked
from alphagrad.game import Sizes, init, make_tables

from .tiny import GRAPH, NETWORK, tiny_graph

SIZES = Sizes(inputs=3, intermediates=6, outputs=2, structures=1)
ALIVE = jnp.array([True, False, True, True, False, True])
HINTS = jnp.linspace(0.0, 2.0, 18).reshape(6, 3)


@pytest.fixture(scope="module")
def network():
    return judging(NETWORK)


def judging(config):
    """The logits and the value of an observation, by an untrained network."""
    (tokens,) = PolicyValueNetwork.joint(config, SIZES, jax.random.key(0)).parts
    return jax.jit(lambda observation, hints, alive: masked(tokens.judged(observation, hints, alive), alive))


def observations(seed, batch=()):
    rng = np.random.default_rng(seed)
    types = rng.integers(-11, 12, (*batch, 1, 8, 9))
    return jnp.asarray(np.concatenate([types, rng.integers(0, 50, (*batch, 4, 8, 9))], -3), jnp.float32)


def test_vertices_that_are_gone_have_no_influence(network):
    """Neither their rows nor their columns matter. The same holds for padding."""
    gone = np.flatnonzero(~np.asarray(ALIVE))
    first, second = observations(1), observations(2)
    mixed = first.at[:, gone].set(second[:, gone]).at[:, :, 3 + gone].set(second[:, :, 3 + gone])
    assert not jnp.array_equal(first, mixed)
    for expected, got in zip(network(first, HINTS, ALIVE), network(mixed, HINTS, ALIVE), strict=True):
        np.testing.assert_array_equal(expected, got)


def test_vertices_that_are_there_have_influence(network):
    changed = observations(1).at[:, 2, 0].set(observations(2)[:, 2, 0])
    assert not np.allclose(network(observations(1), HINTS, ALIVE)[1], network(changed, HINTS, ALIVE)[1], rtol=1e-6)


def test_illegal_actions_have_probability_zero(network):
    logits, _ = network(observations(1), HINTS, ALIVE)
    assert jnp.all(jnp.where(ALIVE, logits > ILLEGAL, logits == ILLEGAL))
    assert jnp.all(jax.nn.softmax(logits)[~ALIVE] == 0)


def test_all_is_finite_when_no_vertex_is_left():
    def value(network):
        (tokens,), gone = network.parts, jnp.zeros(6, bool)
        return masked(tokens.judged(observations(1), HINTS, gone), gone)[1]

    result, gradient = jax.jit(jax.value_and_grad(value))(PolicyValueNetwork.joint(NETWORK, SIZES, jax.random.key(0)))
    assert result == 0
    assert all(jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(gradient))


@pytest.mark.parametrize(("config", "heads"), [(NETWORK, [1, 1]), (GRAPH, [1, 1])], ids=["tokens", "graph"])
def test_separate_networks_have_the_heads_of_the_joint_one(config, heads):
    tables = make_tables(tiny_graph())
    separate = PolicyValueNetwork.separate(config, replace(config, layers=2), tables.sizes, jax.random.key(0))
    assert [len(part.heads) for part in separate.parts] == heads
    assert [len(part.layers) for part in separate.parts] == [config.layers, 2]
    logits, value = jax.eval_shape(separate, tables, init(tables))
    assert (logits.shape, value.shape) == ((7,), ())
    assert logits.dtype == value.dtype == jnp.float32


@pytest.mark.parametrize("size", [0.01, 1.0, 1e4])
def test_the_first_logits_of_a_policy_leave_alternatives(size):
    """Their spread is limited over the vertices that are left, and their order stays."""
    logits = size * jnp.array([[3.0, -1.0, 0.5, 7.0, 2.0, 1.5]])
    alive = np.asarray(ALIVE)
    found, given = np.asarray(limited(logits, ALIVE))[0, alive], np.asarray(logits)[0, alive]
    assert np.argsort(found).tolist() == np.argsort(given).tolist()
    spread = found.std()
    assert spread <= SPREAD * 1.001
    np.testing.assert_allclose(spread, min(SPREAD, given.std()), rtol=1e-3)


def test_no_first_logits_are_limited_when_no_vertex_is_left():
    gradient = jax.grad(lambda logits: limited(logits, jnp.zeros(6, bool)).sum())(jnp.ones((1, 6)))
    assert jnp.all(jnp.isfinite(gradient))


def test_half_precision_is_close(network):
    config = NetworkConfig(**{**vars(NETWORK), "dtype": "bfloat16"})
    rough = judging(config)
    for one, other in zip(network(observations(1), HINTS, ALIVE), rough(observations(1), HINTS, ALIVE), strict=True):
        np.testing.assert_allclose(one, other, atol=0.03)


def test_the_paper_s_network_has_its_sizes():
    network = jax.eval_shape(lambda key: PolicyValueNetwork.joint(NetworkConfig(), SIZES, key), jax.random.key(0))
    (tokens,) = network.parts
    assert len(tokens.layers) == 6
    policy, value = ([layer.out_features for layer in head.layers] for head in tokens.heads)
    assert policy == [256, 128, 1]
    assert value == [256, 128, 64, 1]
    assert tokens.convolution.shape[:2] == (3, 5)
