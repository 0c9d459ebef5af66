"""``alphagrad train``: agents learn to find orders, in runs that can be resumed."""

import shlex
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import SearchError
from . import options
from .output import answer, check_folder, interrupted

if TYPE_CHECKING:
    from ..agents.training import Trainer, TrainingProgress
    from .status_line import StatusLine
    from .target import Target


class AgentName(StrEnum):
    alphazero = "alphazero"
    ppo = "ppo"


class Preset(StrEnum):
    paper = "paper"
    small = "small"
    graph = "graph"


SET = (
    "Set a field of the configuration. Repeatable: --set environments=64 --set network.layers=3 (ppo: "
    "policy_network.layers, value_network.layers). An unknown name raises an error that lists the valid ones."
)
FOLDER = "Folder of the run. An existing run is resumed. Default: runs/<agent>-<tasks>-<seed>."
PRETRAINED = "Folder of an earlier run. Training continues with its network, also for other tasks."
TRACK = "Send metrics to tensorboard or wandb, if installed."
RESULTS = "Write <agent>/<task>-<seed>.json here (<agent>-joint for several tasks): order, configuration and curve."
SEEDS = "Train one agent per seed, one after another, such as 42,123,541. Limits apply to each run."


@dataclass(frozen=True)
class Train:
    """Train an agent to find orders.

    One agent learns all targets. If training would need more memory than is available, it stops at once with an error
    that names a setting that fits. Ctrl-C ends training after the current iteration, with the best orders so far.
    Repeat the command to resume.
    """

    agent: Annotated[AgentName, typer.Argument(help="The agent to train.")]
    names: options.TargetNames = None
    joint: Annotated[bool, typer.Option("--joint", help="Train on the ten tasks of the paper together.")] = False
    generated: Annotated[int, options.option("N", "Also train on N generated functions.")] = 0
    args: options.Args = None
    seconds: Annotated[float | None, options.option("N", "Stop after N seconds, including earlier calls.")] = None
    iterations: Annotated[int | None, options.option("N", "Stop after N iterations, including earlier calls.")] = None
    seed: options.Seed = 0
    seeds: Annotated[str | None, options.option("N,N", SEEDS)] = None
    counting: options.Counting = "raw"
    minimize: options.Minimize = "multiplications"
    preset: Annotated[Preset, typer.Option(help="The configuration that --set changes.")] = Preset.graph
    settings: Annotated[list[str] | None, options.option("NAME=VALUE", SET, flag="--set")] = None
    folder: Annotated[Path | None, options.option("PATH", FOLDER)] = None
    pretrained: Annotated[Path | None, options.option("FOLDER", PRETRAINED)] = None
    track: Annotated[str | None, options.option("TRACKER", TRACK)] = None
    results: Annotated[Path | None, options.option("PATH", RESULTS)] = None
    as_json: options.AsJson = False
    quiet: options.Quiet = False

    def run(self) -> None:
        from ..agents.presets import PRESETS
        from ..agents.settings import configured
        from ..agents.training import Trainer
        from ..elimination.objective import Objective
        from .outcome import Outcome
        from .status_line import StatusLine

        self._check()
        config = configured(PRESETS[self.agent][self.preset], self.settings or ())
        targets = self.targets()
        folders = {seed: self.run_folder(seed, list(targets)) for seed in self.all_seeds()}
        for folder in folders.values():
            check_folder("--folder", folder)
        check_folder("--results", self.results)
        objective = Objective.of(options.weights(self.minimize), self.counting)
        outcomes: list[Outcome] = []
        with StatusLine(self.quiet) as line:
            line.show(f"tracing {', '.join(targets)}…")
            graphs = {name: target.graph(simplify=False) for name, target in targets.items()}
            for name, graph in graphs.items():
                if not graph.intermediates:
                    raise SearchError(f"{name} has no vertices to eliminate, so there is nothing to learn")
            line.show("preparing the games…")
            trainer = Trainer.of(graphs, config, self.counting, objective, announce=line.show)
            for seed, folder in folders.items():
                stopped = self._stopped(trainer, config, seed, folder, line)
                outcomes.append(Outcome.of(self.agent, folder, targets, graphs, objective, stopped))
                if self.results is not None:
                    outcomes[-1].write(self.results, seed, config=asdict(config), command=self.command(seed))
                if stopped == "interrupted":
                    break
        found = [outcome.as_dict() for outcome in outcomes]
        answer(self.as_json, {"runs": found} if self.seeds else found[0], "\n\n".join(map(str, outcomes)))
        if stopped == "interrupted":
            raise interrupted(f"the run is kept in {folder}, and the same command resumes it")

    def _stopped(self, trainer: "Trainer", config: Any, seed: int, folder: Path, line: "StatusLine") -> str:
        """Train with one seed, and report why training ended."""
        from ..agents.tracking import tracked

        with tracked(self.track, folder, asdict(config)) as track:

            def show(now: "TrainingProgress") -> None:
                line.show(now)
                track(now)

            try:
                result = trainer.train(
                    seed, folder, iterations=self.iterations, seconds=self.seconds, pretrained=self.pretrained,
                    progress=show,
                )  # fmt: skip
                return result.stopped
            except KeyboardInterrupt:
                return "interrupted"

    def _check(self) -> None:
        if self.generated < 0:
            raise SearchError(f"--generated {self.generated}: it must be zero or more")
        if self.joint and self.names:
            raise SearchError("name the tasks to train on, or give --joint for all of them, not both")
        if not (self.joint or self.names or self.generated):
            raise SearchError("name the tasks to train on, or give --joint for all of them")
        if self.seconds is None and self.iterations is None:
            raise SearchError("training needs a limit: --seconds, --iterations or both")
        options.check_positive(seconds=self.seconds, iterations=self.iterations)
        for seed in self.all_seeds():
            if seed >= 2**32:
                raise SearchError(f"--seed {seed}: a seed must be less than 2**32")

    def all_seeds(self) -> list[int]:
        """The seeds of all runs."""
        if self.seeds is None:
            return [self.seed]
        texts = self.seeds.split(",")
        if not all(text.isdecimal() for text in texts) or len(set(texts)) < len(texts):
            raise SearchError(f"--seeds {self.seeds}: give different whole numbers, such as 42,123,541")
        return [int(text) for text in texts]

    def targets(self) -> dict[str, "Target"]:
        """The training targets by name."""
        from .. import tasks
        from .target import GENERATED, find

        found: dict[str, Target] = {}
        listed = [task.name for task in tasks.TASKS.values() if task.paper] if self.joint else self.names or ()
        for text in [*listed, *(f"{GENERATED}{number}" for number in range(self.generated))]:
            own = ":" in text
            target = find(text, self.args if own and not text.startswith(GENERATED) else None)
            name = target.name if own else tasks.get(text).name
            if name in found:
                raise SearchError(f"{name} was given twice")
            found[name] = target
        return found

    def run_folder(self, seed: int, names: list[str]) -> Path:
        """The folder of the run of a seed: the user's folder, with a subfolder per seed if there are several."""
        if self.folder is not None:
            return self.folder / str(seed) if self.seeds else self.folder
        named = ["joint"] if self.joint else names[: len(self.names or ())]
        generated = [f"generated{self.generated}"] if self.generated else []
        return Path("runs") / "-".join([self.agent, *named, *generated, str(seed)])

    def command(self, seed: int) -> str:
        """The command that repeats the run of a seed, without output paths."""
        values = {
            "--generated": self.generated or None, "--seconds": self.seconds, "--iterations": self.iterations,
            "--seed": seed, "--counting": self.counting, "--minimize": self.minimize, "--preset": self.preset,
            "--args": self.args, "--pretrained": self.pretrained,
        }  # fmt: skip
        words = ["alphagrad", "train", self.agent, *(self.names or ()), *(["--joint"] if self.joint else [])]
        words += [word for name, value in values.items() if value is not None for word in (name, str(value))]
        return shlex.join([*words, *(word for setting in self.settings or () for word in ("--set", setting))])
