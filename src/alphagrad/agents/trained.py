"""Agents read back from the folder of their run, to play what they have learnt."""

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

from ..elimination.objective import Objective
from ..game import rules as game
from ..game.rules import GameState, GameTables, Sizes, VertexGame
from .alphazero import AlphaZeroConfig
from .checkpoints import Checkpoints
from .fitting import AgentConfig, make_agent
from .games import view
from .iteration import TrainingState
from .networks import NetworkConfig
from .ppo import PPOConfig
from .run_folder import RunError

CONFIGS: dict[str, type[AgentConfig]] = {"AlphaZero": AlphaZeroConfig, "PPO": PPOConfig}


@dataclass(frozen=True, eq=False)
class Trained:
    """A policy, the objective it was trained for, and the sizes of games it can play."""

    policy: Any
    objective: Objective
    sizes: Sizes

    @staticmethod
    def load(folder: Path) -> "Trained":
        """The newest checkpoint of a run."""
        config = _configuration(folder)
        sizes, agent = Sizes(**config["sizes"]), _agent(config)
        learner = make_agent(agent, sizes).init(jax.random.key(0))
        tasks = len(config["graphs"])
        no_cost, no_actions = jnp.zeros(tasks, jnp.float32), jnp.zeros((tasks, sizes.intermediates), jnp.int32)
        like = TrainingState(jnp.asarray(0, jnp.int32), no_cost, no_actions, learner)
        with closing(Checkpoints(folder / "checkpoints")) as checkpoints:
            found = checkpoints.latest(like)
        if found is None:
            raise RunError(f"{folder} has no checkpoint that can be read; train the agent longer")
        learner = found[0].learner
        policy = learner.network if isinstance(agent, AlphaZeroConfig) else learner.networks.policy
        return Trained(policy, Objective.read(config["objective"]), sizes)

    def order(self, graph: ComputationGraph) -> tuple[int, ...]:
        """The order that the policy likes best, move by move."""
        played = VertexGame.of(graph, self.objective.counting, self.objective, self.sizes)
        actions = _play(self.policy, played.tables, len(graph.intermediates))
        return played.vertices(actions)


@partial(jax.jit, static_argnums=2)
def _play(policy: Any, tables: GameTables, moves: int) -> Array:
    def move(state: GameState, _: Array) -> tuple[GameState, Array]:
        answer = policy(*view(tables, state))
        action = jnp.argmax(answer[0] if isinstance(answer, tuple) else answer)
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
    for name, value in values.items():
        values[name] = _network(value) if isinstance(value, dict) else value
    return kind(**values)


def _network(values: dict[str, Any]) -> NetworkConfig:
    hidden = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return NetworkConfig(**(values | hidden))
