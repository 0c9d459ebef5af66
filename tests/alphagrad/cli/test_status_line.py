"""Status lines of long work, if stderr is not a terminal."""

import json
import time

import pytest

from alphagrad.agents import training
from alphagrad.cli import status_line
from alphagrad.cli.status_line import StatusLine
from alphagrad.policy.training import course

from .commands import alphagrad

# The seconds that replace a minute in tests.
MINUTE = 0.02


@pytest.fixture(autouse=True)
def _short_minutes(monkeypatch):
    monkeypatch.setattr(status_line, "EVERY", MINUTE)


def test_lines_appear_without_news(capsys):
    with StatusLine() as line:
        line.show("compiling…")
        time.sleep(1.2)
    lines = capsys.readouterr().err.splitlines()
    assert 10 < len(lines) < 100
    assert (lines[0], lines[-1]) == ("compiling…", "compiling… (for 1 s)")


def test_nothing_comes_after_the_end(capsys):
    with StatusLine() as line:
        line.show("solving…")
    capsys.readouterr()
    time.sleep(5 * MINUTE)
    assert capsys.readouterr().err == ""


def test_news_wait_for_their_minute(monkeypatch, capsys):
    monkeypatch.setattr(status_line, "EVERY", 60.0)
    with StatusLine() as line:
        for number in range(3):
            line.show(f"iteration {number}")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("moving", [False, True])
def test_silence(moving, monkeypatch, capsys):
    if moving:
        monkeypatch.setenv("FORCE_COLOR", "1")
    with StatusLine(quiet=True) as line:
        line.say("compiling…")
        time.sleep(5 * MINUTE)
    assert capsys.readouterr() == ("", "")


SHORT = ("search", "RoeFlux_1d", "--budget", "0.3", "--no-record")
COMMANDS = {
    SHORT: "best ",
    # Long enough to work on a proof.
    ("search", "RoeFlux_1d", "--budget", "2.1", "--no-record"): "of 2.1 s",
    # A task without a proof on record, because a search with one ends at once.
    ("table", "random_g", "--budget", "0.2", "--counting", "raw"): "random_g, raw: best ",
    ("bench", "EnzymeReaction", "--batch", "2", "--repeat", "2", "--orders", "rev", "--peers", "none"): "compiling ",
    ("train", "ppo", "EnzymeReaction", "--iterations", "1"): "compiling an iteration",
}


def slow_training(trainer, *args, **options):
    trainer.fitting.announce("compiling an iteration…")
    time.sleep(5 * MINUTE)
    raise KeyboardInterrupt


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_commands_report_their_status(command, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(training.Trainer, "train", slow_training)
    told = alphagrad(*command)
    assert any(COMMANDS[command] in line for line in told.stderr.splitlines())


def test_commands_can_be_silent():
    assert alphagrad(*SHORT, "--quiet").stderr == ""


def test_data_are_apart_from_lines():
    told = alphagrad(*SHORT, "--json")
    assert "best " in told.stderr
    assert json.loads(told.stdout)


def test_training_the_policy_reports_its_status(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(course.Training, "_imitate", lambda self, network: time.sleep(5 * MINUTE))
    monkeypatch.setattr(course.Training, "_play", lambda self, network: self._announce("games: step 1 of 2…"))
    course.main(["--folder", str(tmp_path)])
    assert "working…" in capsys.readouterr().err
