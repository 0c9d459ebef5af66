"""Measuring this machine."""

import pytest

import graphax as gx
from graphax import calibration
from graphax.errors import NativeError
from graphax.speeds import Speeds, speeds


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHAX_CACHE", str(tmp_path))
    monkeypatch.setattr(calibration, "_ROUNDS", 2)
    monkeypatch.setattr(calibration, "_REPEATED", 2)
    speeds.cache_clear()
    yield tmp_path
    speeds.cache_clear()


def test_measurements_are_kept(folder):
    found = gx.calibrate()
    assert found == found.bounded() == speeds()
    speeds.cache_clear()
    assert speeds() == found
    assert (folder / "speeds.json").exists()


def test_without_kernels_their_speeds_are_the_defaults(monkeypatch):
    def none(*_):
        raise NativeError("llvmlite is not installed")

    monkeypatch.setattr(calibration, "kernel_of", none)
    found = gx.calibrate()
    assert (found.alone, found.in_vector) == (Speeds().alone, Speeds().in_vector)
