import numpy as np
import pytest
from numba import njit

from alphagrad.errors import SearchError
from alphagrad.policy.features import FEATURES
from alphagrad.policy.network import initial, load, save, score, shipped
from alphagrad.policy.training import learn


@njit
def scored(network, features, hidden, deeper):
    return score(network, features, hidden, deeper)


def test_compiled_and_learnt_scores_agree():
    network = initial(3, hidden=12)
    features = np.random.default_rng(0).normal(size=(7, len(FEATURES))).astype(np.float32)
    room = np.zeros((2, 12), np.float32)
    compiled = [scored(network, row, room[0], room[1]) for row in features]
    np.testing.assert_allclose(compiled, learn.scores(network, features), rtol=1e-4, atol=1e-6)


def test_a_network_is_what_was_saved(tmp_path):
    network = initial(1, hidden=5)
    save(network, tmp_path / "p.safetensors")
    for one, other in zip(load(tmp_path / "p.safetensors"), network, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_is_not_a_policy(tmp_path):
    from safetensors.numpy import save_file

    path = tmp_path / "p.safetensors"
    with pytest.raises(SearchError, match="cannot be read as a policy"):
        load(path)
    path.write_bytes(b"damaged")
    with pytest.raises(SearchError, match="cannot be read as a policy"):
        load(path)
    save_file({"first": np.zeros(3, np.float32)}, path, metadata={"features": "price,slack"})
    with pytest.raises(SearchError, match="other features"):
        load(path)


def test_the_shipped_policy_is_small():
    network = shipped()
    assert sum(array.nbytes for array in network) < 5_000_000
    assert network.first.shape[0] == len(FEATURES)
