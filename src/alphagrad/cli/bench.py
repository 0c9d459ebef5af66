"""``alphagrad bench``: how long Jacobians take, and whether the promises about them hold."""

import json
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import SearchError
from .options import Argnums, Args, AsJson, Budgeted, Quiet, TargetNames, check_positive, option, picture_of
from .output import answer, check_plot, check_writable, interrupted, save_plot

if TYPE_CHECKING:
    from ..bench.case import Case
    from ..bench.contender import Contender
    from ..bench.measure import Benchmark, Measurement
    from ..tasks.task import Task


ALL_ORDERS = "fwd,rev,markowitz,paper,best,auto"
BATCHES = "Batch sizes, such as 1,512; 1 is without vmap. Default: the paper's."
FIGURES = "Measure over batches and sizes, as in the paper's figures."
CHECK = "Check a promise. The exit code is 1 if it does not hold."


class Dtype(StrEnum):
    float32 = "float32"
    float64 = "float64"


class Check(StrEnum):
    regressions = "regressions"
    casadi = "casadi"
    accuracy = "accuracy"


@dataclass(frozen=True)
class Bench:
    """Compare the times of Jacobians with JAX and other packages.

    Tasks are measured as in the paper's table 2 and its figures. A function of your own is measured at one point and at
    512, and a line of advice says whether to use graphax for it. Times are medians over rounds.

    Ctrl-C prints the measurements so far. If --save was given, the same command resumes later.
    """

    names: TargetNames = None
    args: Args = None
    argnums: Argnums = None
    batch: Annotated[str | None, option("N,N", BATCHES)] = None
    scale: Annotated[str | None, option("N,N", "Sizes of networks, such as 1,16. Default: the paper's.")] = None
    figures: Annotated[bool, typer.Option("--figures", help=FIGURES)] = False
    backend: Annotated[str, option("NAMES", "auto, native, xla, or several: auto,xla")] = "auto"
    orders: Annotated[str, option("NAMES", "Presets, paper, best, or files of orders (*.json).")] = ALL_ORDERS
    peers: Annotated[str, option("NAMES", "casadi,asdex, or none.")] = "casadi,asdex"
    dtype: Annotated[Dtype, typer.Option(help="The precision of all arguments.")] = Dtype.float32
    repeat: Annotated[int, option("N", "Maximum number of rounds. Every contender runs once per round.")] = 100
    seconds: Annotated[float, option("N", "Seconds after which a case gets no further rounds.")] = 20.0
    threads: Annotated[int | None, option("N", "Threads that JAX and kernels may use. Default: all.")] = None
    budget: Budgeted = 2.0
    check: Annotated[Check | None, typer.Option(help=CHECK)] = None
    save: Annotated[Path | None, option("FILE.json", "Write all measurements to this file.")] = None
    plot: Annotated[Path | None, picture_of("times over batches or sizes")] = None
    as_json: AsJson = False
    quiet: Quiet = False

    def run(self) -> None:
        self._check()
        _limit_threads(1 if self.check is Check.casadi else self.threads)
        from ..bench.machine import empty_kernel_cache

        with empty_kernel_cache():
            code = self._measure()
        raise typer.Exit(code)

    def _check(self) -> None:
        """Raise errors before measuring, instead of afterwards."""
        if self.figures and (self.batch or self.scale):
            raise SearchError("--figures sets batches and sizes; give it or --batch and --scale, not both")
        if self.check and (self.figures or self.batch or self.scale):
            raise SearchError("--check sets batches and sizes; leave out --figures, --batch and --scale")
        check_positive(repeat=self.repeat, seconds=self.seconds, threads=self.threads, budget=self.budget)
        if self._own and (self.figures or self.scale or self.check):
            raise SearchError(f"{self._own[0]}: --figures, --scale and --check are for tasks; a function has --batch")
        if not self._own and (self.args or self.argnums):
            raise SearchError("--args and --argnums are only for your own functions, given as module:function")
        check_writable("--save", self.save, (".json",))
        check_plot(self.plot)

    @property
    def _own(self) -> list[str]:
        """The names of the user's own functions."""
        return [name for name in self.names or () if ":" in name]

    def _measure(self) -> int:
        """Measure, print the results, and return the exit code."""
        from ..bench.advice import advice
        from ..bench.machine import Machine
        from ..bench.measure import Benchmark, Effort
        from ..bench.promises import PROMISES, as_text, check
        from ..bench.report import BenchmarkReport
        from .comparison import select
        from .status_line import StatusLine

        promise = None if self.check is None else PROMISES[self.check]
        machine = Machine.here(promise.threads if promise and promise.threads else self.threads)
        own = self._own_tasks()
        named = [name for name in self.names or () if name not in self._own]
        shipped = select(named) if named or not own else []

        # Until the run ends, the file says that it was interrupted, so that the same command resumes it.
        def unfinished(measured: "Sequence[Measurement]") -> dict[str, Any]:
            return BenchmarkReport(machine, self.command(), tuple(measured), interrupted=True).as_dict()

        with StatusLine(self.quiet) as line:
            benchmark = Benchmark(
                Effort(self.repeat, self.seconds),
                line.show,
                keep=lambda measured: self._write(unfinished(measured)),
                earlier=[] if promise else self._earlier(unfinished([]), [*shipped, *own], line.say),
            )
            if promise:
                findings = check(promise, select(self.names or promise.tasks), benchmark)
            else:
                benchmark.run(self._cases(shipped), self._contenders())
                self._run_own(own, benchmark, line.show)
        rows = tuple(benchmark.measurements)
        said = advice([row for row in rows if row.case.task in own])
        report = BenchmarkReport(machine, self.command(), rows, benchmark.interrupted, said)
        document, text, kept = report.as_dict(), str(report), True
        if promise:
            document["findings"] = [each.as_dict() for each in findings]
            text = f"{machine}\n\n{as_text(promise, findings, benchmark.interrupted)}"
            kept = bool(findings) and all(each.kept for each in findings)
        if not benchmark.interrupted:
            self._write(document)
        if self.plot is not None:
            from ..plot import batch_scaling

            save_plot(batch_scaling(document), self.plot)
        answer(self.as_json, document, text)
        if benchmark.interrupted:
            raise interrupted(self._kept())
        return 0 if kept else 1

    def _own_tasks(self) -> "list[Task]":
        from ..bench.own_function import task_of
        from .target import find

        found = {name: find(name, self.args, self.argnums) for name in self._own}
        return [task_of(name, own.function, own.args, own.argnums, own.batch_axes) for name, own in found.items()]

    def _run_own(self, own: "Sequence[Task]", benchmark: "Benchmark", show: Callable[[object], None]) -> None:
        """Measure the user's functions, each with the order that a short search finds."""
        from ..bench.compare import cases_of, contenders_of, find_order
        from ..finders.budget import Budget

        orders = _words(self.orders)
        contenders = [*contenders_of(orders, _words(self.backend)), *self._peers(installed=True)] if own else []
        for task in own:
            if benchmark.interrupted:
                return
            cases = cases_of(task, _numbers("--batch", self.batch), self.dtype)
            if "best" in orders:
                find_order(task, Budget.of(self.budget), show)
            benchmark.run(cases, contenders)

    def _earlier(
        self, expected: dict[str, Any], chosen: "Sequence[Task]", say: Callable[[str], None]
    ) -> "list[Measurement]":
        """The measurements of an interrupted run of the same command on the same machine."""
        from ..bench.report import measurements_in, read

        if self.save is None or not self.save.exists():
            return []
        found = read(self.save)
        as_read = json.loads(json.dumps(expected))
        if any(found.get(key) != value for key, value in as_read.items() if key != "measurements"):
            return []
        measured = measurements_in(found, chosen)
        say(f"{self.save} was left unfinished; its {len({row.case for row in measured})} cases are not measured again")
        return measured

    def _write(self, document: dict[str, Any]) -> None:
        from graphax.files import replace_file

        if self.save is not None:
            replace_file(self.save, json.dumps(document, indent=2, ensure_ascii=False) + "\n")

    def _kept(self) -> str:
        if self.save is None or not self.save.exists():
            return "nothing was saved"
        return f"completed cases are in {self.save}, and the same command resumes the run"

    def _cases(self, chosen: "Sequence[Task]") -> list["Case"]:
        from ..bench.case import Case, checked_scale, of_figures, of_table

        if self.figures:
            return of_figures(chosen, self.dtype)
        batches, scales = _numbers("--batch", self.batch), _numbers("--scale", self.scale)
        return [
            Case(usual.task, batch, checked_scale(usual.task, scale), self.dtype)
            for usual in of_table(chosen, self.dtype)
            for scale in scales or [usual.scale]
            for batch in batches or [usual.batch]
        ]

    def _contenders(self) -> list["Contender"]:
        from graphax.backend import check_backend

        from ..bench.contender import JAX_MODES, elimination, floor, jax_mode
        from ..bench.orders import check_order

        orders, backends = map(_words, (self.orders, self.backend))
        for order in orders:
            check_order(order)
        ours = [elimination(order, check_backend(backend)) for backend in backends for order in orders]
        return [floor(), *map(jax_mode, JAX_MODES), *ours, *self._peers()]

    def _peers(self, installed: bool = False) -> list["Contender"]:
        """Other packages, or only the installed ones."""
        from ..bench.peers import peer

        names = [name for name in _words(self.peers) if name != "none"]
        return [peer(name) for name in names if not installed or find_spec(name) is not None]

    def command(self) -> str:
        """The command that requests these measurements, without output options."""
        values: dict[str, Any] = {
            "args": self.args, "argnums": self.argnums,
            "batch": self.batch, "scale": self.scale, "backend": self.backend, "orders": self.orders,
            "peers": self.peers, "dtype": self.dtype, "repeat": self.repeat, "seconds": f"{self.seconds:g}",
            "threads": self.threads, "check": self.check,
        }  # fmt: skip
        words = ["alphagrad", "bench", *(self.names or ()), *(["--figures"] if self.figures else [])]
        return shlex.join([*words, *(f"--{name}={value}" for name, value in values.items() if value not in (None, ""))])


def _limit_threads(threads: int | None) -> None:
    """Limit the threads of XLA, which reads the limit when it starts, and of kernels."""
    if threads is not None:
        os.environ["PJRT_NPROC"] = os.environ["GRAPHAX_THREADS"] = str(threads)
        if "graphax.native" in sys.modules:
            sys.modules["graphax.native"].set_threads(threads)


def _numbers(option: str, text: str | None) -> list[int]:
    words = _words(text or "")
    if not all(word.isdecimal() and int(word) > 0 for word in words) or (text is not None and not words):
        raise SearchError(f"{option} {text}: give whole numbers of at least 1, such as {option} 1,512")
    return [int(word) for word in words]


def _words(text: str) -> list[str]:
    return list(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
