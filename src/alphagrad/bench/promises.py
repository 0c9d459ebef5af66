"""Promises about the speed and the accuracy of Jacobians, as checks that anybody can run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from graphax.presets import BASELINES
from graphax.table import table

from ..tasks import MIDDLE, TASKS
from ..tasks.task import Task
from .case import Case, of_promise
from .contender import JAX_MODES, Contender, elimination, jax_mode
from .measure import Benchmark, Measurement
from .orders import BEST, PAPER
from .peers import peer
from .report import best_of_jax, finite, median

AUTO = "auto/auto"
# A case that fails is measured again this many times, with more repetitions each time, before the failure counts.
AGAIN, MORE = 2, 3
SLOWER, FASTER, LESS_ACCURATE = 1.05, 3.0, 2.0
# Errors below the rounding of float32 count as this much.
ROUNDING = 2.0**-23


@dataclass(frozen=True)
class Finding:
    """One case of a promise: the value found for ``contender``, and the limit for it."""

    case: Case
    contender: str
    value: float
    limit: str
    kept: bool
    detail: str

    def as_dict(self) -> dict[str, Any]:
        rest = {name: getattr(self, name) for name in ("contender", "value", "limit", "kept", "detail")}
        return {**self.case.as_dict(), **rest, "value": finite(self.value)}


@dataclass(frozen=True)
class Promise:
    """A sentence, the measurements that test it, and a function that judges them.

    Attributes:
        judge: maps the measurements of one case to findings.
        timed: whether times matter, so that a failure may be noise.
        threads: the maximum number of threads, or None for no limit.
    """

    sentence: str
    cases: Callable[[Sequence[Task]], list[Case]]
    contenders: tuple[Contender, ...]
    judge: Callable[[Sequence[Measurement]], list[Finding]]
    timed: bool = True
    threads: int | None = None
    tasks: tuple[str, ...] = tuple(TASKS)


def check(promise: Promise, chosen: Sequence[Task], benchmark: Benchmark) -> list[Finding]:
    """All findings, or those before an interruption. Failures in timing are measured again before they count."""
    findings = []
    for case in promise.cases(chosen):
        found = promise.judge(benchmark.run([case], promise.contenders, 1))
        for again in range(1, AGAIN + 1):
            if benchmark.interrupted or not promise.timed or all(each.kept for each in found):
                break
            found = promise.judge(benchmark.run([case], promise.contenders, 1 + again * MORE)) or found
        findings += found
        if benchmark.interrupted:
            break
    return findings


def as_text(promise: Promise, findings: Sequence[Finding], interrupted: bool) -> str:
    rows = [
        [f.case.label, f.case.batch, f.contender, f"{f.value:8.2f}", f.limit, f.detail, "" if f.kept else "BROKEN"]
        for f in findings
    ]
    text = table(promise.sentence, ["task", "batch", "contender", "ratio", "limit", "", ""], rows)
    return f"{text}\n\n{verdict(findings, interrupted)}"


def verdict(findings: Sequence[Finding], interrupted: bool) -> str:
    broken = sum(not each.kept for each in findings)
    kept = f"{len(findings) - broken} of {len(findings)} kept"
    if interrupted:
        return f"Interrupted: {kept} so far."
    return f"The promise holds: {kept}." if findings and not broken else f"The promise does not hold: {kept}."


def _regression(rows: Sequence[Measurement]) -> list[Finding]:
    theirs, limit = best_of_jax(rows), f"≤ {SLOWER} × JAX"
    ours = _of(rows, AUTO)
    if theirs is None:
        return []
    if ours is None or ours.timing is None:
        reason = ours and ours.reason
        return [Finding(theirs.case, AUTO, float("inf"), limit, False, reason or "interrupted")]
    ratio = median(ours) / median(theirs)
    return [Finding(ours.case, AUTO, ratio, limit, ratio <= SLOWER, _times(ours, theirs))]


def _against_casadi(rows: Sequence[Measurement]) -> list[Finding]:
    ours, theirs, limit = _of(rows, f"{BEST}/native"), _of(rows, "casadi"), f"≥ {FASTER:g} × casadi"
    assert theirs is not None
    if ours is None or ours.timing is None:
        return []
    if theirs.timing is None:
        return [Finding(ours.case, ours.contender, 0.0, limit, False, theirs.reason or "")]
    ratio = median(theirs) / median(ours)
    return [Finding(ours.case, ours.contender, ratio, limit, ratio >= FASTER, _times(ours, theirs))]


def _accuracy(rows: Sequence[Measurement]) -> list[Finding]:
    theirs = _of(rows, "jacrev")
    assert theirs is not None
    assert theirs.error is not None
    findings = []
    for row in rows:
        if row.contender not in JAX_MODES and row.error is not None:
            ratio = row.error / max(theirs.error, ROUNDING)
            detail = f"{row.error:.1e}, jacrev {theirs.error:.1e}"
            findings.append(
                Finding(row.case, row.contender, ratio, f"≤ {LESS_ACCURATE:g} × jacrev", ratio <= LESS_ACCURATE, detail)
            )
    return findings


def _of(rows: Sequence[Measurement], name: str) -> Measurement | None:
    return next((row for row in rows if row.contender == name), None)


def _times(ours: Measurement, theirs: Measurement) -> str:
    return f"{1e3 * median(ours):.3f} ms, {theirs.contender} {1e3 * median(theirs):.3f} ms"


_JAX = tuple(map(jax_mode, JAX_MODES))
PROMISES = {
    "regressions": Promise(
        "backend='auto' with order='auto' is at most 5 % slower than the best of JAX's two modes",
        of_promise,
        (*_JAX, elimination("auto", "auto")),
        _regression,
        tasks=(*TASKS, *MIDDLE),
    ),
    "casadi": Promise(
        "native kernels are at least 3 times as fast as CasADi's compiled C, with one thread and float64 each",
        lambda chosen: [Case(task, 65536, 1, "float64") for task in chosen],
        (elimination(BEST, "native"), elimination("rev", "native"), peer("casadi")),
        _against_casadi,
        threads=1,
        tasks=("RoeFlux_1d", "RobotArm_6DOF"),
    ),
    "accuracy": Promise(
        "Errors against float64 are at most twice those of jacrev in float32",
        lambda chosen: [Case(task, 64) for task in chosen],
        (
            jax_mode("jacrev"),
            *(elimination(order, "auto") for order in (*BASELINES, PAPER, BEST, "auto")),
            elimination("auto", "xla"),
        ),
        _accuracy,
        timed=False,
    ),
}
