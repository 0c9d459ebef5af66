"""How long a machine takes for a call, an equation, an element and an instruction.

`graphax.calibrate` measures these times. Without a measurement, they are those of a core of 2023.
"""

import json
import platform
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path

from .errors import GraphaxError
from .files import cache_folder, replace_file

# Measurements that differ from those of 2023 by more than this factor are treated as noise.
_FURTHEST = 8.0


@dataclass(frozen=True)
class Speeds:
    """Seconds that one core takes. The defaults are for vectors of 512 bits.

    Attributes:
        called: one call through JAX and back, independent of the function.
        started: one equation of small arrays, in XLA.
        moved: one element of an array, in XLA.
        alone: one kernel instruction for a single point.
        in_vector: one kernel instruction for one of many points.
    """

    called: float = 5e-6
    started: float = 50e-9
    moved: float = 0.1e-9
    alone: float = 0.15e-9
    in_vector: float = 0.02e-9

    def bounded(self) -> "Speeds":
        """The same speeds, clipped to a plausible range around the default ones."""
        found = asdict(self)

        def within(name: str, usual: float) -> float:
            # A comparison with NaN is false as well.
            return min(max(found[name], usual / _FURTHEST), usual * _FURTHEST) if found[name] > 0 else usual

        return Speeds(**{name: within(name, usual) for name, usual in asdict(Speeds()).items()})


@lru_cache(1)
def speeds() -> Speeds:
    """The speeds of this machine if it has been calibrated, otherwise the default ones."""
    try:
        stored = json.loads(_path().read_text(encoding="utf-8"))
        if stored["machine"] != _machine():
            return Speeds()
        return Speeds(**{field.name: float(stored["speeds"][field.name]) for field in fields(Speeds)}).bounded()
    except (OSError, ValueError, TypeError, KeyError):
        return Speeds()


def keep(found: Speeds) -> None:
    """Store speeds for this process and later ones."""
    path = _path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, json.dumps({"machine": _machine(), "speeds": asdict(found)}, indent=1) + "\n")
    except OSError as error:
        raise GraphaxError(
            f"speeds cannot be stored in {path.parent}: {error.strerror}. Set GRAPHAX_CACHE to another folder"
        ) from None
    speeds.cache_clear()


def _path() -> Path:
    return cache_folder("graphax") / "speeds.json"


def _machine() -> str:
    """A description of this machine, to tell its file from those of other machines that share the folder."""
    return f"{platform.node()} {platform.machine()} {platform.processor()}"
