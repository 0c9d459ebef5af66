"""Shards of a long benchmark: a step that hangs or dies is blamed once, and the rest continues."""

import sys
from pathlib import Path

import pytest
import shards
from shards import Supervisor, note, noted, share

# Each case of this shard is a file that says what to do. A missing file is a finished case.
SHARD = """
import os, sys, time
from pathlib import Path
sys.path.insert(0, {benchmarks!r})
from shards import note
notes, cases = Path(sys.argv[1]), Path(sys.argv[2])
for case in sorted(cases.iterdir()):
    note(notes, case.name, "way")
    what = case.read_text()
    if what == "hang":
        time.sleep(600)
    if what == "die":
        os._exit(3)
    case.unlink()
"""


@pytest.fixture
def supervisor(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "INTERVAL", 0.05)
    cases, notes, blames = tmp_path / "cases", tmp_path / "notes", []
    cases.mkdir()
    notes.mkdir()
    code = SHARD.format(benchmarks=str(Path(shards.__file__).parent))

    def blamed(step, reason):
        blames.append((step.case, step.way, reason))
        (cases / step.case).unlink()

    def command(number, path):
        return [sys.executable, "-c", code, str(path), str(cases)]

    return Supervisor(command, notes, 1.0, blamed, lambda _: None), cases, blames


def test_what_hangs_or_dies_is_blamed_and_the_rest_is_done(supervisor):
    runner, cases, blames = supervisor
    for name, what in (("a", "ok"), ("b", "hang"), ("c", "die"), ("d", "ok")):
        (cases / name).write_text(what)
    assert runner.run(1)
    assert blames == [("b", "way", "longer than 1 s"), ("c", "way", "the process died")]
    assert not list(cases.iterdir())


def test_a_run_that_is_stopped_blames_nothing(supervisor):
    runner, cases, blames = supervisor
    (cases / "a").write_text("hang")
    assert not runner.run(1, seconds=0.5)
    assert not blames
    assert list(cases.iterdir())


def test_a_shard_that_dies_at_once_is_not_started_forever(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "INTERVAL", 0.05)
    command = [sys.executable, "-c", "raise SystemExit(1)"]
    runner = Supervisor(lambda *_: command, tmp_path, 1.0, lambda *_: None, lambda _: None)
    with pytest.raises(SystemExit, match="before its first case"):
        runner.run(1)


def test_notes_are_read_as_they_were_written(tmp_path):
    path = tmp_path / "note.json"
    assert noted(path) is None
    note(path, "A Jacobian", "jacfwd")
    step = noted(path)
    assert (step.case, step.way) == ("A Jacobian", "jacfwd")


@pytest.mark.parametrize(
    ("cores", "shards", "expected"),
    [
        (range(16), 4, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]),
        ([2, 5, 7], 2, [[2], [5]]),
        ([0, 1], 3, [[0], [1], [0]]),
    ],
)
def test_shards_have_cores_of_their_own(cores, shards, expected):
    assert [list(share(cores, shard, shards)) for shard in range(shards)] == expected
