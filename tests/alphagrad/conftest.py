import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """No test reads or writes the user's records."""
    monkeypatch.setenv("ALPHAGRAD_CACHE", str(tmp_path / "cache"))
