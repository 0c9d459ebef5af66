import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from alphagrad import status_line
from alphagrad.bench import measure, promises
from alphagrad.cli import app

SMALL = ("EnzymeReaction", "--batch", "2", "--repeat", "2", "--seconds", "1")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def alphagrad(*arguments, **options):
    return CliRunner().invoke(app, ["bench", *arguments], prog_name="alphagrad", **options)


def test_tables(tmp_path):
    before = os.environ.get("GRAPHAX_CACHE")
    result = alphagrad(*SMALL, "--orders", "rev,best", "--backend", "native,xla", "--peers", "none")
    assert result.exit_code == 0, (result.stderr, result.exception)
    for word in ("floor", "jacfwd", "jacrev", "rev/native", "rev/xla", "than JAX", "of floor", "97.5 %", "compile s"):
        assert word in result.stdout
    assert "best/native: no order is on record; alphagrad search EnzymeReaction finds one" in result.stdout
    assert "EnzymeReaction, batch 2, float32" in result.stdout
    assert os.environ.get("GRAPHAX_CACHE") == before


def test_json_and_files(tmp_path):
    pytest.importorskip("matplotlib")
    result = alphagrad(
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
    assert "EnzymeReaction, batch 2, float32: compiling jacfwd" in alphagrad(*few).stderr
    assert alphagrad(*few, "--quiet").stderr == ""


def test_ctrl_c_prints_what_is_there(monkeypatch):
    def interrupted(calls, seconds, repeat, limit, tick):
        for name in calls:
            seconds[name].append(1e-3)
        raise KeyboardInterrupt

    monkeypatch.setattr(measure, "take_turns", interrupted)
    result = alphagrad(*SMALL, "--orders", "rev", "--peers", "none")
    assert result.exit_code == 0
    assert "1.000" in result.stdout
    assert "Interrupted; this is what there was." in result.stdout


@pytest.mark.parametrize(("kept", "code"), [(True, 0), (False, 1)])
def test_checks(monkeypatch, kept, code):
    from alphagrad.bench.case import Case
    from alphagrad.tasks import UNSEEN

    task = UNSEEN["EnzymeReaction"]
    finding = promises.Finding(Case(task, 2), "auto/auto", 1.0, "≤ 1.05 × JAX", kept, "")
    monkeypatch.setattr(promises, "check", lambda *_: [finding])
    result = alphagrad("EnzymeReaction", "--check", "regressions")
    assert result.exit_code == code
    assert ("The promise holds: 1 of 1 kept." in result.stdout) is kept
    found = json.loads(alphagrad("EnzymeReaction", "--check", "regressions", "--json").stdout)
    assert found["findings"][0]["kept"] is kept


def test_one_thread():
    """XLA reads its limit when it starts, so this needs a process of its own."""
    script = (
        "import sys; from alphagrad import bench_command as b; b._limit_threads(1)\n"
        "import graphax.native as n; print(n.set_threads(5)); b._limit_threads(2); print(n.set_threads(5))"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["1", "2"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Nothing"], "Nothing"),
        (["--batch", "0"], "--batch 0: give whole numbers of at least 1, such as --batch 1,512"),
        (["--batch", "many"], "--batch many: give whole numbers"),
        (["--batch", ","], "give whole numbers"),
        (["MLP", "--scale", "1.5"], "--scale 1.5: give whole numbers"),
        (["RoeFlux_1d", "--scale", "16"], "RoeFlux_1d has no sizes to multiply"),
        (["--backend", "cuda"], "unknown backend 'cuda'; it is one of: auto, native, xla"),
        (["--orders", "quick"], "unknown order 'quick'; it is one of: "),
        (["--orders", "no.json"], "there is no order file 'no.json'"),
        (["--peers", "tapenade"], "unknown peer 'tapenade'"),
        (["--dtype", "float16"], "float16"),
        (["--repeat", "0"], "--repeat 0: it must be more than zero"),
        (["--seconds", "inf"], "--seconds inf: it must be more than zero"),
        (["--threads", "-1"], "--threads -1: it must be more than zero"),
        (["--check", "speed"], "speed"),
        (["--check", "accuracy", "--batch", "2"], "--check has batches and sizes of its own"),
        (["--figures", "--batch", "2"], "--figures has batches and sizes of its own"),
        (["--save", "b.txt"], "--save b.txt: give it a name that ends in .json"),
        (["--save", "no/b.json"], "there is no folder no; make it, or name another"),
        (["--plot", "b.doc"], "--plot b.doc: give it a name that ends in .png or .svg or .pdf"),
    ],
)
def test_bad_input_is_answered_in_one_line(arguments, message):
    result = alphagrad(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("alphagrad: ")
    assert message in result.stderr


def test_help_comes_without_jax():
    script = (
        "import sys; sys.argv = ['alphagrad', 'bench', '--help']; from alphagrad.__main__ import main\n"
        "try: main()\n"
        "finally: print(sorted({'jax', 'numba', 'numpy'} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "--batch" in answer.stdout
    assert answer.stdout.endswith("[]\n")
