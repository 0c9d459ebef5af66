from dataclasses import replace

import pytest

from alphagrad.bench.case import Case
from alphagrad.bench.measure import Benchmark, Effort, Measurement
from alphagrad.bench.promises import AGAIN, PROMISES, as_text, check, verdict
from alphagrad.runtime.timing import Timing
from alphagrad.tasks import TASKS

QUICK_TO_COMPILE = ("HumanHeartDipole",)
CASE = Case(TASKS["RoeFlux_1d"], 512)


def row(contender, median=1.0, **rest):
    return Measurement(CASE, contender, Timing(median, median, median, 1), **rest)


class Fixed:
    """A benchmark with fixed times."""

    interrupted = False

    def __init__(self, *rows):
        self.rows, self.times = rows, []

    def run(self, cases, contenders, times):
        self.times.append(times)
        return self.rows


@pytest.mark.parametrize(
    "name", [name if name in QUICK_TO_COMPILE else pytest.param(name, marks=pytest.mark.slow) for name in TASKS]
)
def test_accuracy(name):
    """The promise holds for every task, with the presets and with the orders that ship."""
    benchmark = Benchmark(Effort(1, 1.0), lambda text: None)
    findings = check(PROMISES["accuracy"], [TASKS[name]], benchmark)
    assert {each.contender for each in findings} >= {"fwd/auto", "rev/auto", "markowitz/auto", "best/auto", "auto/xla"}
    assert all(each.kept for each in findings), as_text(PROMISES["accuracy"], findings, False)


@pytest.mark.parametrize(("ours", "kept"), [(1.04, True), (1.06, False)])
def test_regressions(ours, kept):
    rows = [row("jacfwd", 3.0), row("jacrev"), row("auto/auto", ours)]
    benchmark = Fixed(*rows)
    promise = replace(PROMISES["regressions"], cases=lambda chosen: [CASE])
    (finding,) = check(promise, [CASE.task], benchmark)
    assert (finding.value, finding.kept) == (ours, kept)
    assert len(benchmark.times) == (1 if kept else 1 + AGAIN)
    text = as_text(promise, [finding], False)
    assert ("BROKEN" not in text) is kept
    assert ("The promise holds: 1 of 1 kept." in text) is kept
    assert finding.as_dict()["task"] == "RoeFlux_1d"


def test_a_regression_by_failing():
    (finding,) = PROMISES["regressions"].judge([row("jacrev"), Measurement(CASE, "auto/auto", reason="no")])
    assert (finding.kept, finding.detail, finding.as_dict()["value"]) == (False, "no", None)
    assert PROMISES["regressions"].judge([row("auto/auto")]) == []


@pytest.mark.parametrize(
    ("theirs", "kept"),
    [(row("casadi", 3.5), True), (row("casadi", 2.5), False), (Measurement(CASE, "casadi", reason="none"), False)],
)
def test_against_casadi(theirs, kept):
    (finding,) = PROMISES["casadi"].judge([row("best/native"), theirs])
    assert finding.kept is kept
    assert PROMISES["casadi"].judge([theirs]) == []
    assert [case.dtype for case in PROMISES["casadi"].cases([CASE.task])] == ["float64"]


@pytest.mark.parametrize(("ours", "kept"), [(1.9e-6, True), (2.1e-6, False)])
def test_accuracy_is_judged(ours, kept):
    (finding,) = PROMISES["accuracy"].judge([row("jacrev", error=1e-6), row("rev/auto", error=ours)])
    assert finding.kept is kept
    (finding,) = PROMISES["accuracy"].judge([row("jacrev", error=0.0), row("rev/auto", error=1e-7)])
    assert finding.kept


def test_verdicts():
    assert verdict([], True) == "Interrupted: 0 of 0 kept so far."
    assert verdict([], False).startswith("The promise does not hold")
