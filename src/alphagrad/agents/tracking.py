"""Opt-in tracking of training runs by other tools, which are imported only if requested."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import SearchError

if TYPE_CHECKING:
    from .training import TrainingProgress

Log = Callable[[dict[str, float], int], None]


@contextmanager
def _tensorboard(folder: Path, config: dict[str, Any]) -> Iterator[Log]:
    from tensorboardX import SummaryWriter

    with SummaryWriter(str(folder / "tensorboard")) as writer:
        writer.add_text("config", repr(config))

        def log(values: dict[str, float], iteration: int) -> None:
            for name, value in values.items():
                writer.add_scalar(name, value, iteration)

        yield log


@contextmanager
def _wandb(folder: Path, config: dict[str, Any]) -> Iterator[Log]:
    import wandb

    # The same folder is the same run, so a resumed run is not tracked as two.
    with wandb.init(project="alphagrad", dir=str(folder), id=folder.name, resume="allow", config=config) as run:
        yield lambda values, iteration: run.log(values, step=iteration)


TRACKERS = {"tensorboard": (_tensorboard, "tensorboardX"), "wandb": (_wandb, "wandb")}


@contextmanager
def tracked(name: str | None, folder: Path, config: dict[str, Any]) -> Iterator[Callable[["TrainingProgress"], None]]:
    """A callback for ``alphagrad.train(progress=...)`` that forwards metrics to a tracker, if one is named."""
    if name is None:
        yield lambda now: None
        return
    if name not in TRACKERS:
        raise SearchError(f"unknown tracker {name!r}; choose one of: {', '.join(TRACKERS)}")
    tracker, package = TRACKERS[name]
    try:
        import_module(package)
    except ImportError:
        raise SearchError(f"tracking with {name} needs {package}; install it: pip install {package}") from None
    folder.mkdir(parents=True, exist_ok=True)
    with tracker(folder, config) as log:
        yield lambda now: log(dict(scalars(now)), now.iteration)


def scalars(now: "TrainingProgress") -> Iterator[tuple[str, float]]:
    """Yield the numbers to track, by name. Names of numbers per task end in the name of the task."""
    tasks = list(now.best)
    yield "games", float(now.games)
    yield "games_per_second", now.games_per_second
    for name, value in now.metrics.items():
        if isinstance(value, list):
            yield from ((f"{name}/{task}", number) for task, number in zip(tasks, value, strict=True))
        else:
            yield name, value
