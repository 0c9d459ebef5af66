"""One iteration of training: each group of tasks is played and learnt in turn, by a program on all devices."""

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
from .games import Boards, Experience
from .groups import Share
from .updates import DEVICES


class TrainingState(NamedTuple):
    """Everything that an iteration depends on."""

    iteration: Array
    experience: Experience
    learner: Any

    @staticmethod
    def first(agent: Agent, tasks: int, key: Array) -> "TrainingState":
        """The initial state: nothing is learned, and no game of these tasks has been played."""
        experience = Experience.none(tasks, agent.sizes.intermediates)
        return TrainingState(jnp.asarray(0, jnp.int32), experience, agent.init(key))

    def of(self, tasks: np.ndarray, moves: int) -> Experience:
        """The experience with some tasks, whose games have this many moves."""
        cost, actions, error = self.experience
        return Experience(cost[tasks], actions[tasks, :moves], error[tasks])

    def after(self, tasks: np.ndarray, experience: Experience, learner: Any) -> "TrainingState":
        """The state with new experience with some tasks, and a learner that has learnt more."""
        (cost, actions, error), moves = self.experience, experience.actions.shape[1]
        joined = Experience(
            cost.at[tasks].set(experience.cost),
            actions.at[tasks, :moves].set(experience.actions),
            error.at[tasks].set(experience.error),
        )
        return TrainingState(self.iteration, joined, learner)


class Places(NamedTuple):
    """Where arrays are: on all devices, or spread over them."""

    mesh: Mesh
    everywhere: NamedSharding
    spread: NamedSharding

    @staticmethod
    def on(devices: Sequence[jax.Device]) -> "Places":
        mesh = Mesh(np.array(devices), (DEVICES,), axis_types=(AxisType.Auto,))
        return Places(mesh, *(NamedSharding(mesh, PartitionSpec(*axis)) for axis in ((), (DEVICES,))))

    def seed(self, seed: int) -> Array:
        return placed(np.asarray(seed, np.uint32), self.everywhere)


class Turn:
    """The part of an iteration in which a group is played and learnt, compiled once.

    The seed is an argument of the program, so that one program serves all seeds.

    Attributes:
        tasks: the numbers of the tasks of the group among all tasks.
        games: the number of games played.
    """

    def __init__(self, agent: Agent, share: Share, number: int, places: Places):
        self.tasks, self.games = np.array(share.group.tasks), share.games
        self._agent, self._parts, self._number, self._places = agent, share.minibatches, number, places
        self._boards, self._environments = share.group.games.boards, np.arange(share.games, dtype=np.int32)
        everywhere, spread = places.everywhere, places.spread
        inputs = everywhere, everywhere, everywhere, spread
        specs = tuple(sharding.spec for sharding in inputs)
        mapped = jax.shard_map(
            self._on_each_device, mesh=places.mesh, in_specs=specs, out_specs=everywhere.spec, check_vma=False
        )
        self._program = jax.jit(mapped, in_shardings=inputs, out_shardings=everywhere, donate_argnums=0)

    def compile(self, state: TrainingState) -> jax.stages.Compiled:
        """The compiled program. Shapes of the state are enough; arrays of one process would not work for several."""
        seed = jax.ShapeDtypeStruct((), jnp.uint32)
        boards, environments = jax.eval_shape(lambda: (self._boards, jnp.asarray(self._environments)))
        return self._program.lower(state, seed, boards, environments).compile()

    @cached_property
    def placed(self) -> tuple[Boards, Array]:
        """The boards and the numbers of the environments, on the devices of all processes."""
        boards = jax.tree.map(lambda leaf: placed(np.asarray(leaf), self._places.everywhere), self._boards)
        return boards, placed(self._environments, self._places.spread)

    def _on_each_device(
        self, state: TrainingState, seed: Array, boards: Boards, environments: Array
    ) -> tuple[TrainingState, dict[str, Array]]:
        """The turn on one device, which has a share of the environments."""
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), state.iteration + 1), self._number)
        task_key, play_key = jax.random.split(key)
        tasks = boards.assigned(task_key, environments, self.games)
        keys = jax.vmap(jax.random.fold_in, (None, 0))(play_key, environments)
        before = state.of(self.tasks, boards.sizes.intermediates)
        learner, episodes, metrics = self._agent.iterate(state.learner, boards, tasks, keys, before, self._parts)
        episodes = jax.lax.all_gather(episodes, DEVICES, tiled=True)
        ours = episodes.tasks == jnp.arange(len(boards.references))[:, None]
        costs = jnp.where(ours, episodes.cost, jnp.inf)
        least, winner = jnp.min(costs, 1), jnp.argmin(costs, 1)
        # Equally good games take turns, which leads to more of them.
        better = least <= before.cost
        best_actions = jnp.where(better[:, None], episodes.actions[winner], before.actions)
        error = metrics["value_error"].astype(before.error.dtype)
        after = Experience(jnp.where(better, least, before.cost), best_actions, error)
        mean = jnp.sum(jnp.where(ours, episodes.cost, 0.0), 1) / jnp.sum(ours, 1)
        metrics = {"best_cost": after.cost, "least_cost": least, "mean_cost": mean, **metrics}
        return state.after(self.tasks, after, learner), metrics


class Iteration:
    """Maps one `TrainingState` to the next, with metrics. The given state is donated and cannot be used again."""

    def __init__(self, agent: Agent, shares: Sequence[Share], devices: Sequence[jax.Device]):
        self._agent, self._places = agent, Places.on(devices)
        self._tasks = sum(len(share.group.tasks) for share in shares)
        if agent.config.environments < self._tasks:
            raise SearchError(
                f"{agent.config.environments} environments cannot play {self._tasks} tasks at the same time; set at "
                "least one for each"
            )
        for share in shares:
            if not share.is_equal(len(devices)):
                raise SearchError(
                    f"{share.games} environments cannot be shared equally by {len(devices)} devices in "
                    f"{share.minibatches} minibatches"
                )
        self._turns = [Turn(agent, share, number, self._places) for number, share in enumerate(shares)]

    @property
    def games(self) -> int:
        """The number of games per iteration."""
        return sum(turn.games for turn in self._turns)

    @cached_property
    def compiled(self) -> list[jax.stages.Compiled]:
        """The programs of all turns."""
        state = jax.eval_shape(self._first_state, jax.ShapeDtypeStruct((), jnp.uint32))
        return [turn.compile(state) for turn in self._turns]

    def first_state(self, seed: int, network: Any = None) -> TrainingState:
        """The initial state, with a pretrained network if one is given."""
        state = jax.jit(self._first_state, out_shardings=self._places.everywhere)(self._places.seed(seed))
        if network is None:
            return state
        given, wanted = (jax.tree.map(jnp.shape, each) for each in (network, state.learner.network))
        if given != wanted:
            raise SearchError("the pretrained network has another shape; use its configuration")
        there = jax.tree.map(lambda leaf: placed(np.asarray(leaf), self._places.everywhere), network)
        return state._replace(learner=state.learner._replace(network=there))

    def __call__(self, state: TrainingState, seed: int) -> tuple[TrainingState, dict[str, np.ndarray]]:
        metrics = []
        for turn, program in zip(self._turns, self.compiled, strict=True):
            state, found = program(state, self._places.seed(seed), *turn.placed)
            metrics.append(found)
        number = int(state.iteration) + 1
        state = state._replace(iteration=placed(np.asarray(number, np.int32), self._places.everywhere))
        return state, {name: self._joined([found[name] for found in metrics]) for name in metrics[0]}

    def _joined(self, values: Sequence[Array]) -> np.ndarray:
        """One metric of all groups: a number per task, or else the mean over all games."""
        if values[0].ndim == 0:
            return np.average([np.asarray(value) for value in values], weights=[turn.games for turn in self._turns])
        joined = np.empty(self._tasks)
        for turn, value in zip(self._turns, values, strict=True):
            joined[turn.tasks] = value
        return joined

    def _first_state(self, seed: Array) -> TrainingState:
        key = jax.random.fold_in(jax.random.key(seed), 0)
        return TrainingState.first(self._agent, self._tasks, key)


def placed(value: np.ndarray, sharding: NamedSharding) -> Array:
    """An array on the devices of all processes."""
    return jax.make_array_from_callback(value.shape, sharding, lambda index: value[index])
