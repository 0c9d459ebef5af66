"""The training loop: plays, learns, reports, saves the best orders, and resumes after it was killed.

    result = train(TASKS["RoeFlux_1d"], AlphaZeroConfig(), seconds=600, folder="runs/roe")

Everything that an iteration depends on is in `TrainingState`, which checkpoints hold. Random numbers follow from the
seed and the number of the iteration. So a run that was killed and resumed ends as it would have without the
interruption.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.experimental.multihost_utils import broadcast_one_to_all

from graphax import ComputationGraph, Order

from ..errors import SearchError, whole_number
from ..game import Sizes
from ..tasks.task import Task
from .alphazero import AlphaZeroConfig
from .best_orders import BestOrders
from .checkpoints import Checkpoints, digest_of
from .fitting import AgentConfig, Fitting, plays_any_size
from .games import Games
from .groups import by_size, together
from .interrupt import Interrupt, deferred_interrupt
from .iteration import TrainingState
from .player import Player
from .ppo import PPOConfig
from .run_folder import RunFolder
from .settings import check as check_configuration


@dataclass(frozen=True)
class TrainingProgress:
    """The state of training: the best cost and the lower bound of each task."""

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
    """The result of training.

    Attributes:
        orders: the best order of each task.
        learner: the learned parameters of the agent, as a pytree of arrays.
        iterations, seconds: the duration, including earlier calls in the same folder.
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
    pretrained: Any = None,
    checkpoint_every: int = 20,
    progress: Callable[[TrainingProgress], None] | None = None,
    sizes: Sizes | None = None,
    devices: Sequence[jax.Device] | None = None,
    until_optimal: bool = True,
    announce: Callable[[str], None] | None = None,
) -> TrainingResult:
    """Train an agent on one task, or on several at once.

    Args:
        targets: tasks or graphs; a dictionary gives graphs their names.
        agent: the agent, and how it plays and learns.
        counting, minimize: the cost of an order, as in `alphagrad.search`.
        seed: the seed of all random choices.
        iterations, seconds: when to stop, including the iterations and seconds of earlier calls in the same folder.
        folder: the folder for the configuration, metrics, best orders and checkpoints. If it holds a run of the same
            configuration, that run is resumed.
        pretrained: the folder of an earlier run with the same network, which a new run continues to train. A
            network on the graph plays all graphs, so the earlier run may have learnt other tasks.
        checkpoint_every: iterations between checkpoints. There is also one at the end.
        progress: is called after every iteration.
        sizes: the sizes to which all games are padded. By default, a network on the graph plays games of similar size
            in groups, each of its own sizes, and the paper's network plays all in the sizes of the largest.
        devices: the devices that share the environments; by default all devices of all processes.
        until_optimal: stop once all orders are certified to be optimal.
        announce: is called with a line of text for each phase before the first iteration ends, such as compiling.

    Ctrl-C ends the run after the iteration under way, with a checkpoint. A second Ctrl-C ends it at once.

    Raises:
        NotEnoughMemoryError: training needs more memory than is available. The message names settings that fit.
    """
    _check_limits(seed, iterations, seconds, checkpoint_every)
    trainer = Trainer.of(targets, agent, counting, minimize, sizes, devices, announce)
    return trainer.train(
        seed, folder, iterations=iterations, seconds=seconds, pretrained=pretrained, checkpoint_every=checkpoint_every,
        progress=progress, until_optimal=until_optimal,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Trainer:
    """An agent and its games, compiled once for runs of several seeds. See `train` for the arguments."""

    games: Games
    names: list[str]
    fitting: Fitting

    @staticmethod
    def of(
        targets: Any,
        agent: AgentConfig,
        counting: str = "raw",
        minimize: Any = "multiplications",
        sizes: Sizes | None = None,
        devices: Sequence[jax.Device] | None = None,
        announce: Callable[[str], None] | None = None,
    ) -> "Trainer":
        _check_agent(agent, sizes)
        graphs = _named(targets)
        games = Games.of(list(graphs.values()), counting, minimize, sizes)
        places = tuple(jax.devices() if devices is None else devices)
        groups = by_size(games) if sizes is None and plays_any_size(agent) else together(games)
        return Trainer(games, list(graphs), Fitting(agent, groups, places, announce or (lambda text: None)))

    def train(
        self,
        seed: int = 0,
        folder: Any = None,
        *,
        iterations: int | None = None,
        seconds: float | None = None,
        pretrained: Any = None,
        checkpoint_every: int = 20,
        progress: Callable[[TrainingProgress], None] | None = None,
        until_optimal: bool = True,
    ) -> TrainingResult:
        """Train with one seed, resuming the run in the folder if there is one."""
        _check_limits(seed, iterations, seconds, checkpoint_every)
        configuration = _configuration(self.fitting.config, self.games, self.names, seed)
        network = None if pretrained is None else Player.load(Path(pretrained)).network
        if network is not None:
            configuration["pretrained"] = digest_of(network)
        run_folder = RunFolder(folder, configuration)
        best = BestOrders(self.games, self.names, self.fitting.agent.name, seed, run_folder)
        began = time.monotonic()
        if run_folder.new:
            # Nothing is written for a run that cannot start.
            _ = self.fitting.compiled
            run_folder.create()
        checkpoints = None if folder is None else Checkpoints(run_folder.path / "checkpoints")
        with nullcontext() if checkpoints is None else closing(checkpoints), deferred_interrupt() as interrupt:
            run = _Run(self.fitting, seed, best, run_folder, checkpoints, began, network)
            limits = _Limits(iterations, seconds, until_optimal, interrupt)
            return run.train(limits, checkpoint_every, progress or (lambda now: None))


def _check_agent(agent: Any, sizes: Any) -> None:
    """Raise for agents and sizes that cannot be trained; see `train`."""
    if not isinstance(agent, AlphaZeroConfig | PPOConfig):
        raise SearchError(f"agent must be an AlphaZeroConfig or a PPOConfig, but is {agent!r}")
    if sizes is not None and not isinstance(sizes, Sizes):
        raise SearchError(f"sizes must be alphagrad.game.Sizes, but are {sizes!r}")
    check_configuration(agent)


def _check_limits(seed: Any, iterations: Any, seconds: Any, checkpoint_every: Any) -> None:
    """Raise for invalid limits of a run; see `train`."""
    if iterations is None and seconds is None:
        raise SearchError("training needs a limit: iterations, seconds or both")
    if seconds is not None and not (isinstance(seconds, int | float) and seconds > 0):
        raise SearchError(f"seconds must be more than zero, but is {seconds!r}")
    if iterations is not None:
        whole_number("iterations", iterations, 1)
    whole_number("seed", seed, 0)
    whole_number("checkpoint_every", checkpoint_every, 1)


@dataclass(frozen=True)
class _Limits:
    iterations: int | None
    seconds: float | None
    until_optimal: bool
    interrupt: Interrupt

    def reached(self, iteration: int, seconds: float, optimal: bool, first: bool) -> str | None:
        """The reason to end a run, or None. After Ctrl-C, one iteration is finished first."""
        if optimal and self.until_optimal:
            return "optimal"
        if self.iterations is not None and iteration >= self.iterations:
            return "iterations"
        if self.seconds is not None and self._agreed(seconds) >= self.seconds:
            return "seconds"
        return "interrupted" if self.interrupt.pressed and not first else None

    def _agreed(self, seconds: float) -> float:
        """The elapsed time that all processes agree on: that of the first process."""
        return seconds if jax.process_count() == 1 else float(broadcast_one_to_all(np.float32(seconds)))


class _Run:
    """A training run in progress."""

    def __init__(
        self,
        fitting: Fitting,
        seed: int,
        best: BestOrders,
        folder: RunFolder,
        checkpoints: Checkpoints | None,
        began: float,
        network: Any = None,
    ):
        self._fitting, self._best, self._folder, self._checkpoints = fitting, best, folder, checkpoints
        self._seed, self._began = seed, began
        state = fitting.iteration.first_state(seed, network)
        found = checkpoints.latest(state) if checkpoints else None
        self._state: TrainingState = found[0] if found else state
        self._first, self._earlier = int(self._state.iteration), found[1]["seconds"] if found else 0.0
        folder.forget_after(self._first)
        self._offer(np.asarray(self._state.experience.cost).tolist())

    def train(
        self, limits: _Limits, checkpoint_every: int, progress: Callable[[TrainingProgress], None]
    ) -> TrainingResult:
        iteration = saved = self._first
        while True:
            # Compiling counts toward the time, but one iteration always runs.
            seconds = self._seconds() if iteration > self._first else self._earlier
            stopped = limits.reached(iteration, seconds, self._best.optimal, iteration == self._first)
            if self._checkpoints and iteration > saved and (stopped or iteration - saved >= checkpoint_every):
                self._checkpoints.save(iteration, self._state, {"seconds": seconds})
                saved = iteration
            if stopped:
                return TrainingResult(dict(self._best.orders), self._state.learner, iteration, seconds, stopped)
            iterate = self._fitting.compiled
            if iteration == self._first:
                self._fitting.announce("running the first iteration…")
            self._state, measured = iterate(self._state, self._seed)
            iteration += 1
            metrics = {name: np.asarray(value).tolist() for name, value in measured.items()}
            self._offer(metrics["best_cost"])
            progress(self._noted(iteration, metrics))

    def _seconds(self) -> float:
        return self._earlier + time.monotonic() - self._began

    def _offer(self, costs: list[float]) -> None:
        self._best.offer(costs, lambda: np.asarray(self._state.experience.actions))

    def _noted(self, iteration: int, metrics: dict[str, Any]) -> TrainingProgress:
        """The progress of the run, which is also written to its folder as a line."""
        seconds, each = self._seconds(), self._fitting.iteration.games
        games, rate = iteration * each, (iteration - self._first) * each / (seconds - self._earlier)
        times = {"seconds": seconds, "games_per_second": rate}
        self._folder.note({"iteration": iteration, "games": games, **metrics, **times})
        best, bound = self._best.costs, self._best.bounds
        return TrainingProgress(self._fitting.agent.name, iteration, best, bound, games, seconds, rate, metrics)


def _named(targets: Any) -> dict[str, ComputationGraph]:
    if isinstance(targets, dict):
        named = [(str(name), target) for name, target in targets.items()]
    else:
        listed = list(targets) if isinstance(targets, list | tuple) else [targets]
        names = (target.name if isinstance(target, Task) else f"graph-{place}" for place, target in enumerate(listed))
        named = list(zip(names, listed, strict=True))
    for _, target in named:
        if not isinstance(target, Task | ComputationGraph):
            raise SearchError(f"cannot train on {target!r}; give tasks or graphs")
    graphs = {name: target.graph() if isinstance(target, Task) else target for name, target in named}
    if len(graphs) < len(named):
        raise SearchError("a task was given twice")
    if not graphs:
        raise SearchError("there is nothing to train on")
    return graphs


def _configuration(agent: AgentConfig, games: Games, names: list[str], seed: int) -> dict[str, Any]:
    """Everything that must not change when a run is resumed. ``states_at_once`` may change."""
    fingerprints = {name: graph.digest for name, graph in zip(names, games.graphs, strict=True)}
    return {
        "agent": type(agent).__name__.removesuffix("Config"),
        **{name: value for name, value in asdict(agent).items() if name != "states_at_once"},
        "seed": seed,
        "objective": str(games.objective),
        "sizes": games.sizes._asdict(),
        "graphs": fingerprints,
    }
