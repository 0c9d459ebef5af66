"""Machine code on disk: one file for each content, which begins with the hash of the rest.

What is read here is run. So the folder must belong to the user, and nobody else may write to it.
"""

import hashlib
import os
import stat
import time
import warnings
from contextlib import suppress
from pathlib import Path

from ..errors import GraphaxError
from ..files import UNFINISHED, cache_folder, replace_file

SIZE_VARIABLE = "GRAPHAX_CACHE_BYTES"
_SIZE = 512 << 20
_HASH_SIZE = hashlib.sha256().digest_size
_KERNEL = ".o"
# Files that are longer than this on their way will not arrive: whoever wrote them is gone.
_ABANDONED_SECONDS = 3600
# So much is left after pruning, that it is not done again at once.
_LEFT = 0.8


def kernel_folder() -> Path:
    return cache_folder("graphax") / "kernels"


def largest_size() -> int:
    """How many bytes the folder holds at most."""
    given = os.environ.get(SIZE_VARIABLE, _SIZE)
    try:
        size = int(given)
    except ValueError:
        size = -1
    if size < 0:
        raise GraphaxError(
            f"{SIZE_VARIABLE} is how many bytes of kernels are kept on disk, 0 or more, but is {given!r}"
        )
    return size


def read(identity: str) -> bytes | None:
    """The content of a file, or None if there is none, it is not what was written, or the folder is not ours alone."""
    folder = kernel_folder()
    if not _is_ours(folder):
        return None
    path = folder / f"{identity}{_KERNEL}"
    try:
        # Reading from a pipe of that name would wait for ever.
        stored = path.read_bytes() if path.is_file() else b""
        # The oldest are pruned first, and what is read is young.
        os.utime(path)
    except OSError:
        return None
    digest, content = stored[:_HASH_SIZE], stored[_HASH_SIZE:]
    return content if hashlib.sha256(content).digest() == digest else None


def write(identity: str, content: bytes) -> None:
    """Keep a content: a finished file is moved into place, so that nobody reads half of one."""
    folder, limit = kernel_folder(), largest_size()
    if len(content) + _HASH_SIZE > limit:
        return
    # A cache that cannot be written to costs time at the next start and nothing else.
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not _is_ours(folder):
            return
        replace_file(folder / f"{identity}{_KERNEL}", hashlib.sha256(content).digest() + content)
        _prune(folder, len(content) + _HASH_SIZE, limit)


def _is_ours(folder: Path) -> bool:
    """True if nobody but this user, or the system's administrator, can have put anything into a folder."""
    if not hasattr(os, "getuid"):
        return True
    try:
        found = folder.stat()
    except OSError:
        return True
    safe = found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if not safe and folder not in _mentioned:
        _mentioned.add(folder)
        warnings.warn(
            f"graphax keeps no kernels in {folder}, because others can write to it: chmod go-w it, make it yours, or "
            f"set GRAPHAX_CACHE",
            stacklevel=2,
        )
    return safe


_mentioned: set[Path] = set()
# How large each folder is, as far as this process knows: looking at every file after every write would take long.
_sizes: dict[Path, int] = {}


def _prune(folder: Path, added: int, limit: int) -> None:
    """Remove the files that were not read for longest, if there are more bytes than may be, and abandoned ones."""
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
