"""A benchmark run: prepares the contenders of each case, times them taking turns, and compares their results."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import prod

import jax
import numpy as np

from graphax import GraphaxError
from graphax.accuracy import relative_error

from ..runtime.timing import Timing, take_turns
from .case import Case, of_dtype
from .contender import Contender, Ready

# The number of points of a batch that are compared with float64. More would not change much.
POINTS = 256


@dataclass(frozen=True)
class Measurement:
    """The result of one contender on one case, or the ``reason`` why there is none.

    Attributes:
        compile_seconds: the time from the function to machine code.
        memory: bytes of results and temporaries, if known.
        error: the largest error against float64, relative to the largest entry of an array; None if the contender
            computes no Jacobian.
    """

    case: Case
    contender: str
    timing: Timing | None = None
    compile_seconds: float | None = None
    memory: int | None = None
    error: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Effort:
    """The number of runs per contender, and the seconds after which a case gets no further rounds."""

    repeat: int = 100
    seconds: float = 20.0


class Benchmark:
    """A benchmark with its measurements so far. After an interruption, ``measurements`` holds those that exist.

    Args:
        announce: is called with a description of each phase.
        keep: is called with all measurements after each case.
        earlier: measurements of cases that need not be measured again.
    """

    def __init__(
        self,
        effort: Effort,
        announce: Callable[[str], None],
        keep: Callable[[Sequence[Measurement]], None] = lambda measurements: None,
        earlier: Sequence[Measurement] = (),
    ):
        self.effort = effort
        self.measurements: list[Measurement] = []
        self.interrupted = False
        self._announce, self._keep, self._earlier = announce, keep, earlier

    def run(self, cases: Iterable[Case], contenders: Sequence[Contender], times: int = 1) -> list[Measurement]:
        """The measurements of these cases, or of those before an interruption, with ``times`` the usual effort."""
        rows: list[Measurement] = []
        try:
            for case in cases:
                known = [row for row in self._earlier if row.case == case]
                rows += known or self._measured(case, contenders, times)
                if self.interrupted:
                    break
                self._keep([*self.measurements, *rows])
        except KeyboardInterrupt:
            self.interrupted = True
        self.measurements += rows
        return rows

    def _measured(self, case: Case, contenders: Sequence[Contender], times: int) -> list[Measurement]:
        repeat = times * self.effort.repeat
        with jax.enable_x64(case.dtype == "float64"):
            ready, rows = self._prepared(case, contenders)
            seconds: dict[str, list[float]] = {name: [] for name in ready}
            calls = {name: each.call for name, each in ready.items()}
            try:
                take_turns(
                    calls, seconds, repeat, times * self.effort.seconds,
                    lambda turn: self._announce(f"{case}: round {turn + 1} of {repeat}"),
                )  # fmt: skip
            except KeyboardInterrupt:
                self.interrupted = True
            self._announce(f"{case}: comparing with float64")
            errors = self._errors(case, ready)
        for name, each in ready.items():
            if seconds[name]:
                timing = Timing.of(seconds[name])
                rows[name] = Measurement(case, name, timing, each.compile_seconds, each.memory, errors.get(name))
        return [rows[contender.name] for contender in contenders if contender.name in rows]

    def _prepared(self, case: Case, contenders: Sequence[Contender]) -> tuple[dict[str, Ready], dict[str, Measurement]]:
        """The contenders that support the case, and rows with the reasons why the others do not."""
        ready: dict[str, Ready] = {}
        without: dict[str, Measurement] = {}
        for contender in contenders:
            self._announce(f"{case}: compiling {contender.name}")
            try:
                ready[contender.name] = contender.prepare(case)
            except GraphaxError as error:
                without[contender.name] = Measurement(case, contender.name, reason=str(error))
        return ready, without

    def _errors(self, case: Case, ready: dict[str, Ready]) -> dict[str, float]:
        """The errors of contenders, as far as there was time before an interruption."""
        errors: dict[str, float] = {}
        try:
            exact = exact_entries(case)
            for name, each in ready.items():
                if each.entries is not None:
                    errors[name] = relative_error(each.entries(POINTS), exact)
        except KeyboardInterrupt:
            self.interrupted = True
        return errors


def exact_entries(case: Case, count: int = POINTS) -> list[np.ndarray]:
    """The arrays of the Jacobian at the first points, by JAX in float64 from exactly the same arguments.

    The mode with fewer passes is used, because the other one is hopeless for large networks.
    """
    with jax.enable_x64(True):
        args = [of_dtype(x, "float64") for x in case.first(count)]
        example = case.task.arguments(case.scale)
        outputs = sum(prod(x.shape) for x in jax.tree.leaves(jax.eval_shape(case.function, *example)))
        inputs = sum(example[number].size for number in case.task.argnums)
        mode = jax.jacrev if outputs <= inputs else jax.jacfwd
        exact = jax.jit(case.over_batch(mode(case.function, case.task.argnums)))(*args)
        return [np.asarray(x) for x in jax.tree.leaves(exact)]
