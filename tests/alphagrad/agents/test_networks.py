import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagrad.agents.games import Games
from alphagrad.agents.networks import ILLEGAL, NetworkConfig, PolicyValueNetwork
from alphagrad.game import Sizes

from .tiny import NETWORK, tiny_graph

SIZES = Sizes(inputs=3, intermediates=6, outputs=2, structures=1)
ALIVE = jnp.array([True, False, True, True, False, True])
HINTS = jnp.linspace(0.0, 2.0, 18).reshape(6, 3)


@pytest.fixture(scope="module")
def network():
    return eqx.filter_jit(PolicyValueNetwork.joint(NETWORK, SIZES, jax.random.key(0)))


def observations(seed, batch=()):
    rng = np.random.default_rng(seed)
    types = rng.integers(-11, 12, (*batch, 1, 8, 9))
    return jnp.asarray(np.concatenate([types, rng.integers(0, 50, (*batch, 4, 8, 9))], -3), jnp.float32)


def test_shapes_of_batches(network):
    logits, values = network(observations(0, (4, 3)), HINTS, jnp.broadcast_to(ALIVE, (4, 3, 6)))
    assert logits.shape == (4, 3, 6)
    assert values.shape == (4, 3)
    assert logits.dtype == values.dtype == jnp.float32
    one_logits, one_value = network(observations(0, (4, 3))[2, 1], HINTS, ALIVE)
    np.testing.assert_allclose(one_logits, logits[2, 1], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(one_value, values[2, 1], rtol=1e-5, atol=1e-6)


def test_vertices_that_are_gone_have_no_influence(network):
    """Neither their rows nor their columns; what holds for eliminated vertices holds for padding."""
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
    value = lambda network: network(observations(1), HINTS, jnp.zeros(6, bool))[1]
    result, gradient = jax.jit(jax.value_and_grad(value))(PolicyValueNetwork.joint(NETWORK, SIZES, jax.random.key(0)))
    assert result == 0
    assert all(jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(gradient))


def test_separate_networks_have_the_heads_of_the_joint_one():
    other, observation = NetworkConfig(**{**vars(NETWORK), "layers": 2}), observations(3)
    separate = PolicyValueNetwork.separate(NETWORK, other, SIZES, jax.random.key(0))
    assert [(len(part.layers), len(part.heads)) for part in separate.parts] == [(1, 1), (2, 1)]
    logits, value = jax.eval_shape(separate, observation, HINTS, ALIVE)
    assert (logits.shape, value.shape) == ((6,), ())


def test_half_precision_is_close(network):
    config = NetworkConfig(**{**vars(NETWORK), "dtype": "bfloat16"})
    rough = eqx.filter_jit(PolicyValueNetwork.joint(config, SIZES, jax.random.key(0)))
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


def test_padding_to_a_larger_game_changes_no_legal_action():
    graphs = [tiny_graph(), tiny_graph(seed=0, intermediates=9)]
    states = Games.of(graphs).boards.environments(jnp.arange(2))
    *_, alive = states.view(states.start())
    assert alive.sum(1).tolist() == [7, 9]
