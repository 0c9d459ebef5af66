"""The logic of the adversary, and a small share of its attempts."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from attacks.areas import AREAS, Area
from attacks.attempt import CRASHED, REFUSED, RIGHT, WRONG, Outcome
from attacks.case import Case
from attacks.law import References, Tolerance, judge
from attacks.minimise import minimised
from attacks.report import Finding, Tally, table, write_repros, written
from attacks.supervisor import Supervisor, chosen_areas

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
NAN, INF = float("nan"), float("inf")


def verdict(got, forward, reverse, tolerance=None, dtype=float):
    trees = [[lambda value=value: jnp.asarray(value, dtype)] for value in (forward, reverse)]
    return judge(jnp.asarray(got, dtype), References(*trees), tolerance or Tolerance()).problem


class TestLaw:
    @pytest.mark.parametrize(
        ("got", "forward", "reverse"),
        [
            ([1.0], [1.0], [1.0]),
            ([1.0 + 1e-12], [1.0], [1.0]),
            ([2.0], [1.0], [2.0]),
            ([5.0], [NAN], [NAN]),
            ([NAN], [INF], [NAN]),
            ([2.0], [NAN], [2.0]),
            ([NAN], [NAN], [2.0]),
            ([INF], [INF], [INF]),
            ([0.0], [0.0], [NAN]),
            ([1e-17], [0.0], [0.0]),
        ],
    )
    def test_accepts(self, got, forward, reverse):
        assert verdict(got, forward, reverse) is None

    @pytest.mark.parametrize(
        ("got", "forward", "reverse"),
        [
            ([2.0], [1.0], [1.0]),
            ([1.0 + 1e-6], [1.0], [1.0]),
            ([NAN], [1.0], [1.0]),
            ([NAN], [0.0], [NAN]),
            ([3.0], [NAN], [2.0]),
            ([INF], [1.0], [2.0]),
            ([-INF], [-6e14], [-INF]),
            ([[1.0]], [1.0], [1.0]),
        ],
    )
    def test_rejects(self, got, forward, reverse):
        assert verdict(got, forward, reverse) is not None

    def test_dtypes_and_weak_types_are_compared(self):
        weak, strong = jnp.asarray(1.0), jnp.float64(1.0)
        references = References([lambda: weak * 1.0], [])
        assert "dtype" in judge(jnp.float32(1.0), references, Tolerance()).problem
        assert (judge(strong, references, Tolerance()).problem is None) == (not jnp.asarray(1.0).weak_type)

    def test_either_side_of_a_jump_is_accepted_where_compiling_decides(self):
        references = References([lambda: jnp.array([1.0]), lambda: jnp.array([2.0])], [lambda: jnp.array([1.0])])
        assert judge(jnp.array([2.0]), references, Tolerance()).problem is None

    @pytest.mark.parametrize(("wide_reverse", "problem"), [(-6e14, False), (NAN, True)])
    def test_an_overflow_of_the_other_mode_is_accepted_in_single_precision_only(self, wide_reverse, problem):
        references = References(
            [lambda: jnp.float32([-6e14])],
            [lambda: jnp.float32([-INF])],
            wide=lambda: jnp.array([-6e14]),
            wide_reverse=lambda: jnp.array([wide_reverse]),
        )
        assert (judge(jnp.float32([NAN]), references, Tolerance()).problem is not None) == problem

    def test_pointwise_sees_small_entries(self):
        got, want = [1e9, 1.001], [1e9, 1.0]
        assert verdict(got, want, want, Tolerance(slack=0.0)) is None
        assert verdict(got, want, want, Tolerance(slack=0.0, pointwise=True)) is not None


@dataclass(frozen=True)
class Planted(Case):
    """An attempt that fails if a certain operation is left in the program."""

    def check(self):
        text = " ".join((*self.lines, self.result))
        return Outcome(WRONG, what="0 planted", where=(0, 0)) if "jnp.tan(" in text else Outcome(RIGHT)


def test_minimiser_shrinks_a_planted_failure():
    lines = ("a = jnp.sin(x)", "b = jnp.cos(jnp.tan(a) + jnp.exp(a))", "c = b * 2", "d = a + c")
    attempt = Planted(("x",), lines, "(a, d)", (np.ones((2, 3)),))
    small, outcome = minimised(attempt, attempt.check())
    assert outcome.verdict == WRONG
    assert len(small.lines) == 1
    assert "jnp.tan" in small.source()
    assert "jnp.sin" not in small.source()


class TestCase:
    def test_right(self):
        outcome = Case(("x",), ("y = x * x",), "jnp.sin(y)", (np.arange(3.0),)).check()
        assert (outcome.verdict, outcome.numbers) == (RIGHT, 9)

    def test_errors_that_jax_raises_too_are_refusals(self):
        assert Case(("x",), (), "x + 'text'", (np.ones(2),)).check().verdict == REFUSED
        assert Case(("x",), (), "x", (np.ones(2),), options="order=[99]").check().verdict == REFUSED

    def test_errors_of_ours_alone_are_crashes(self):
        outcome = Case(("x",), (), "x", (np.ones(2),), "jac(f)(*args)", theirs="jac(f)(*args)", options="nothing=1")
        assert outcome.check().verdict == CRASHED

    def test_code_that_cannot_be_compiled_is_a_crash(self, monkeypatch):
        def broken(*_):
            raise RuntimeError("parsing error")

        monkeypatch.setattr("graphax.native.primitive._loaded_on_cpu", broken)
        case = Case(("x",), (), "jnp.sin(x)", (np.ones(2),), "jax.jit(jac(f))(*args)", options='backend="native"')
        assert case.check().verdict == CRASHED

    def test_a_repro_runs_by_itself(self, tmp_path):
        case = Case(("x",), ("y = jnp.sin(x)",), "y * 2", (np.array([0.5, -INF]),), options='order="rev"')
        path = tmp_path / "repro.py"
        path.write_text(case.source())
        done = subprocess.run([sys.executable, str(path)], env=_environment(), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert [line.split()[0] for line in done.stdout.splitlines() if line.startswith("jac")] == ["jacve", "jacfwd"]


@pytest.mark.parametrize("area", AREAS)
def test_attempts_repeat_exactly(area):
    numbers = (0, 3, 4, 17)
    first, again, other = ([[a.source() for a in AREAS[area].attempts(s, n)] for n in numbers] for s in (5, 5, 6))
    assert first == again
    assert first != other


WORKER = """
import argparse, json, os, sys, time
parser = argparse.ArgumentParser()
for name in ("area", "seed", "first", "count", "seconds", "report", "skip"):
    parser.add_argument(f"--{name}")
parser.add_argument("--describe", action="store_true")
options = parser.parse_args()
with open(options.report, "w") as report:
    def say(**facts):
        report.write(json.dumps(facts) + "\\n")
        report.flush()
    if options.describe:
        say(source=f"attempt = {options.first}\\n")
        sys.exit()
    say(at=int(options.first), place=0)
    if options.area == "dies":
        os.abort()
    if options.area == "hangs":
        time.sleep(60)
    say(outcome="right", numbers=10)
    say(done=True)
"""


class TestSupervisor:
    def planted(self, tmp_path, name):
        script = tmp_path / "worker.py"
        script.write_text(WORKER)
        command = (sys.executable, str(script))
        supervisor = Supervisor([Area(name)], 10, 3, 1, only=4, patience=2.0, command=command)
        supervisor.run()
        return supervisor

    def test_counts(self, tmp_path):
        supervisor = self.planted(tmp_path, "works")
        assert supervisor.tallies["works"].numbers == 10
        assert not supervisor.findings

    def test_a_crash_is_a_finding(self, tmp_path):
        supervisor = self.planted(tmp_path, "dies")
        (finding,) = supervisor.findings
        assert (finding.verdict, finding.attempt, finding.source) == (CRASHED, 4, "attempt = 4\n")
        assert "exit code -6" in finding.what
        assert supervisor.tallies["dies"].crashed == 1

    @pytest.mark.slow
    def test_a_hang_is_a_finding(self, tmp_path):
        (finding,) = self.planted(tmp_path, "hangs").findings
        assert "no answer" in finding.what

    def test_unknown_areas_are_named(self):
        with pytest.raises(ValueError, match="nonsense; the areas are: special_values"):
            chosen_areas("caches,nonsense")


def test_report(tmp_path):
    finding = Finding("caches", 1, 7, 0, WRONG, "what\nmore", "kind", "kind", "print(1)\n")
    tallies = {"caches": Tally(3, 1000, 1, 0, 0, 2.0)}
    assert "| caches | 3 | 1,000 | 1 | 0 | 0 | 2 |" in table(tallies)
    written(tmp_path / "a.json", 1, 2.0, tallies, [finding])
    content = json.loads((tmp_path / "a.json").read_text())
    assert content["findings"][0]["command"].endswith("--areas caches --seed 1 --attempt 7")
    assert "jax" in content["versions"]
    paths = write_repros(tmp_path / "repros", [finding] * 20)
    assert len(paths) == 5
    compile(paths[0].read_text(), "repro", "exec")


# A few attempts of every area that once found something.
SHARE = {
    "special_values": (0, 39, 254, 286),
    "random_programs": (0, 3, 8, 30, 66),
    "structures_and_orders": (2, 4),
    "transformations": (1, 7, 11, 25, 66, 92, 137),
    "control_flow": (6, 12),
    "long_code": range(20),
    "precision": (0, 1),
    "threads": (0,),
    "caches": (4, 24),
    "searches": (0, 1),
}


def shares():
    for area, numbers in SHARE.items():
        for number in numbers:
            yield pytest.param(area, number, marks=pytest.mark.slow if (area, number) == ("caches", 24) else ())


@pytest.mark.parametrize(("area", "number"), list(shares()))
def test_share(area, number, monkeypatch):
    import jax

    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    outcomes = [attempt.check() for attempt in AREAS[area].attempts(0, number)]
    jax.config.update("jax_enable_x64", True)
    assert [outcome.what for outcome in outcomes if outcome.failed] == []


def _environment():
    source = str(BENCHMARKS.parent / "src")
    return {**os.environ, "PYTHONPATH": source, "JAX_PLATFORMS": "cpu"}
