"""Speeds of this machine: defaults, stored speeds, and damaged files."""

import json
from dataclasses import asdict, replace

import pytest

from graphax import estimates
from graphax.errors import GraphaxError
from graphax.speeds import Speeds, keep, speeds


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHAX_CACHE", str(tmp_path / "new"))
    speeds.cache_clear()
    yield tmp_path / "new"
    speeds.cache_clear()


def test_default_speeds_without_a_measurement():
    assert speeds() == Speeds()


def test_kept_speeds_are_those_of_estimates():
    before = estimates.kernel(1_000, 1_000)
    keep(replace(Speeds(), alone=4 * Speeds().alone))
    after = estimates.kernel(1_000, 1_000)
    assert after.run - Speeds().called == pytest.approx(4 * (before.run - Speeds().called))


@pytest.mark.parametrize(
    "content",
    ["", "[]", '{"machine": 1}', "{", '{"machine": "MACHINE", "speeds": {"called": "fast"}}', "null", '"text"'],
)
def test_damaged_files_are_ignored(folder, content):
    keep(Speeds())
    machine = json.loads((folder / "speeds.json").read_text())["machine"]
    (folder / "speeds.json").write_text(content.replace("MACHINE", machine))
    speeds.cache_clear()
    assert speeds() == Speeds()


def test_speeds_of_another_machine_do_not_count(folder):
    keep(replace(Speeds(), called=6e-6))
    assert speeds().called == 6e-6
    stored = json.loads((folder / "speeds.json").read_text())
    (folder / "speeds.json").write_text(json.dumps(stored | {"machine": "another"}))
    speeds.cache_clear()
    assert speeds() == Speeds()


def test_noise_is_bounded():
    wild = Speeds(float("nan"), float("inf"), -1.0, 1.0, 1e-30).bounded()
    for name, usual in asdict(Speeds()).items():
        assert usual / 8 <= asdict(wild)[name] <= usual * 8


def test_a_folder_that_cannot_be_written_to_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GRAPHAX_CACHE", str(tmp_path / "file"))
    with pytest.raises(GraphaxError, match=r"cannot be stored in .*GRAPHAX_CACHE"):
        keep(Speeds())
