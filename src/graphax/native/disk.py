"""Machine code on disk: one file for each content, which begins with the hash of the rest."""

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

CACHE_VARIABLE = "GRAPHAX_CACHE"
_HASH_SIZE = hashlib.sha256().digest_size


def cache_folder() -> Path:
    """Where kernels are kept: under $GRAPHAX_CACHE, or in the platform's folder for caches."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen) / "kernels"
    try:
        from platformdirs import user_cache_path
    except ImportError:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "graphax" / "kernels"
    return user_cache_path("graphax", appauthor=False) / "kernels"


def remembered(identity: str, make: Callable[[], bytes]) -> bytes:
    """What ``make`` returns, or returned for the same identity in an earlier process."""
    path = cache_folder() / f"{hashlib.sha256(identity.encode()).hexdigest()}.o"
    content = _read(path)
    if content is None:
        content = make()
        _write(path, content)
    return content


def _read(path: Path) -> bytes | None:
    """The content of a file, or None if there is none or it is not what was written."""
    try:
        stored = path.read_bytes()
    except OSError:
        return None
    digest, content = stored[:_HASH_SIZE], stored[_HASH_SIZE:]
    return content if hashlib.sha256(content).digest() == digest else None


def _write(path: Path, content: bytes) -> None:
    """Move a finished file into place, so that nobody reads half of one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as file:
            file.write(hashlib.sha256(content).digest() + content)
        os.replace(file.name, path)
    except OSError:
        # A cache that cannot be written to costs time at the next start and nothing else.
        return
