"""Agents loaded from the folder of a run, to play what they have learned."""

import json
from contextlib import closing
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from graphax import ComputationGraph

from .. import game
from ..elimination.objective import Objective
from ..game import GameState, GameTables, Sizes, VertexGame
from .alphazero import AlphaZeroConfig
from .checkpoints import Checkpoints
from .fitting import AgentConfig, make_agent
from .iteration import TrainingState
from .networks import AnyNetworkConfig, GraphNetworkConfig, NetworkConfig, PolicyValueNetwork
from .ppo import PPOConfig
from .run_folder import RunError

CONFIGS: dict[str, type[AgentConfig]] = {"AlphaZero": AlphaZeroConfig, "PPO": PPOConfig}


@dataclass(frozen=True, eq=False)
class Player:
    """A trained network, its objective, and the sizes of games it can play."""

    network: PolicyValueNetwork
    objective: Objective
    sizes: Sizes

    @staticmethod
    def load(folder: Path) -> "Player":
        """Load the newest checkpoint of a run."""
        config = _configuration(folder)
        sizes = Sizes(**config["sizes"])
        like = TrainingState.first(make_agent(_agent(config), sizes), len(config["graphs"]), jax.random.key(0))
        with closing(Checkpoints(folder / "checkpoints")) as checkpoints:
            found = checkpoints.latest(like)
        if found is None:
            raise RunError(f"{folder} has no checkpoint that can be read; train the agent longer")
        return Player(found[0].learner.network, Objective.read(config["objective"]), sizes)

    def order(self, graph: ComputationGraph) -> tuple[int, ...]:
        """The order that takes the most probable action of the policy at every move."""
        played = VertexGame.of(graph, self.objective.counting, self.objective, self.sizes)
        actions = _play(self.network, played.tables, len(graph.intermediates))
        return played.vertices(actions)


@partial(jax.jit, static_argnums=2)
def _play(network: PolicyValueNetwork, tables: GameTables, moves: int) -> Array:
    def move(state: GameState, _: Array) -> tuple[GameState, Array]:
        action = jnp.argmax(network(tables, state)[0])
        return game.step(tables, state, action)[0], action

    return jax.lax.scan(move, game.init(tables), jnp.arange(moves))[1]


def _configuration(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if not path.exists() or not (folder / "checkpoints").is_dir():
        raise RunError(f"{folder} is not the folder of a training run; alphagrad train makes one")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        if config["agent"] not in CONFIGS or not {"sizes", "graphs", "objective"} <= set(config):
            raise ValueError("something is missing")
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path} cannot be read: {type(error).__name__}: {error}") from None
    return config


def _agent(config: dict[str, Any]) -> AgentConfig:
    kind = CONFIGS[config["agent"]]
    values: dict[str, Any] = {field.name: config[field.name] for field in fields(kind) if field.name in config}
    networks = {name: _network(value) for name, value in values.items() if isinstance(value, dict)}
    return kind(**(values | networks))


def _network(values: dict[str, Any]) -> AnyNetworkConfig:
    """The network configuration that has these fields."""
    hidden = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    names = {field.name for field in fields(GraphNetworkConfig)}
    return (GraphNetworkConfig if names == set(values) else NetworkConfig)(**(values | hidden))
