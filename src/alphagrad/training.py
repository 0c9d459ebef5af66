"""The loop that trains agents: plays, learns, reports, keeps the best orders, and goes on where it was killed.

    result = train(TASKS["RoeFlux_1d"], AlphaZeroConfig(), seconds=600, folder="runs/roe")

Everything that an iteration depends on is in `TrainingState`, which is what checkpoints hold; random numbers follow
from the seed and the number of the iteration. So a run that was killed ends as it would have.
"""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.experimental.multihost_utils import broadcast_one_to_all
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from graphax import ComputationGraph, Order

from .alphazero import AlphaZero, AlphaZeroConfig
from .best_orders import BestOrders
from .checkpoints import Checkpoints
from .errors import SearchError, whole_number
from .game import Sizes
from .games import Boards, Episodes, Games
from .interrupt import Interrupt, deferred_interrupt
from .ppo import PPO, PPOConfig
from .run_folder import RunFolder
from .settings import check as check_configuration
from .tasks.task import Task
from .updates import DEVICES

AgentConfig = AlphaZeroConfig | PPOConfig


class Agent(Protocol):
    """A way to learn to play, on each device with some of the environments."""

    name: str
    environments: int
    minibatches: int

    def init(self, key: Array) -> Any:
        """What the agent has learnt, at first nothing: a pytree of arrays."""

    def iterate(
        self, learner: Any, boards: Boards, tasks: Array, keys: Array
    ) -> tuple[Any, Episodes, dict[str, Array]]:
        """Play a game of each of these tasks and learn, with all other devices: what is learnt then, the games, and
        numbers to report."""


class TrainingState(NamedTuple):
    """All that an iteration depends on."""

    iteration: Array
    best_cost: Array
    best_actions: Array
    learner: Any


@dataclass(frozen=True)
class TrainingProgress:
    """How training stands: by task, the best cost and what no order is below."""

    agent: str
    iteration: int
    best: dict[str, float]
    bound: dict[str, float]
    games: int
    seconds: float
    games_per_second: float
    metrics: dict[str, Any]

    def __str__(self):
        best = ", ".join(f"{name} {cost:g} (at least {self.bound[name]:g})" for name, cost in self.best.items())
        return (
            f"{self.agent}: iteration {self.iteration}, {best}, {self.games:,} games "
            f"({self.games_per_second:,.1f}/s), {self.seconds:.1f} s"
        )


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """What training found.

    Attributes:
        orders: the best order of each task.
        learner: what the agent has learnt, as a pytree of arrays.
        iterations, seconds: how long it took, earlier calls in the same folder included.
        stopped: why it ended: "optimal", "iterations", "seconds" or "interrupted".
    """

    orders: dict[str, Order]
    learner: Any
    iterations: int
    seconds: float
    stopped: str


def train(
    targets: Task | ComputationGraph | Sequence[Task | ComputationGraph] | dict[str, ComputationGraph],
    agent: AgentConfig,
    *,
    counting: str = "raw",
    minimize: Any = "multiplications",
    seed: int = 0,
    iterations: int | None = None,
    seconds: float | None = None,
    folder: Any = None,
    checkpoint_every: int = 20,
    progress: Callable[[TrainingProgress], None] | None = None,
    sizes: Sizes | None = None,
    devices: Sequence[jax.Device] | None = None,
    until_optimal: bool = True,
) -> TrainingResult:
    """Train an agent on one task, or on several at once.

    Args:
        targets: tasks or graphs; a dictionary gives graphs their names.
        agent: which agent, and how it plays and learns.
        counting, minimize: what an order costs, as in `alphagrad.search`.
        seed: of all random choices.
        iterations, seconds: when to stop; what earlier calls in the same folder took counts.
        folder: where configuration, metrics, best orders and checkpoints are kept. If it holds a run of the same
            configuration, that one goes on.
        checkpoint_every: iterations between checkpoints; there is one at the end, too.
        progress: is called after every iteration.
        sizes: to which all games are padded, if not to those of the largest.
        devices: that share the environments; all of them (of all processes) by default.
        until_optimal: stop once all orders are certified to be optimal.

    Ctrl-C ends the run after the iteration under way, with a checkpoint; a second one ends it at once.
    """
    _check_request(agent, seed, iterations, seconds, checkpoint_every, sizes)
    graphs = _named(targets)
    games = Games.of(list(graphs.values()), counting, minimize, sizes)
    configuration = _configuration(agent, games, list(graphs), seed)
    writes = jax.process_index() == 0
    run_folder = None if folder is None else RunFolder(folder, configuration, writes)
    limits = _Limits(iterations, seconds, until_optimal)
    player = make_agent(agent, games.boards.sizes)
    best = BestOrders(games, list(graphs), player.name, seed, run_folder)
    run = _Run(player, games.boards, best, seed, limits, run_folder, devices)
    checkpoints = None if run_folder is None else Checkpoints(run_folder.checkpoints)
    with nullcontext() if checkpoints is None else closing(checkpoints), deferred_interrupt() as interrupt:
        return run.train(checkpoints, checkpoint_every, progress, interrupt)


def _check_request(agent: Any, seed: Any, iterations: Any, seconds: Any, checkpoint_every: Any, sizes: Any) -> None:
    """Refuse what cannot be trained with; see `train`."""
    if iterations is None and seconds is None:
        raise SearchError("training needs a limit: iterations, seconds or both")
    if seconds is not None and not (isinstance(seconds, int | float) and seconds > 0):
        raise SearchError(f"seconds is how long to train, more than zero, but is {seconds!r}")
    if iterations is not None:
        whole_number("iterations", iterations, 1)
    whole_number("seed", seed, 0)
    whole_number("checkpoint_every", checkpoint_every, 1)
    if not isinstance(agent, AlphaZeroConfig | PPOConfig):
        raise SearchError(f"agent is an AlphaZeroConfig or a PPOConfig, but is {agent!r}")
    if sizes is not None and not isinstance(sizes, Sizes):
        raise SearchError(f"sizes are game_tables.Sizes, but are {sizes!r}")
    check_configuration(agent)


def make_agent(config: AgentConfig, sizes: Sizes) -> Agent:
    return AlphaZero(config, sizes) if isinstance(config, AlphaZeroConfig) else PPO(config, sizes)


@dataclass(frozen=True)
class _Limits:
    iterations: int | None
    seconds: float | None
    until_optimal: bool

    def reached(self, iteration: int, seconds: float, optimal: bool) -> str | None:
        if optimal and self.until_optimal:
            return "optimal"
        if iteration >= (math.inf if self.iterations is None else self.iterations):
            return "iterations"
        return "seconds" if seconds >= (math.inf if self.seconds is None else self.seconds) else None


class _Run:
    """A training run under way."""

    def __init__(
        self,
        agent: Agent,
        boards: Boards,
        best: BestOrders,
        seed: int,
        limits: _Limits,
        folder: RunFolder | None,
        devices: Sequence[jax.Device] | None,
    ):
        self._agent, self._best, self._seed, self._limits, self._folder = agent, best, seed, limits, folder
        shared = np.array(jax.devices() if devices is None else devices)
        mesh = Mesh(shared, (DEVICES,), axis_types=(AxisType.Auto,))
        if agent.environments % (mesh.size * agent.minibatches):
            raise SearchError(
                f"{agent.environments} environments cannot be shared equally by {mesh.size} devices in "
                f"{agent.minibatches} minibatches"
            )
        everywhere, spread = PartitionSpec(), PartitionSpec(DEVICES)
        numbers = np.arange(agent.environments, dtype=np.int32)
        self._environments = _placed(numbers, NamedSharding(mesh, spread))
        self._boards = jax.tree.map(lambda leaf: _placed(np.asarray(leaf), NamedSharding(mesh, everywhere)), boards)
        first_state = partial(self._first_state, len(boards.references), boards.sizes.intermediates)
        self._state = jax.jit(first_state, out_shardings=NamedSharding(mesh, everywhere))()
        iteration = jax.shard_map(
            self._iteration,
            mesh=mesh,
            in_specs=(everywhere, everywhere, spread),
            out_specs=everywhere,
            check_vma=False,
        )
        self._iterate = jax.jit(iteration, donate_argnums=0)

    def _first_state(self, tasks: int, moves: int) -> TrainingState:
        learner = self._agent.init(jax.random.fold_in(jax.random.key(self._seed), 0))
        no_cost, no_actions = jnp.full(tasks, jnp.inf, jnp.float32), jnp.zeros((tasks, moves), jnp.int32)
        return TrainingState(jnp.asarray(0, jnp.int32), no_cost, no_actions, learner)

    def _iteration(
        self, state: TrainingState, boards: Boards, environments: Array
    ) -> tuple[TrainingState, dict[str, Array]]:
        """One iteration, on each device for its environments."""
        number = state.iteration + 1
        task_key, play_key = jax.random.split(jax.random.fold_in(jax.random.key(self._seed), number))
        tasks = boards.assigned(task_key, environments, self._agent.environments)
        keys = jax.vmap(jax.random.fold_in, (None, 0))(play_key, environments)
        learner, episodes, metrics = self._agent.iterate(state.learner, boards, tasks, keys)
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

    def train(
        self,
        checkpoints: Checkpoints | None,
        checkpoint_every: int,
        progress: Callable[[TrainingProgress], None] | None,
        interrupt: Interrupt,
    ) -> TrainingResult:
        first, earlier = self._resume(checkpoints)
        began, iteration, saved = time.monotonic(), first, first
        while True:
            seconds = earlier + time.monotonic() - began
            stopped = self._limits.reached(iteration, self._agreed(seconds), self._best.optimal)
            if interrupt.pressed and iteration > first:
                stopped = stopped or "interrupted"
            if checkpoints and iteration > saved and (stopped or iteration - saved >= checkpoint_every):
                checkpoints.save(iteration, self._state, {"seconds": seconds})
                saved = iteration
            if stopped:
                return TrainingResult(dict(self._best.orders), self._state.learner, iteration, seconds, stopped)
            self._state, measured = self._iterate(self._state, self._boards, self._environments)
            iteration += 1
            metrics = {name: np.asarray(value).tolist() for name, value in measured.items()}
            self._best.offer(metrics["best_cost"], lambda: np.asarray(self._state.best_actions))
            self._report(iteration, iteration - first, earlier, time.monotonic() - began, metrics, progress)

    def _resume(self, checkpoints: Checkpoints | None) -> tuple[int, float]:
        """Load the newest checkpoint; returns its iteration, and the seconds that were spent."""
        found = checkpoints.latest(self._state) if checkpoints else None
        self._state, notes = found or (self._state, {"seconds": 0.0})
        iteration = int(self._state.iteration)
        if self._folder:
            self._folder.forget_after(iteration)
        self._best.offer(np.asarray(self._state.best_cost).tolist(), lambda: np.asarray(self._state.best_actions))
        return iteration, notes["seconds"]

    def _agreed(self, seconds: float) -> float:
        """The first of several processes decides for all when time is up."""
        if jax.process_count() == 1 or self._limits.seconds is None:
            return seconds
        return float(broadcast_one_to_all(np.float32(seconds)))

    def _report(
        self,
        iteration: int,
        recent: int,
        earlier: float,
        seconds: float,
        metrics: dict[str, Any],
        progress: Callable[[TrainingProgress], None] | None,
    ) -> None:
        games, rate = iteration * self._agent.environments, recent * self._agent.environments / seconds
        standing = (self._agent.name, iteration, self._best.costs, self._best.bounds, games, earlier + seconds, rate)
        now = TrainingProgress(*standing, metrics)
        if self._folder:
            times = {"seconds": now.seconds, "games_per_second": rate}
            self._folder.note({"iteration": iteration, "games": games, **metrics, **times})
        if progress:
            progress(now)


def _placed(value: np.ndarray, sharding: NamedSharding) -> Array:
    """An array on the devices of all processes."""
    return jax.make_array_from_callback(value.shape, sharding, lambda index: value[index])


def _named(targets: Any) -> dict[str, ComputationGraph]:
    if isinstance(targets, dict):
        graphs = {str(name): _graph(target) for name, target in targets.items()}
    else:
        listed = list(targets) if isinstance(targets, list | tuple) else [targets]
        graphs = {_name(target, place): _graph(target) for place, target in enumerate(listed)}
        if len(graphs) < len(listed):
            raise SearchError("a task was given twice")
    if not graphs:
        raise SearchError("there is nothing to train on")
    return graphs


def _name(target: Any, place: int) -> str:
    return target.name if isinstance(target, Task) else f"graph-{place}"


def _graph(target: Any) -> ComputationGraph:
    if not isinstance(target, Task | ComputationGraph):
        raise SearchError(f"cannot train on {target!r}; give tasks or graphs")
    return target.graph() if isinstance(target, Task) else target


def _configuration(agent: AgentConfig, games: Games, names: list[str], seed: int) -> dict[str, Any]:
    """What must not change while a run goes on."""
    fingerprints = {name: graph.digest for name, graph in zip(names, games.graphs, strict=True)}
    return {
        "agent": type(agent).__name__.removesuffix("Config"),
        **asdict(agent),
        "seed": seed,
        "objective": str(games.objective),
        "sizes": games.boards.sizes._asdict(),
        "graphs": fingerprints,
    }
