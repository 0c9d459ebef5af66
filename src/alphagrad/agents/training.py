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
from typing import Any

import jax
import numpy as np
from jax import Array
from jax.experimental.multihost_utils import broadcast_one_to_all

from graphax import ComputationGraph, Order

from ..errors import SearchError, whole_number
from ..game.rules import Sizes
from ..tasks.task import Task
from .alphazero import AlphaZeroConfig
from .best_orders import BestOrders
from .checkpoints import Checkpoints
from .fitting import AgentConfig, Fitting
from .games import Games
from .interrupt import Interrupt, deferred_interrupt
from .iteration import TrainingState
from .ppo import PPOConfig
from .run_folder import RunFolder
from .settings import check as check_configuration


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
    announce: Callable[[str], None] | None = None,
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
        announce: is called with a line of text for each phase before the first iteration ends, such as compiling.

    Ctrl-C ends the run after the iteration under way, with a checkpoint; a second one ends it at once.

    Raises:
        NotEnoughMemoryError: training needs more memory than is available. The message names settings that fit.
    """
    _check_request(agent, seed, iterations, seconds, checkpoint_every, sizes)
    graphs = _named(targets)
    games = Games.of(list(graphs.values()), counting, minimize, sizes)
    configuration = _configuration(agent, games, list(graphs), seed)
    writes = jax.process_index() == 0
    run_folder = None if folder is None else RunFolder(folder, configuration, writes)
    limits = _Limits(iterations, seconds, until_optimal)
    places = tuple(jax.devices() if devices is None else devices)
    fitting = Fitting(agent, games.boards, seed, places, announce or (lambda text: None))
    best = BestOrders(games, list(graphs), fitting.agent.name, seed, run_folder)
    run = _Run(fitting, best, limits, run_folder)
    if run_folder and run_folder.new:
        # Nothing is written for a run that cannot begin.
        _ = fitting.compiled
        run_folder.create()
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

    def __init__(self, fitting: Fitting, best: BestOrders, limits: _Limits, folder: RunFolder | None):
        self._began = time.monotonic()
        self._fitting, self._best, self._limits, self._folder = fitting, best, limits, folder
        self._state = fitting.iteration.first_state()

    def train(
        self,
        checkpoints: Checkpoints | None,
        checkpoint_every: int,
        progress: Callable[[TrainingProgress], None] | None,
        interrupt: Interrupt,
    ) -> TrainingResult:
        first, earlier = self._resume(checkpoints)
        iteration = saved = first
        while True:
            # Compiling counts, but leaves time for one iteration.
            seconds = earlier + (self._seconds() if iteration > first else 0.0)
            stopped = self._limits.reached(iteration, self._agreed(seconds), self._best.optimal)
            if interrupt.pressed and iteration > first:
                stopped = stopped or "interrupted"
            if checkpoints and iteration > saved and (stopped or iteration - saved >= checkpoint_every):
                checkpoints.save(iteration, self._state, {"seconds": seconds})
                saved = iteration
            if stopped:
                return TrainingResult(dict(self._best.orders), self._state.learner, iteration, seconds, stopped)
            self._state, measured = self._iterate(iteration == first)
            iteration += 1
            metrics = {name: np.asarray(value).tolist() for name, value in measured.items()}
            self._best.offer(metrics["best_cost"], lambda: np.asarray(self._state.best_actions))
            self._report(iteration, iteration - first, earlier, metrics, progress)

    def _iterate(self, first: bool) -> tuple[TrainingState, dict[str, Array]]:
        iterate = self._fitting.compiled
        if first:
            self._fitting.announce("running the first iteration…")
        return iterate(self._state)

    def _seconds(self) -> float:
        return time.monotonic() - self._began

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
        metrics: dict[str, Any],
        progress: Callable[[TrainingProgress], None] | None,
    ) -> None:
        agent, seconds = self._fitting.agent, self._seconds()
        environments = agent.config.environments
        games, rate = iteration * environments, recent * environments / seconds
        standing = (agent.name, iteration, self._best.costs, self._best.bounds, games, earlier + seconds, rate)
        now = TrainingProgress(*standing, metrics)
        if self._folder:
            times = {"seconds": now.seconds, "games_per_second": rate}
            self._folder.note({"iteration": iteration, "games": games, **metrics, **times})
        if progress:
            progress(now)


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
    """What must not change while a run goes on, which how much is computed at once may."""
    fingerprints = {name: graph.digest for name, graph in zip(names, games.graphs, strict=True)}
    return {
        "agent": type(agent).__name__.removesuffix("Config"),
        **{name: value for name, value in asdict(agent).items() if name != "states_at_once"},
        "seed": seed,
        "objective": str(games.objective),
        "sizes": games.boards.sizes._asdict(),
        "graphs": fingerprints,
    }
