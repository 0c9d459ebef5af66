import os
import stat
import time

import pytest

from graphax import GraphaxError
from graphax.native import disk


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHAX_CACHE", str(tmp_path))
    monkeypatch.setattr(disk, "_sizes", {})
    monkeypatch.setattr(disk, "_mentioned", set())
    return tmp_path / "kernels"


def _files(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_what_was_written_is_read(folder):
    assert disk.read("a") is None
    disk.write("a", b"code")
    disk.write("b", b"other")
    assert (disk.read("a"), disk.read("b")) == (b"code", b"other")
    assert _files(folder) == ["a.o", "b.o"]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b"", lambda b: b[:-1] + b"?", lambda b: b"\0" * 40 + b])
def test_a_damaged_file_is_not_read(folder, damage):
    disk.write("a", b"code")
    path = folder / "a.o"
    path.write_bytes(damage(path.read_bytes()))
    assert disk.read("a") is None
    disk.write("a", b"code")
    assert disk.read("a") == b"code"


def test_nothing_is_lost_where_nothing_can_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("GRAPHAX_CACHE", str(tmp_path / "file"))
    disk.write("a", b"code")
    assert disk.read("a") is None


@pytest.mark.parametrize("error", [OSError("no space left"), KeyboardInterrupt()])
def test_a_failed_write_leaves_nothing_behind(folder, monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr(os, "replace", fail)
    if isinstance(error, OSError):
        disk.write("a", b"code")
    else:
        with pytest.raises(KeyboardInterrupt):
            disk.write("a", b"code")
    assert _files(folder) == []


@pytest.mark.parametrize("mode", [0o777, 0o720, 0o702])
def test_a_folder_that_others_can_write_to_is_not_used(folder, mode):
    disk.write("a", b"code")
    folder.chmod(mode)
    with pytest.warns(UserWarning, match="others can write to it: chmod go-w it, make it yours, or set GRAPHAX_CACHE"):
        assert disk.read("a") is None
    # The warning is given only once.
    disk.write("b", b"other")
    assert _files(folder) == ["a.o"]
    folder.chmod(0o700)
    assert disk.read("a") == b"code"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no users here")
def test_a_folder_of_somebody_else_is_not_used(folder, monkeypatch):
    disk.write("a", b"code")
    someone_else = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: someone_else)
    with pytest.warns(UserWarning, match="keeps no kernels in"):
        assert disk.read("a") is None


def test_the_folder_is_pruned_to_its_size(folder, monkeypatch):
    monkeypatch.setenv(disk.SIZE_VARIABLE, "1000")
    for number in range(40):
        disk.write(f"{number:02}", bytes(100))
        os.utime(folder / f"{number:02}.o", (number, number))
        if number:
            # This file is read repeatedly, so it is never among the oldest.
            assert disk.read("00") is not None
        assert sum(path.stat().st_size for path in folder.iterdir()) <= 1000
    assert "39.o" in _files(folder)
    assert "01.o" not in _files(folder)


def test_nothing_is_kept_without_room(folder, monkeypatch):
    monkeypatch.setenv(disk.SIZE_VARIABLE, "0")
    disk.write("a", b"code")
    assert _files(folder) == []


@pytest.mark.parametrize("given", ["much", "-1", ""])
def test_an_invalid_size_is_an_error(monkeypatch, given):
    monkeypatch.setenv(disk.SIZE_VARIABLE, given)
    with pytest.raises(GraphaxError, match="GRAPHAX_CACHE_BYTES must be the number of bytes"):
        disk.write("a", b"code")


def test_abandoned_files_are_removed(folder):
    disk.write("a", b"code")
    old, new = folder / "old.part", folder / "new.part"
    for path in (old, new):
        path.write_bytes(b"half")
    long_ago = time.time() - 2 * 3600
    os.utime(old, (long_ago, long_ago))
    disk._sizes.clear()
    disk.write("b", b"other")
    assert _files(folder) == ["a.o", "b.o", "new.part"]


def test_default_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("GRAPHAX_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert disk.kernel_folder() == tmp_path / "graphax" / "kernels"
