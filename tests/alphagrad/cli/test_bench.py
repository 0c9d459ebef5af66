import json
import os
import subprocess
import sys

import pytest

from alphagrad.bench import measure, promises
from alphagrad.cli import status_line

from .commands import OWN_MODULE, alphagrad

SMALL = ("EnzymeReaction", "--batch", "2", "--repeat", "2", "--seconds", "1")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def bench(*arguments, **options):
    return alphagrad("bench", *arguments, **options)


def test_tables(tmp_path):
    before = os.environ.get("GRAPHAX_CACHE")
    result = bench(*SMALL, "--orders", "rev,best", "--backend", "native,xla", "--peers", "none")
    assert result.exit_code == 0, (result.stderr, result.exception)
    for word in ("floor", "jacfwd", "jacrev", "rev/native", "rev/xla", "than JAX", "of floor", "97.5 %", "compile s"):
        assert word in result.stdout
    assert "best/native: no order is on record; alphagrad search EnzymeReaction finds one" in result.stdout
    assert "EnzymeReaction, batch 2, float32" in result.stdout
    assert os.environ.get("GRAPHAX_CACHE") == before


def test_json_and_files(tmp_path):
    pytest.importorskip("matplotlib")
    result = bench(
        "EnzymeReaction", "SABR", "--batch", "1,2", "--repeat", "2", "--orders", "rev", "--peers", "asdex", "--dtype",
        "float64", "--json", "--save", "b.json", "--plot", "b.png",
    )  # fmt: skip
    assert result.exit_code == 0, (result.stderr, result.exception)
    document = json.loads(result.stdout)
    assert document == json.loads((tmp_path / "b.json").read_text())
    assert document["machine"]["versions"]["python"]
    assert document["command"].startswith("alphagrad bench EnzymeReaction SABR --batch=1,2 --backend=auto --orders=rev")
    assert {(row["task"], row["batch"]) for row in document["measurements"]} == {
        (task, batch) for task in ("EnzymeReaction", "SABR") for batch in (1, 2)
    }
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")


def test_progress_and_silence(monkeypatch):
    monkeypatch.setattr(status_line, "EVERY", 0.0)
    few = (*SMALL, "--orders", "rev", "--peers", "none")
    assert "EnzymeReaction, batch 2, float32: compiling jacfwd" in bench(*few).stderr
    assert bench(*few, "--quiet").stderr == ""


def test_ctrl_c_prints_the_results_so_far(monkeypatch):
    def interrupted(calls, seconds, repeat, limit, tick):
        for name in calls:
            seconds[name].append(1e-3)
        raise KeyboardInterrupt

    monkeypatch.setattr(measure, "take_turns", interrupted)
    result = bench(*SMALL, "--orders", "rev", "--peers", "none")
    assert result.exit_code == 130
    assert result.stderr == "alphagrad: interrupted; nothing was saved\n"
    assert "1.000" in result.stdout
    assert "Interrupted; these are the measurements so far." in result.stdout


def test_ctrl_c_while_errors_are_computed(monkeypatch):
    def interrupted(case):
        raise KeyboardInterrupt

    monkeypatch.setattr(measure, "exact_entries", interrupted)
    result = bench(*SMALL, "--batch", "2,3", "--orders", "rev", "--peers", "none")
    assert result.exit_code == 130
    assert "batch 3" not in result.stdout


def test_an_interrupted_run_continues(monkeypatch, tmp_path):
    command = ("EnzymeReaction", "--batch", "1,2,3", "--repeat", "2", "--orders", "rev", "--peers", "none")
    usual, batches = measure.take_turns, []

    def measured_until(limit):
        def take_turns(*arguments):
            batches.append(len(batches))
            if len(batches) == limit:
                raise KeyboardInterrupt
            usual(*arguments)

        batches.clear()
        monkeypatch.setattr(measure, "take_turns", take_turns)

    measured_until(3)
    stopped = bench(*command, "--save", "b.json", "--quiet")
    assert stopped.exit_code == 130
    assert stopped.stderr == (
        "alphagrad: interrupted; completed cases are in b.json, and the same command resumes the run\n"
    )
    kept = json.loads((tmp_path / "b.json").read_text())
    assert kept["interrupted"]
    assert {row["batch"] for row in kept["measurements"]} == {1, 2}
    measured_until(None)
    other = bench(*command, "--seconds", "3", "--save", "other.json")
    assert (len(batches), other.stderr) == (3, "")
    measured_until(None)
    again = bench(*command, "--save", "b.json")
    assert again.stderr == "b.json was left unfinished; its 2 cases are not measured again\n"
    assert len(batches) == 1
    found = json.loads((tmp_path / "b.json").read_text())
    assert not found["interrupted"]
    assert found["measurements"][: len(kept["measurements"])] == kept["measurements"]
    assert {row["batch"] for row in found["measurements"]} == {1, 2, 3}
    measured_until(None)
    assert bench(*command, "--save", "b.json").exit_code == 0
    assert len(batches) == 3


@pytest.mark.parametrize(("kept", "code"), [(True, 0), (False, 1)])
def test_checks(monkeypatch, kept, code):
    from alphagrad.bench.case import Case
    from alphagrad.tasks import UNSEEN

    task = UNSEEN["EnzymeReaction"]
    finding = promises.Finding(Case(task, 2), "auto/auto", 1.0, "≤ 1.05 × JAX", kept, "")
    monkeypatch.setattr(promises, "check", lambda *_: [finding])
    result = bench("EnzymeReaction", "--check", "regressions")
    assert result.exit_code == code
    assert ("The promise holds: 1 of 1 kept." in result.stdout) is kept
    found = json.loads(bench("EnzymeReaction", "--check", "regressions", "--json").stdout)
    assert found["findings"][0]["kept"] is kept


def test_one_thread():
    """XLA reads its limit when it starts, so this needs a separate process."""
    script = (
        "import sys; from alphagrad.cli import bench as b; b._limit_threads(1)\n"
        "import graphax.native as n; print(n.set_threads(5)); b._limit_threads(2); print(n.set_threads(5))"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["1", "2"]


def test_a_function_of_the_users(tmp_path, monkeypatch):
    monkeypatch.setenv("ALPHAGRAD_CACHE", str(tmp_path / "cache"))
    (tmp_path / "benched.py").write_text(OWN_MODULE)
    command = ("benched:f", "--args", "benched:make_args", "--batch", "1,2", "--repeat", "2", "--budget", "0.1")
    result = bench(*command, "--orders", "auto,best", "--save", "b.json", "--json")
    assert result.exit_code == 0, (result.stderr, result.exception)
    document = json.loads(result.stdout)
    assert {row["task"] for row in document["measurements"]} == {"benched:f"}
    assert {row["batch"] for row in document["measurements"]} == {1, 2}
    assert all("gx.jacve(f" in sentence for sentence in document["advice"])
    assert "--args=benched:make_args" in document["command"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("benched:f", "--figures"), "--figures, --scale and --check are for tasks"),
        (("EnzymeReaction", "--args", "benched:make_args"), "--args and --argnums are only for your own functions"),
    ],
)
def test_options_of_tasks_and_of_functions(arguments, message):
    result = bench(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
