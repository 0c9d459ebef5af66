"""Machine code on disk: one file per content, which begins with the hash of the rest.

The content of these files is executed. So the folder must belong to the user, and nobody else may write to it.
"""

import hashlib
import os
import time
import warnings
from contextlib import suppress
from pathlib import Path

from ..errors import GraphaxError
from ..files import UNFINISHED, cache_folder, is_private, replace_file

SIZE_VARIABLE = "GRAPHAX_CACHE_BYTES"
_SIZE = 512 << 20
_HASH_SIZE = hashlib.sha256().digest_size
_KERNEL = ".o"
# Unfinished files that are older than this are abandoned, because their writer is gone.
_ABANDONED_SECONDS = 3600
# The share of the maximum size that remains after pruning, so that the next file does not require pruning again.
_LEFT = 0.8


def kernel_folder() -> Path:
    return cache_folder("graphax") / "kernels"


def largest_size() -> int:
    """The maximum number of bytes in the folder."""
    given = os.environ.get(SIZE_VARIABLE, _SIZE)
    try:
        size = int(given)
    except ValueError:
        size = -1
    if size < 0:
        raise GraphaxError(
            f"{SIZE_VARIABLE} must be the number of bytes of kernels to keep on disk, 0 or more, but is {given!r}"
        )
    return size


def read(identity: str) -> bytes | None:
    """The content of a file; None if it does not exist, is damaged, or if others can write to the folder."""
    folder = kernel_folder()
    if not _is_ours(folder):
        return None
    path = folder / f"{identity}{_KERNEL}"
    try:
        # Reading from a pipe of this name would block forever.
        stored = path.read_bytes() if path.is_file() else b""
        # The least recently read files are pruned first, so reading a file updates its time.
        os.utime(path)
    except OSError:
        return None
    digest, content = stored[:_HASH_SIZE], stored[_HASH_SIZE:]
    return content if hashlib.sha256(content).digest() == digest else None


def write(identity: str, content: bytes) -> None:
    """Store a content. A finished file is moved into place, so that nobody reads a partial one."""
    folder, limit = kernel_folder(), largest_size()
    if len(content) + _HASH_SIZE > limit:
        return
    # A cache that cannot be written only costs time at the next start.
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not _is_ours(folder):
            return
        replace_file(folder / f"{identity}{_KERNEL}", hashlib.sha256(content).digest() + content)
        _prune(folder, len(content) + _HASH_SIZE, limit)


def _is_ours(folder: Path) -> bool:
    """Whether the folder `is_private`; warns once if it is not."""
    safe = is_private(folder)
    if not safe and folder not in _mentioned:
        _mentioned.add(folder)
        warnings.warn(
            f"graphax keeps no kernels in {folder}, because others can write to it: chmod go-w it, make it yours, or "
            f"set GRAPHAX_CACHE",
            stacklevel=2,
        )
    return safe


_mentioned: set[Path] = set()
# The size of each folder as far as this process knows, because checking every file after every write would take long.
_sizes: dict[Path, int] = {}


def _prune(folder: Path, added: int, limit: int) -> None:
    """Remove the least recently read files if the folder is too large, and abandoned files."""
    known = _sizes.get(folder)
    if known is not None and known + added <= limit:
        _sizes[folder] = known + added
        return
    kernels, now = [], time.time()
    for path in folder.iterdir():
        with suppress(OSError):
            found = path.stat()
            if path.suffix == UNFINISHED and now - found.st_mtime > _ABANDONED_SECONDS:
                path.unlink()
            elif path.suffix == _KERNEL:
                kernels.append((found.st_mtime, found.st_size, path))
    size = sum(length for _, length, _ in kernels)
    if size > limit:
        for _, length, path in sorted(kernels):
            if size <= _LEFT * limit:
                break
            with suppress(OSError):
                path.unlink()
                size -= length
    _sizes[folder] = size
