import signal

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """No test reads or writes the user's records."""
    monkeypatch.setenv("ALPHAGRAD_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def interruptible():
    """Handle interrupts as usual, here and in new processes, even if a shell started the tests ignoring them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
