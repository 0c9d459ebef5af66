"""One iteration of training as a program on all devices, compiled once."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from ..errors import SearchError
from .agent import Agent
from .games import Best, Boards
from .updates import DEVICES


class TrainingState(NamedTuple):
    """Everything that an iteration depends on."""

    iteration: Array
    best_cost: Array
    best_actions: Array
    learner: Any

    @staticmethod
    def first(agent: Agent, tasks: int, key: Array) -> "TrainingState":
        """The initial state: nothing is learned, and no game of these tasks has been played."""
        best = Best.none(tasks, agent.sizes.intermediates)
        return TrainingState(jnp.asarray(0, jnp.int32), *best, agent.init(key))


class Iteration:
    """Maps one `TrainingState` to the next, with metrics. The given state is donated and cannot be used again.

    The seed is an argument of the program, so that one program serves all seeds.
    """

    def __init__(self, agent: Agent, boards: Boards, devices: Sequence[jax.Device]):
        if not shared_equally(agent, len(devices)):
            raise SearchError(
                f"{agent.config.environments} environments cannot be shared equally by {len(devices)} devices in "
                f"{agent.minibatches} minibatches"
            )
        if agent.config.environments < len(boards.references):
            raise SearchError(
                f"{agent.config.environments} environments cannot play {len(boards.references)} tasks at the same "
                "time; set at least one for each"
            )
        self._agent, self._boards = agent, boards
        self._environments = np.arange(agent.config.environments, dtype=np.int32)
        mesh = Mesh(np.array(devices), (DEVICES,), axis_types=(AxisType.Auto,))
        self._everywhere, self._spread = (NamedSharding(mesh, PartitionSpec(*axis)) for axis in ((), (DEVICES,)))
        inputs, output = (self._everywhere, self._everywhere, self._everywhere, self._spread), self._everywhere
        specs = tuple(sharding.spec for sharding in inputs)
        mapped = jax.shard_map(self._on_each_device, mesh=mesh, in_specs=specs, out_specs=output.spec, check_vma=False)
        self._program = jax.jit(mapped, in_shardings=inputs, out_shardings=output, donate_argnums=0)

    def first_state(self, seed: int, network: Any = None) -> TrainingState:
        """The initial state, with a pretrained network if one is given."""
        state = jax.jit(self._first_state, out_shardings=self._everywhere)(self._seed(seed))
        if network is None:
            return state
        given, wanted = (jax.tree.map(jnp.shape, each) for each in (network, state.learner.network))
        if given != wanted:
            raise SearchError("the pretrained network has another shape; use its configuration")
        placed = jax.tree.map(lambda leaf: _placed(np.asarray(leaf), self._everywhere), network)
        return state._replace(learner=state.learner._replace(network=placed))

    @cached_property
    def compiled(self) -> jax.stages.Compiled:
        # Shapes are enough, and arrays of one process would not work for several.
        seed = jax.ShapeDtypeStruct((), jnp.uint32)
        state = jax.eval_shape(self._first_state, seed)
        boards, environments = jax.eval_shape(lambda: (self._boards, jnp.asarray(self._environments)))
        return self._program.lower(state, seed, boards, environments).compile()

    def __call__(self, state: TrainingState, seed: int) -> tuple[TrainingState, dict[str, Array]]:
        return self.compiled(state, self._seed(seed), *self._placed)

    def _seed(self, seed: int) -> Array:
        return _placed(np.asarray(seed, np.uint32), self._everywhere)

    @cached_property
    def _placed(self) -> tuple[Boards, Array]:
        """The boards and the numbers of the environments, on the devices of all processes."""
        boards = jax.tree.map(lambda leaf: _placed(np.asarray(leaf), self._everywhere), self._boards)
        return boards, _placed(self._environments, self._spread)

    def _first_state(self, seed: Array) -> TrainingState:
        key = jax.random.fold_in(jax.random.key(seed), 0)
        return TrainingState.first(self._agent, len(self._boards.references), key)

    def _on_each_device(
        self, state: TrainingState, seed: Array, boards: Boards, environments: Array
    ) -> tuple[TrainingState, dict[str, Array]]:
        """The iteration on one device, which has a share of the environments."""
        number = state.iteration + 1
        task_key, play_key = jax.random.split(jax.random.fold_in(jax.random.key(seed), number))
        tasks = boards.assigned(task_key, environments, self._agent.config.environments)
        keys = jax.vmap(jax.random.fold_in, (None, 0))(play_key, environments)
        best = Best(state.best_cost, state.best_actions)
        learner, episodes, metrics = self._agent.iterate(state.learner, boards, tasks, keys, best)
        episodes = jax.lax.all_gather(episodes, DEVICES, tiled=True)
        ours = episodes.tasks == jnp.arange(len(boards.references))[:, None]
        costs = jnp.where(ours, episodes.cost, jnp.inf)
        least, winner = jnp.min(costs, 1), jnp.argmin(costs, 1)
        better = least < state.best_cost
        best_cost = jnp.where(better, least, state.best_cost)
        best_actions = jnp.where(better[:, None], episodes.actions[winner], state.best_actions)
        mean = jnp.sum(jnp.where(ours, episodes.cost, 0.0), 1) / jnp.sum(ours, 1)
        metrics = {"best_cost": best_cost, "least_cost": least, "mean_cost": mean, **metrics}
        return TrainingState(number, best_cost, best_actions, learner), metrics


def shared_equally(agent: Agent, devices: int) -> bool:
    """Whether the games of each minibatch can be split equally among the devices."""
    return agent.config.environments % (devices * agent.minibatches) == 0


def _placed(value: np.ndarray, sharding: NamedSharding) -> Array:
    """An array on the devices of all processes."""
    return jax.make_array_from_callback(value.shape, sharding, lambda index: value[index])
