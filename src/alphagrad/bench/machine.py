"""The machine of a benchmark: the processor, and the versions that times depend on."""

import os
import platform
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

# As in graphax.native.disk, which takes too long to import for the help.
CACHE_VARIABLE = "GRAPHAX_CACHE"
PACKAGES = ("jax", "jaxlib", "numpy", "llvmlite", "casadi", "asdex", "graphax-alphagrad")


@dataclass(frozen=True)
class Machine:
    """The machine. ``threads`` is None if their number is not limited; versions are those of installed packages."""

    processor: str
    cores: int
    platform: str
    devices: tuple[str, ...]
    threads: int | None
    versions: dict[str, str]

    @staticmethod
    def here(threads: int | None = None) -> "Machine":
        import jax

        return Machine(
            _processor(),
            _cores(),
            platform.platform(),
            tuple(device.device_kind for device in jax.devices()),
            threads,
            {"python": platform.python_version(), **_versions()},
        )

    def __str__(self):
        limit = "" if self.threads is None else f", at most {self.threads} threads"
        versions = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        return f"{self.cores} cores of {self.processor}{limit}, on {', '.join(self.devices)}; {versions}"


@contextmanager
def empty_kernel_cache() -> Iterator[None]:
    """A temporary kernel cache for this run, because kernels cached by earlier runs would hide compile times."""
    usual = os.environ.get(CACHE_VARIABLE)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[CACHE_VARIABLE] = folder
        try:
            yield
        finally:
            del os.environ[CACHE_VARIABLE]
            os.environ.update({} if usual is None else {CACHE_VARIABLE: usual})


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor() -> str:
    """The model of the processor, which Linux has in a file and Python knows on some other systems."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
