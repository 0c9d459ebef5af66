"""Files that are written completely or not at all, and the folder of files kept between processes."""

import os
import stat
import tempfile
from pathlib import Path

UNFINISHED = ".part"


def replace_file(path: Path, content: str | bytes) -> None:
    """Write a file under a temporary name and move it into place, so that nobody ever reads a partial file."""
    unfinished = None
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=UNFINISHED, delete=False) as file:
            unfinished = Path(file.name)
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        if unfinished is not None:
            unfinished.unlink(missing_ok=True)
        raise


def cache_folder(package: str) -> Path:
    """The cache folder of a package: ``$<PACKAGE>_CACHE`` if set, otherwise the platform's folder for caches."""
    chosen = os.environ.get(f"{package.upper()}_CACHE")
    if chosen:
        return Path(chosen)
    try:
        from platformdirs import user_cache_path
    except ImportError:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / package
    return user_cache_path(package, appauthor=False)


def is_private(folder: Path) -> bool:
    """True if only this user or the administrator can have put anything into a folder."""
    if not hasattr(os, "getuid"):
        return True
    try:
        found = folder.stat()
    except OSError:
        return True
    return found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
