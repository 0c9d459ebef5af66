"""Checkpoints of a training run, written by orbax. The last two are kept, each with a digest of its content."""

import hashlib
import os
import warnings
from itertools import count
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp
from jax.experimental.multihost_utils import sync_global_devices

KEPT = 2


class CheckpointWarning(UserWarning):
    """A checkpoint could not be read; an earlier one is used."""


class Checkpoints:
    """The checkpoints in a folder: pytrees of arrays, numbered by iteration, with notes that are plain data."""

    def __init__(self, folder: Path):
        self._folder = folder.absolute()
        self._manager = self._opened()

    def _opened(self) -> ocp.CheckpointManager:
        options = ocp.CheckpointManagerOptions(max_to_keep=KEPT, enable_async_checkpointing=False)
        return ocp.CheckpointManager(self._folder, options=options)

    def save(self, iteration: int, state: Any, notes: dict[str, Any]) -> None:
        about = {"digest": digest_of(state), "notes": notes}
        content = ocp.args.Composite(state=ocp.args.StandardSave(_flat(state)), about=ocp.args.JsonSave(about))
        self._manager.save(iteration, args=content)

    def latest(self, like: Any) -> tuple[Any, dict[str, Any]] | None:
        """The newest intact state and its notes, or None. ``like`` has the expected shapes and shardings."""
        for iteration in sorted(self._manager.all_steps(), reverse=True):
            try:
                return self._read(iteration, like)
            # Orbax and the formats below it may raise anything on damaged files.
            except Exception as error:  # noqa: BLE001
                self._set_aside(iteration, error)
        return None

    def _read(self, iteration: int, like: Any) -> tuple[Any, dict[str, Any]]:
        wanted = {
            name: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding)
            for name, leaf in _flat(like).items()
        }
        content = ocp.args.Composite(state=ocp.args.StandardRestore(wanted), about=ocp.args.JsonRestore())
        found = self._manager.restore(iteration, args=content)
        leaves = [found["state"][name] for name in wanted]
        state = jax.tree.unflatten(jax.tree.structure(like), leaves)
        if digest_of(state) != found["about"]["digest"]:
            raise ValueError("its content is not what was written")
        return state, found["about"]["notes"]

    def _set_aside(self, iteration: int, error: Exception) -> None:
        """Move a checkpoint away, so that another can be written in its place."""
        self._manager.close()
        aside = self._folder.with_name(f"{self._folder.name}-damaged")
        place = next(aside / f"{iteration}-{n}" for n in count() if not (aside / f"{iteration}-{n}").exists())
        sync_global_devices("all processes know where to")
        if jax.process_index() == 0:
            aside.mkdir(exist_ok=True)
            os.replace(self._folder / str(iteration), place)
        sync_global_devices("the checkpoint is away")
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        warnings.warn(
            f"the checkpoint of iteration {iteration} is damaged ({reason}); it was moved to {place}, and the one "
            f"before it is used.",
            CheckpointWarning,
            stacklevel=4,
        )
        self._manager = self._opened()

    def close(self) -> None:
        self._manager.close()


def _flat(state: Any) -> dict[str, Any]:
    return {f"{number:05}": leaf for number, leaf in enumerate(jax.tree.leaves(state))}


def digest_of(state: Any) -> str:
    """A hash of the arrays in a pytree."""
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves(state):
        digest.update(np.ascontiguousarray(leaf).tobytes())
    return digest.hexdigest()
