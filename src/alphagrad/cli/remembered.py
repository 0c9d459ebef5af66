"""Graphs of tasks on disk. Tracing a function needs JAX, and importing JAX takes longer than a short search."""

import hashlib
import os
import pickle
import sys
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import graphax
from graphax import ComputationGraph
from graphax.files import cache_folder, is_private, replace_file

from .. import tasks
from ..tasks.task import Task

_SOURCES = (graphax.__file__, tasks.__file__)


def graph_of_task(task: Task, simplify: bool) -> ComputationGraph:
    """The graph of a task, traced once per version of all code that it depends on.

    Only the process that traces a function knows its source lines.
    """
    folder, name = cache_folder("alphagrad") / "graphs", f"{task.name}{'-simplified' * simplify}"
    path = folder / f"{name}.{_stamp()}"
    # A damaged file may raise anything. The graph is traced again then.
    with suppress(Exception):
        if is_private(folder) and isinstance(found := pickle.loads(path.read_bytes()), ComputationGraph):
            return found
    graph = task.graph(simplify)
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if is_private(folder):
            for earlier in folder.glob(f"{name}.*"):
                earlier.unlink()
            replace_file(path, pickle.dumps(graph))
    return graph


def _stamp() -> str:
    """A hash of the code and the settings that a traced graph depends on."""
    settings = sorted(item for item in os.environ.items() if item[0].startswith("JAX_"))
    digest = hashlib.sha256(repr((version("jax"), sys.version_info, settings)).encode())
    for source in _SOURCES:
        for path in sorted(Path(str(source)).parent.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:24]
