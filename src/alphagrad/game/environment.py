"""VertexGame as a Gymnasium environment, for agents that are not written in JAX."""

from typing import Any

import jax
import numpy as np
from jax import Array

from graphax import ComputationGraph

from ..elimination.objective import Objective
from ..errors import AlphagradError
from . import rules
from .rules import GameState, VertexGame
from .tables import GameTables, Sizes

try:
    import gymnasium
except ModuleNotFoundError as missing:
    raise ImportError("alphagrad.game.environment needs gymnasium: pip install 'graphax-alphagrad[rl]'") from missing


class VertexEnvironment(gymnasium.Env[np.ndarray, np.int64]):
    """Eliminate all intermediate vertices of a graph. The reward of a step is minus its cost.

    Observations are those of `alphagrad.game.observe`. Action n is the n-th intermediate vertex in ascending order.
    ``info["action_mask"]`` has a 1 for each legal action. Illegal actions change nothing and have reward 0, so agents
    have to mask them to make progress. ``info["cost"]`` is the cost of all steps so far.
    """

    def __init__(
        self,
        graph: ComputationGraph,
        counting: str = "raw",
        minimize: str | tuple[float, float] | Objective = "multiplications",
        sizes: Sizes | None = None,
    ):
        if not graph.intermediates:
            raise AlphagradError("the graph has no intermediate vertices, so there is nothing to play")
        self.game = VertexGame.of(graph, counting, minimize, sizes)
        room = self.game.tables.sizes
        shape = 5, room.intermediates + room.outputs, room.inputs + room.intermediates
        self.action_space = gymnasium.spaces.Discrete(room.intermediates)
        self.observation_space = gymnasium.spaces.Box(rules.ELIMINATED_TYPE, np.inf, shape, np.float32)
        self._state = rules.init(self.game.tables)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self._state = rules.init(self.game.tables)
        observation, mask, _ = _view(self.game.tables, self._state)
        return np.array(observation), self._info(mask)

    def step(self, action: np.int64) -> tuple[np.ndarray, float, bool, bool, dict]:
        self._state, cost = _step(self.game.tables, self._state, action)
        observation, mask, over = _view(self.game.tables, self._state)
        # Avoid a reward of minus zero.
        return np.array(observation), 0.0 - float(cost), bool(over), False, self._info(mask)

    def _info(self, mask: Array) -> dict[str, Any]:
        return {"action_mask": np.array(mask, np.int8), "cost": float(self._state.cost)}


_step = jax.jit(rules.step)


@jax.jit
def _view(tables: GameTables, state: GameState) -> tuple[Array, Array, Array]:
    return rules.observe(tables, state), rules.legal_actions(tables, state), rules.is_over(tables, state)
