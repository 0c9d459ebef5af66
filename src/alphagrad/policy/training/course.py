"""Train the policy: ``python -m alphagrad.policy.training --folder runs/policy``.

First the policy learns from a teacher, in rounds: orders of generated functions, found by search, show which moves are
good, in states of the teacher's games and of the policy's own. Then the policy plays whole games on other generated
functions and learns from their costs. Orders of the teacher are saved as soon as they are found, and the network after
every few steps, so a run that was stopped can be resumed. The best network so far is ``policy.safetensors`` in the
folder.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

import jax
import numpy as np
from typer import Option, Typer

from ...agents.checkpoints import Checkpoints
from ...agents.updates import Learner
from ...cli.options import UsageError
from ...cli.status_line import StatusLine
from ...elimination.problem import Problem
from ..network import Network, initial, save
from ..play import policy_order
from . import learn
from .lessons import Lesson, Moves, lesson, played_moves, taught, training_problem

BATCH = 256
# Ranges of function seeds: the first are learned from with a teacher, then those for self-play, then held-out ones.
PLAYED, HELD_OUT = 2_000_000, 10_000_000


@dataclass(frozen=True)
class Config:
    """How the policy is trained. The fields are the options of the command."""

    folder: Annotated[Path, Option(help="The folder of the run.")] = Path("runs/policy")
    workers: Annotated[int, Option(help="Processes that search, play and measure.")] = 2
    teachers: Annotated[int, Option(help="Number of functions with a teacher.")] = 1200
    teacher_seconds: Annotated[float, Option(help="Seconds of search for each function with a teacher.")] = 0.4
    states: Annotated[int, Option(help="States per lesson. A lesson is about one function.")] = 24
    rounds: Annotated[int, Option(help="Rounds of lessons. Each adds new states to those of the round before.")] = 5
    epochs: Annotated[int, Option(help="Passes over the lessons of a round.")] = 4
    rate: Annotated[float, Option(help="Learning rate of lessons, annealed to zero.")] = 2e-3
    iterations: Annotated[int, Option(help="Iterations of learning from its own games.")] = 300
    graphs: Annotated[int, Option(help="Functions per iteration.")] = 24
    games: Annotated[int, Option(help="Games per function.")] = 8
    repertoire: Annotated[int, Option(help="Number of functions that it plays.")] = 480
    self_play_rate: Annotated[float, Option(help="Learning rate of games, annealed to zero.")] = 3e-4
    measure_every: Annotated[int, Option(help="Iterations between measurements.")] = 20
    held_out: Annotated[int, Option(help="Number of functions to measure on.")] = 100


class Training:
    """A training run in progress."""

    def __init__(self, config: Config, pool: ProcessPoolExecutor, announce: Callable[[str], None]):
        self._config, self._pool, self._announce = config, pool, announce
        self._began = time.monotonic()
        self._best = np.inf
        config.folder.mkdir(parents=True, exist_ok=True)

    def run(self) -> None:
        self._play(self._imitate(initial(0)))

    def _imitate(self, network: Network) -> Network:
        config, teachers = self._config, self._teachers()
        steps = 2 * config.rounds * config.epochs * (len(teachers) * config.states // BATCH)
        rule = learn.optimizer(config.rate, steps)
        lessons: list[Lesson] = []

        def round_of_lessons(number: int, learner: Learner) -> Learner:
            nonlocal lessons
            now = _numpy(learner)
            jobs = [(seed, order, now, config.states, [seed, number]) for seed, order in teachers.items()]
            lessons = [*lessons[-1:], _joined(Lesson, self._map(lesson, jobs))]
            known = _joined(Lesson, lessons)
            for batch in _batches(np.random.default_rng(number), len(known.legal), config.epochs):
                learner, _ = learn.learn_from_lesson(learner, Lesson(*(part[batch] for part in known)), rule)
            return learner

        return self._steps("lessons", round_of_lessons, learn.begin(network, rule), config.rounds, 1)

    def _play(self, network: Network) -> Network:
        config = self._config
        rule = learn.optimizer(config.self_play_rate, config.iterations)

        def iteration(number: int, learner: Learner) -> Learner:
            first, now = number * config.graphs, _numpy(learner)
            seeds = [PLAYED + (first + place) % config.repertoire for place in range(config.graphs)]
            jobs = [(seed, now, config.games, [seed, number]) for seed in seeds]
            return learn.learn_from_games(learner, _joined(Moves, self._map(played_moves, jobs, 1)), rule)[0]

        return self._steps("games", iteration, learn.begin(network, rule), config.iterations, config.measure_every)

    def _map(self, function: Callable, jobs: Sequence[tuple], chunksize: int = 4) -> Iterator[Any]:
        """Map a function over jobs in the worker processes. A job is the seed of a problem and further arguments."""
        return self._pool.map(partial(_of_seed, function), *zip(*jobs, strict=True), chunksize=chunksize)

    def _steps(
        self, name: str, step: Callable[[int, Learner], Learner], learner: Learner, steps: int, every: int
    ) -> Network:
        """Take steps, resuming an earlier run. Every few steps, measure and keep the best network."""
        with closing(Checkpoints(self._config.folder / name)) as checkpoints:
            learner, notes = checkpoints.latest(learner) or (learner, {"step": 0, "best": self._best})
            self._best = notes["best"]
            for number in range(notes["step"] + 1, steps + 1):
                self._announce(f"{name}: step {number} of {steps}…")
                learner = step(number, learner)
                if number % every == 0 or number == steps:
                    self._measure(name, number, _numpy(learner))
                    checkpoints.save(number, learner, {"step": number, "best": self._best})
        return learner.network

    def _teachers(self) -> dict[int, np.ndarray]:
        path, config = self._config.folder / "teachers.jsonl", self._config
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        found = {seed: np.array(order, np.int32) for seed, order in map(json.loads, lines)}
        wanted = [seed for seed in range(config.teachers) if seed not in found]
        taught_orders = self._map(taught, [(seed, config.teacher_seconds) for seed in wanted], 1) if wanted else ()
        with path.open("a", encoding="utf-8") as file:
            for seed, order in zip(wanted, taught_orders, strict=True):
                self._announce(f"teachers: {len(found)} of {config.teachers}…")
                found[seed] = order
                file.write(json.dumps([seed, order.tolist()]) + "\n")
                file.flush()
        return found

    def _measure(self, stage: str, step: int, network: Network) -> None:
        """Compare with Markowitz on held-out functions: the mean cost ratio, and how often the policy is better."""
        seeds = range(HELD_OUT, HELD_OUT + self._config.held_out)
        pairs = self._map(_costs, [(seed, network) for seed in seeds])
        ours, markowitz = (np.array(column, float) for column in zip(*pairs, strict=True))
        ratio = float(np.mean(ours / markowitz))
        line = {
            "stage": stage,
            "step": step,
            "ratio": round(ratio, 4),
            "better": float(np.mean(ours < markowitz)),
            "seconds": round(time.monotonic() - self._began, 1),
        }
        with (self._config.folder / "metrics.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(" ".join(f"{name} {value}" for name, value in line.items()), flush=True)
        if ratio < self._best:
            self._best = ratio
            save(network, self._config.folder / "policy.safetensors")


@lru_cache(maxsize=4096)
def _problem(seed: int) -> Problem:
    """The problem of a seed. Each worker caches its problems, including their tables of structures."""
    return training_problem(seed)


def _of_seed(function: Callable, seed: int, *args: Any) -> Any:
    return function(_problem(seed), *args)


def _costs(problem: Problem, network: Network) -> tuple[float, float]:
    """The costs of the policy's order and of Markowitz."""
    markowitz = problem.graph.cost("markowitz", problem.objective.counting)
    return problem.value(policy_order(problem, network)), problem.objective.value(markowitz)


def _numpy(learner: Learner) -> Network:
    return jax.tree.map(np.asarray, learner.network)


def _joined(kind: Callable[..., Any], parts: Any) -> Any:
    return kind(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _batches(rng: np.random.Generator, states: int, epochs: int) -> Iterator[np.ndarray]:
    for _ in range(epochs):
        shuffled = rng.permutation(states)
        yield from (shuffled[start : start + BATCH] for start in range(0, states - BATCH + 1, BATCH))


def main(arguments: Sequence[str] | None = None) -> None:
    command = Typer(add_completion=False, rich_markup_mode=None)
    command.command(help=__doc__)(Config)
    try:
        config = command(arguments, standalone_mode=False)
    except UsageError as error:
        sys.exit(f"{error.format_message()} See python -m {__package__} --help")
    # Otherwise the command only printed its help.
    if isinstance(config, Config):
        with StatusLine() as line, ProcessPoolExecutor(config.workers, mp_context=get_context("spawn")) as pool:
            Training(config, pool, line.show).run()
