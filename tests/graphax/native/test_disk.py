import pytest

from graphax.native import disk


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(disk.CACHE_VARIABLE, str(tmp_path))
    return tmp_path


def _make(calls, content=b"code"):
    def make():
        calls.append(1)
        return content

    return make


def test_made_once(folder):
    calls = []
    assert [disk.remembered("a", _make(calls)) for _ in range(3)] == [b"code"] * 3
    assert len(calls) == 1
    assert disk.remembered("b", _make(calls, b"other")) == b"other"
    assert sorted(path.suffix for path in folder.rglob("*") if path.is_file()) == [".o", ".o"]


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b"", lambda b: b[:-1] + b"?", lambda b: b"\0" * 40 + b])
def test_a_damaged_file_is_made_again(folder, damage):
    calls = []
    disk.remembered("a", _make(calls))
    (path,) = [path for path in folder.rglob("*") if path.is_file()]
    path.write_bytes(damage(path.read_bytes()))
    assert disk.remembered("a", _make(calls)) == b"code"
    assert disk.remembered("a", _make(calls)) == b"code"
    assert len(calls) == 2


def test_nothing_is_lost_where_nothing_can_be_written(folder, monkeypatch):
    (folder / "file").write_text("in the way")
    monkeypatch.setenv(disk.CACHE_VARIABLE, str(folder / "file"))
    assert disk.remembered("a", _make([])) == b"code"


def test_default_folder(monkeypatch, tmp_path):
    monkeypatch.delenv(disk.CACHE_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert disk.cache_folder() == tmp_path / "graphax" / "kernels"
