"""``alphagrad train``: agents learn to find orders, in a folder where a run goes on if it is started again."""

import math
import shlex
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import Args, AsJson, Counting, Minimize, Quiet, Seed, TargetNames, print_json, weights
from .stops import interrupted

if TYPE_CHECKING:
    from ..agents.training import TrainingProgress
    from .status_line import StatusLine
    from .target import Target


class AgentName(StrEnum):
    alphazero = "alphazero"
    ppo = "ppo"


class Preset(StrEnum):
    paper = "paper"
    small = "small"


@dataclass(frozen=True)
class Options:
    """What was asked for, apart from how it is to be printed."""

    agent: AgentName
    names: tuple[str, ...]
    joint: bool
    generated: int
    args: str | None
    seconds: float | None
    iterations: int | None
    seed: int
    counting: str
    minimize: str
    preset: Preset
    settings: tuple[str, ...]

    def command(self) -> str:
        """The command that asks for this, without where files go."""
        limits = {"--seconds": self.seconds, "--iterations": self.iterations}
        words = ["alphagrad", "train", self.agent, *self.names, *(["--joint"] if self.joint else [])]
        words += ["--generated", str(self.generated)] if self.generated else []
        words += [word for name, limit in limits.items() if limit is not None for word in (name, f"{limit}")]
        words += ["--seed", str(self.seed), "--counting", self.counting, "--minimize", self.minimize]
        words += ["--preset", self.preset, *(["--args", self.args] if self.args else [])]
        return shlex.join([*words, *(word for setting in self.settings for word in ("--set", setting))])

    def default_folder(self, names: list[str]) -> Path:
        named = ["joint"] if self.joint else names[: len(self.names)]
        generated = [f"generated{self.generated}"] if self.generated else []
        return Path("runs") / "-".join([self.agent, *named, *generated, str(self.seed)])


@dataclass(frozen=True)
class Output:
    """Where what comes of it goes."""

    folder: Path
    results: Path | None
    tracker: str | None
    as_json: bool
    quiet: bool


def train(
    agent: Annotated[AgentName, typer.Argument(help="Which agent learns.")],
    names: TargetNames = None,
    joint: Annotated[bool, typer.Option("--joint", help="Train on all tasks of the benchmark together.")] = False,
    generated: Annotated[int, typer.Option(help="Train on so many generated functions, too.", metavar="N")] = 0,
    args: Args = None,
    seconds: Annotated[float | None, typer.Option(help="When to stop; earlier calls count.", metavar="N")] = None,
    iterations: Annotated[int | None, typer.Option(help="When to stop; earlier calls count.", metavar="N")] = None,
    seed: Seed = 0,
    counting: Counting = "raw",
    minimize: Minimize = "multiplications",
    preset: Annotated[Preset, typer.Option(help="The configuration that --set changes.")] = Preset.paper,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Set a field of the configuration, as often as needed: --set environments=64 --set network.layers=3 "
            "(ppo: policy_network.layers, value_network.layers). An unknown name is answered with all that there are.",
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            help="Where the run is kept, and goes on if it is there. Default: runs/<agent>-<tasks>-<seed>.",
            metavar="PATH",
        ),
    ] = None,
    track: Annotated[
        str | None, typer.Option(help="Hand metrics on to tensorboard or wandb, if installed.", metavar="TRACKER")
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(help="Write <agent>/<task>.json here: order, configuration and curve.", metavar="PATH"),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Train an agent to find orders.

    One agent learns all targets. Training that needs more memory than is available ends before it starts, with an error
    that names a setting that fits. Ctrl-C ends after the iteration under way, with the best so far; the same command
    again goes on.
    """
    from ..agents.presets import PRESETS
    from ..agents.settings import configured
    from .outputs import check_folder

    options = Options(
        agent, tuple(names or ()), joint, generated, args, seconds, iterations, seed, counting, minimize, preset,
        tuple(settings or ()),
    )  # fmt: skip
    _check(options)
    config = configured(PRESETS[agent][preset], options.settings)
    targets = _targets(options)
    place = folder or options.default_folder(list(targets))
    for option, path in {"--folder": place, "--results": results}.items():
        if path is not None:
            check_folder(option, path)
    _run(options, config, targets, Output(place, results, track, as_json, quiet))


def _run(options: Options, config: Any, targets: dict[str, "Target"], output: Output) -> None:
    from .status_line import StatusLine
    from .training_report import Report, write_results

    minimize, folder = weights(options.minimize), output.folder
    with StatusLine(output.quiet) as line:
        line.show(f"tracing {', '.join(targets)}…")
        graphs = {name: target.graph(simplify=False) for name, target in targets.items()}
        _check_graphs(graphs)
        stopped = _trained(options, config, graphs, output, line)
    report = Report.of(options.agent, folder, targets, graphs, options.counting, minimize, stopped)
    if output.results is not None:
        write_results(output.results, report, config, options.seed, options.command())
    if output.as_json:
        print_json(report.as_dict())
    else:
        typer.echo(report)
    if stopped == "interrupted":
        raise interrupted(f"the run is kept in {folder}, and the same command goes on")


def _trained(options: Options, config: Any, graphs: dict[str, Any], output: Output, line: "StatusLine") -> str:
    """Train, and say why that ended."""
    from ..agents.tracking import tracked
    from ..agents.training import train as run_training

    with tracked(output.tracker, output.folder, asdict(config)) as track:
        line.show("preparing the games…")

        def show(now: "TrainingProgress") -> None:
            line.show(now)
            track(now)

        try:
            return run_training(
                graphs, config, counting=options.counting, minimize=weights(options.minimize), seed=options.seed,
                folder=output.folder, iterations=options.iterations, seconds=options.seconds, progress=show,
                announce=line.show,
            ).stopped  # fmt: skip
        except KeyboardInterrupt:
            return "interrupted"


def _check(options: Options) -> None:
    from ..errors import SearchError

    if options.generated < 0:
        raise SearchError(f"--generated {options.generated}: it must be zero or more")
    if options.joint and options.names:
        raise SearchError("name the tasks to train on, or give --joint for all of them, not both")
    if not (options.joint or options.names or options.generated):
        raise SearchError("name the tasks to train on, or give --joint for all of them")
    limits = {"--seconds": options.seconds, "--iterations": options.iterations}
    given = {name: limit for name, limit in limits.items() if limit is not None}
    if not given:
        raise SearchError("training needs a limit: --seconds, --iterations or both")
    for name, limit in given.items():
        if not 0 < limit < math.inf:
            raise SearchError(f"{name} {limit:g}: it must be more than zero")
    if options.seed >= 2**32:
        raise SearchError(f"--seed {options.seed}: a seed is less than 2**32")


def _targets(options: Options) -> dict[str, "Target"]:
    from .. import tasks
    from ..errors import SearchError
    from .target import GENERATED, find

    found: dict[str, Target] = {}
    listed = tasks.TASKS if options.joint else options.names
    for text in [*listed, *(f"generated:{number}" for number in range(options.generated))]:
        own = ":" in text
        target = find(text, options.args if own and not text.startswith(GENERATED) else None)
        name = target.name if own else tasks.get(text).name
        if name in found:
            raise SearchError(f"{name} was given twice")
        found[name] = target
    return found


def _check_graphs(graphs: dict[str, Any]) -> None:
    from ..errors import SearchError

    for name, graph in graphs.items():
        if not graph.intermediates:
            raise SearchError(f"{name} has no vertices to eliminate, so there is nothing to learn")
