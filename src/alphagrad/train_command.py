"""``alphagrad train``: agents learn to find orders, in a folder where a run goes on if it is started again."""

import math
import shlex
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .cli_options import Args, AsJson, Counting, Minimize, Quiet, print_json, weights

if TYPE_CHECKING:
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
        words += [word for name, limit in limits.items() if limit is not None for word in (name, f"{limit}")]
        words += ["--seed", str(self.seed), "--counting", self.counting, "--minimize", self.minimize]
        words += ["--preset", self.preset, *(["--args", self.args] if self.args else [])]
        return shlex.join([*words, *(word for setting in self.settings for word in ("--set", setting))])

    def default_folder(self, names: list[str]) -> Path:
        return Path("runs") / "-".join([self.agent, *(["joint"] if self.joint else names), str(self.seed)])


def train(
    agent: Annotated[AgentName, typer.Argument(help="Which agent learns.")],
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TASK]...", help="Tasks, or module:function; one agent learns them all."),
    ] = None,
    joint: Annotated[bool, typer.Option("--joint", help="Train on all tasks of the benchmark together.")] = False,
    args: Args = None,
    seconds: Annotated[float | None, typer.Option(help="When to stop; earlier calls count.")] = None,
    iterations: Annotated[int | None, typer.Option(help="When to stop; earlier calls count.")] = None,
    seed: Annotated[int, typer.Option(help="Of all random choices.")] = 0,
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
        typer.Option(help="Where the run is kept, and goes on if it is there. Default: runs/<agent>-<tasks>-<seed>."),
    ] = None,
    results: Annotated[
        Path | None, typer.Option(help="Write <agent>/<task>.json here: order, configuration and curve.", metavar="DIR")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Train an agent to find orders. Ctrl-C ends with the best so far; the same command again goes on."""
    from .errors import SearchError
    from .presets import PRESETS
    from .settings import configured

    options = Options(
        agent, tuple(names or ()), joint, args, seconds, iterations, seed, counting, minimize, preset,
        tuple(settings or ()),
    )  # fmt: skip
    _check(options)
    config = configured(PRESETS[agent][preset], options.settings)
    targets = _targets(options)
    place = folder or options.default_folder(list(targets))
    for option, path in {"--folder": place, "--results": results}.items():
        if path is not None and path.exists() and not path.is_dir():
            raise SearchError(f"{option} {path}: it is a file; name a folder")
    _run(options, config, targets, place, results, as_json, quiet)


def _run(
    options: Options, config: Any, targets: dict[str, "Target"], folder: Path, results: Path | None, as_json: bool,
    quiet: bool,
) -> None:  # fmt: skip
    from .training import train as run_training
    from .training_line import TrainingLine
    from .training_report import Report, write_results

    graphs = {name: target.graph(simplify=False) for name, target in targets.items()}
    _check_graphs(graphs)
    minimize = weights(options.minimize)
    with TrainingLine(quiet or as_json) as line:
        line.say("preparing the games, compiling (a minute for large graphs)…")
        try:
            stopped = run_training(
                graphs, config, counting=options.counting, minimize=minimize, seed=options.seed, folder=folder,
                iterations=options.iterations, seconds=options.seconds, progress=line.show,
            ).stopped  # fmt: skip
        except KeyboardInterrupt:
            stopped = "interrupted"
    report = Report.of(options.agent, folder, targets, graphs, options.counting, minimize, stopped)
    if results is not None:
        write_results(results, report, config, options.seed, options.command())
    if as_json:
        print_json(report.as_dict())
    else:
        typer.echo(report)


def _check(options: Options) -> None:
    from .errors import SearchError

    if options.joint == bool(options.names):
        raise SearchError("name the tasks to train on, or give --joint for all of them")
    limits = {"--seconds": options.seconds, "--iterations": options.iterations}
    given = {name: limit for name, limit in limits.items() if limit is not None}
    if not given:
        raise SearchError("training needs a limit: --seconds, --iterations or both")
    for name, limit in given.items():
        if not 0 < limit < math.inf:
            raise SearchError(f"{name} {limit:g}: it must be more than zero")
    if not 0 <= options.seed < 2**32:
        raise SearchError(f"--seed {options.seed}: a seed is zero or more, and less than 2**32")


def _targets(options: Options) -> dict[str, "Target"]:
    from . import tasks
    from .errors import SearchError
    from .target import find

    found: dict[str, Target] = {}
    for text in tasks.TASKS if options.joint else options.names:
        own = ":" in text
        target = find(text, options.args if own else None)
        name = target.name if own else tasks.get(text).name
        if name in found:
            raise SearchError(f"{name} was given twice")
        found[name] = target
    return found


def _check_graphs(graphs: dict[str, Any]) -> None:
    from .errors import SearchError

    for name, graph in graphs.items():
        if not graph.intermediates:
            raise SearchError(f"{name} has no vertices to eliminate, so there is nothing to learn")
