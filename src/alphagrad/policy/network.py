"""The network of the policy, as arrays for the compiled kernels and as a file."""

from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..elimination.compiling import inlined
from ..errors import SearchError
from .features import FEATURES

HIDDEN = 64
SHIPPED = "weights.safetensors"


class Network(NamedTuple):
    """Two hidden layers and one output. The vertex with the highest output is eliminated first."""

    first: np.ndarray
    first_bias: np.ndarray
    second: np.ndarray
    second_bias: np.ndarray
    last: np.ndarray


def initial(seed: int, hidden: int = HIDDEN) -> Network:
    """An untrained network, which scores all vertices nearly alike."""
    rng = np.random.default_rng(seed)
    return Network(
        first=_normal(rng, (len(FEATURES), hidden), 2.0),
        first_bias=np.zeros(hidden, np.float32),
        second=_normal(rng, (hidden, hidden), 2.0),
        second_bias=np.zeros(hidden, np.float32),
        last=_normal(rng, (hidden,), 0.01),
    )


def _normal(rng: np.random.Generator, shape: tuple[int, ...], gain: float) -> np.ndarray:
    return (rng.normal(size=shape) * np.sqrt(gain / shape[0])).astype(np.float32)


def save(network: Network, path: str | Path) -> None:
    from safetensors.numpy import save_file

    save_file(network._asdict(), str(path), metadata={"features": ",".join(FEATURES)})


def load(path: str | Path) -> Network:
    """Read a network. Raises if it was made for other features."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="numpy") as file:
            names = (file.metadata() or {}).get("features", "").split(",")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise SearchError(f"{path} cannot be read as a policy: {error}") from None
    if tuple(names) != FEATURES or set(tensors) != set(Network._fields):
        raise SearchError(f"{path} is a policy for other features than this version computes; train it again")
    return Network(**tensors)


def shipped() -> Network:
    """The policy that ships with the package."""
    with resources.as_file(resources.files(__package__) / SHIPPED) as path:
        return load(path)


@inlined
def score(network, features, hidden, deeper):
    """The output of the network. ``hidden`` and ``deeper`` are work space."""
    for unit in range(len(hidden)):
        hidden[unit] = network.first_bias[unit]
        deeper[unit] = network.second_bias[unit]
    for feature in range(len(features)):
        value = features[feature]
        for unit in range(len(hidden)):
            hidden[unit] += value * network.first[feature, unit]
    for inner in range(len(hidden)):
        value = hidden[inner]
        if value > 0:
            for unit in range(len(deeper)):
                deeper[unit] += value * network.second[inner, unit]
    total = np.float32(0)
    for unit in range(len(deeper)):
        total += max(deeper[unit], np.float32(0)) * network.last[unit]
    return total
