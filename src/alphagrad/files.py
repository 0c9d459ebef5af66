"""Files that are there as a whole or not at all."""

import os
import tempfile
from pathlib import Path


def replace_file(path: Path, content: str) -> None:
    """Write a file under another name and move it into place, so that nobody ever reads half of it."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".part", delete=False, encoding="utf-8") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(file.name, path)
