"""``alphagrad bench``: what Jacobians take, and whether what is promised of them holds."""

import json
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import AsJson, Quiet, TaskNames, picture_of, print_json
from .stops import interrupted

if TYPE_CHECKING:
    from ..bench.case import Case
    from ..bench.contender import Contender
    from ..bench.measure import Measurement
    from ..bench.promises import Finding, Promise
    from ..tasks.task import Task


# As in graphax.native.disk, which is too heavy to import for the help.
CACHE_VARIABLE = "GRAPHAX_CACHE"


class Dtype(StrEnum):
    float32 = "float32"
    float64 = "float64"


class Check(StrEnum):
    regressions = "regressions"
    casadi = "casadi"
    accuracy = "accuracy"


@dataclass(frozen=True)
class Options:
    """What was asked for, apart from how it is to be printed; texts are as they were given."""

    names: tuple[str, ...]
    batch: str | None
    scale: str | None
    figures: bool
    backend: str
    orders: str
    peers: str
    dtype: Dtype
    repeat: int
    seconds: float
    threads: int | None
    check: Check | None

    def command(self) -> str:
        """The command that asks for this."""
        flags = {"--figures": self.figures}
        values: dict[str, Any] = {
            "--batch": self.batch, "--scale": self.scale, "--backend": self.backend, "--orders": self.orders,
            "--peers": self.peers, "--dtype": self.dtype, "--repeat": self.repeat, "--seconds": f"{self.seconds:g}",
            "--threads": self.threads, "--check": self.check,
        }  # fmt: skip
        words = ["alphagrad", "bench", *self.names, *(flag for flag, given in flags.items() if given)]
        return shlex.join([*words, *(f"{name}={value}" for name, value in values.items() if value not in (None, ""))])


@dataclass(frozen=True)
class Output:
    """Where what comes of it goes."""

    save: Path | None
    plot: Path | None
    as_json: bool
    quiet: bool


def bench(
    names: TaskNames = None,
    batch: Annotated[
        str | None,
        typer.Option(help="Batch sizes, such as 1,512; 1 is without vmap. Default: the paper's.", metavar="N,N"),
    ] = None,
    scale: Annotated[
        str | None, typer.Option(help="Sizes of networks, such as 1,16. Default: the paper's.", metavar="N,N")
    ] = None,
    figures: Annotated[
        bool, typer.Option("--figures", help="Over batches and sizes, as in the paper's figures.")
    ] = False,
    backend: Annotated[str, typer.Option(help="auto, native, xla, or several: auto,xla", metavar="NAMES")] = "auto",
    orders: Annotated[
        str,
        typer.Option(help="Presets, paper, best, or files of orders (*.json).", metavar="NAMES"),
    ] = "fwd,rev,markowitz,paper,best,auto",
    peers: Annotated[str, typer.Option(help="casadi,asdex, or none.", metavar="NAMES")] = "casadi,asdex",
    dtype: Annotated[Dtype, typer.Option(help="Of all arguments.")] = Dtype.float32,
    repeat: Annotated[int, typer.Option(help="Rounds, in each of which everyone has a turn.", metavar="N")] = 100,
    seconds: Annotated[float, typer.Option(help="After which a case has had enough rounds.", metavar="N")] = 20.0,
    threads: Annotated[
        int | None, typer.Option(help="Threads that JAX and kernels may use. Default: all.", metavar="N")
    ] = None,
    check: Annotated[
        Check | None,
        typer.Option(help="Measure what it takes to see whether a promise holds; exit code 1 if it does not."),
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Write all measurements to this file.", metavar="FILE.json")] = None,
    plot: Annotated[Path | None, picture_of("times over batches or sizes")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Measure Jacobians beside JAX's modes and other packages.

    As in the paper's table 2 and its figures; times are medians over rounds. Ctrl-C prints what is there so far. What
    --save wrote until then stays, and the same command goes on.
    """
    options = Options(
        tuple(names or ()), batch, scale, figures, backend, orders, peers, dtype, repeat, seconds, threads, check
    )
    output = Output(save, plot, as_json, quiet)
    _check(options, output)
    _limit_threads(1 if check is Check.casadi else threads)
    with _empty_cache():
        code = _run(options, output)
    raise typer.Exit(code)


@contextmanager
def _empty_cache() -> Iterator[None]:
    """A folder for kernels of this run alone: those of earlier ones would hide what compiling them takes."""
    usual = os.environ.get(CACHE_VARIABLE)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[CACHE_VARIABLE] = folder
        try:
            yield
        finally:
            del os.environ[CACHE_VARIABLE]
            os.environ.update({} if usual is None else {CACHE_VARIABLE: usual})


def _run(options: Options, output: Output) -> int:
    from ..bench.machine import Machine
    from ..bench.measure import Benchmark, Effort
    from ..bench.promises import PROMISES, as_text
    from ..bench.report import BenchmarkReport
    from .status_line import StatusLine

    promise = None if options.check is None else PROMISES[options.check]
    machine = Machine.here(promise.threads if promise and promise.threads else options.threads)

    def report(measurements: "Sequence[Measurement]", interrupted: bool) -> BenchmarkReport:
        return BenchmarkReport(machine, options.command(), tuple(measurements), interrupted)

    # A file that a run leaves before its end says that it was interrupted, and the same command goes on.
    unfinished = report((), interrupted=True).as_dict()
    with StatusLine(output.quiet) as line:
        earlier = () if output.save is None or promise else _unfinished(output.save, unfinished, line.say)
        benchmark = Benchmark(
            Effort(options.repeat, options.seconds),
            line.show,
            keep=lambda measured: _write(report(measured, interrupted=True).as_dict(), output.save),
            earlier=earlier,
        )
        findings = _checked(options, promise, benchmark) if promise else None
        if promise is None:
            benchmark.run(_cases(options), _contenders(options))
    found = report(benchmark.measurements, benchmark.interrupted)
    document = found.as_dict()
    if findings is not None:
        document["findings"] = [each.as_dict() for each in findings]
    if not benchmark.interrupted:
        _write(document, output.save)
    _draw(document, output.plot)
    if output.as_json:
        print_json(document)
    elif promise is not None and findings is not None:
        typer.echo(f"{machine}\n\n{as_text(promise, findings, benchmark.interrupted)}")
    else:
        typer.echo(found)
    if benchmark.interrupted:
        raise interrupted(_kept(output.save))
    return 0 if findings is None or (findings and all(each.kept for each in findings)) else 1


def _unfinished(path: Path, expected: dict[str, Any], say: Callable[[str], None]) -> "list[Measurement]":
    """What a run of the same command on the same machine has measured before it was interrupted."""
    from ..bench.report import measurements_in, read

    found = read(path) if path.exists() else {}
    if any(found.get(key) != value for key, value in _as_read(expected).items() if key != "measurements"):
        return []
    measured = measurements_in(found)
    say(f"{path} was left unfinished; its {len({row.case for row in measured})} cases are not measured again")
    return measured


def _as_read(document: dict[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(document))


def _kept(save: Path | None) -> str:
    if save is None or not save.exists():
        return "nothing is kept but what was printed"
    return f"the cases that are complete are in {save}, and the same command goes on"


def _checked(options: Options, promise: "Promise", benchmark: Any) -> "list[Finding]":
    from ..bench.promises import check

    return check(promise, _tasks(options.names or promise.tasks), benchmark)


def _write(document: dict[str, Any], path: Path | None) -> None:
    from graphax.files import replace_file

    if path is not None:
        replace_file(path, json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def _draw(document: dict[str, Any], path: Path | None) -> None:
    if path is not None:
        from ..plot import batch_scaling
        from .outputs import save_picture

        save_picture(batch_scaling(document), path)


def _check(options: Options, output: Output) -> None:
    """Refuse before anything is measured what would be refused afterwards."""
    from ..errors import SearchError
    from .outputs import check_plot, check_writable

    if options.figures and (options.batch or options.scale):
        raise SearchError("--figures has batches and sizes of its own; give it or --batch and --scale, not both")
    if options.check and (options.figures or options.batch or options.scale):
        raise SearchError("--check has batches and sizes of its own; leave out --figures, --batch and --scale")
    for name, value in {"--repeat": options.repeat, "--seconds": options.seconds, "--threads": options.threads}.items():
        if value is not None and not 0 < value < float("inf"):
            raise SearchError(f"{name} {value:g}: it must be more than zero")
    if output.save is not None:
        check_writable("--save", output.save, (".json",))
    check_plot(output.plot)


def _limit_threads(threads: int | None) -> None:
    """XLA reads how many it may use when it starts, and kernels when graphax is imported."""
    if threads is not None:
        os.environ["PJRT_NPROC"] = os.environ["GRAPHAX_THREADS"] = str(threads)
        if "graphax.native" in sys.modules:
            sys.modules["graphax.native"].set_threads(threads)


def _tasks(names: Sequence[str]) -> list["Task"]:
    from .comparison import select

    return select(names)


def _cases(options: Options) -> list["Case"]:
    from ..bench.case import Case, checked_scale, of_figures, of_table

    chosen = _tasks(options.names)
    if options.figures:
        return of_figures(chosen, options.dtype)
    batches, scales = _numbers("--batch", options.batch), _numbers("--scale", options.scale)
    return [
        Case(usual.task, batch, checked_scale(usual.task, scale), options.dtype)
        for usual in of_table(chosen, options.dtype)
        for scale in scales or [usual.scale]
        for batch in batches or [usual.batch]
    ]


def _contenders(options: Options) -> list["Contender"]:
    from graphax.backend import check_backend

    from ..bench.contender import JAX_MODES, elimination, floor, jax_mode
    from ..bench.orders import check_order
    from ..bench.peers import peer

    orders, backends, peers = map(_words, (options.orders, options.backend, options.peers))
    for order in orders:
        check_order(order)
    for backend in backends:
        check_backend(backend)
    ours = [elimination(order, backend) for backend in backends for order in orders]
    return [floor(), *map(jax_mode, JAX_MODES), *ours, *(peer(name) for name in peers if name != "none")]


def _numbers(option: str, text: str | None) -> list[int]:
    from ..errors import SearchError

    words = _words(text or "")
    if not all(word.isdecimal() and int(word) > 0 for word in words) or (text is not None and not words):
        raise SearchError(f"{option} {text}: give whole numbers of at least 1, such as {option} 1,512")
    return [int(word) for word in words]


def _words(text: str) -> list[str]:
    return list(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
