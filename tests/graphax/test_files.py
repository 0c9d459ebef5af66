"""Files are replaced as a whole, and environment variables select the cache folder."""

import os
from pathlib import Path

import pytest

from graphax.files import UNFINISHED, cache_folder, replace_file


@pytest.mark.parametrize("content", ["text with ü\n", b"\x00\xffbytes"])
def test_a_file_is_replaced(tmp_path, content):
    path = tmp_path / "file"
    path.write_text("before")
    replace_file(path, content)
    assert path.read_bytes() == (content.encode() if isinstance(content, str) else content)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_what_fails_leaves_the_file_as_it_was(tmp_path, monkeypatch, error):
    path = tmp_path / "file"
    path.write_text("before")

    def fail(*_):
        raise error

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(error):
        replace_file(path, "after")
    assert path.read_text() == "before"
    assert not list(tmp_path.glob(f"*{UNFINISHED}"))


@pytest.mark.parametrize("package", ["graphax", "alphagrad"])
def test_caches_are_chosen_by_the_environment(package, tmp_path, monkeypatch):
    monkeypatch.setenv(f"{package.upper()}_CACHE", str(tmp_path))
    assert cache_folder(package) == tmp_path
    monkeypatch.delenv(f"{package.upper()}_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder(package) == Path(tmp_path / "xdg" / package)
