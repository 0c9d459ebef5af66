"""The areas of the adversary, and the settings of each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module

from .attempt import Attempt

FOUR_DEVICES = "--xla_force_host_platform_device_count=4"
# Programs that run once: compiling fast matters, running fast does not.
QUICK = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"


@dataclass(frozen=True)
class Area:
    """A module with ``attempts(seed, number)``.

    Attributes:
        share: the share of the time, relative to the shares of other areas.
        patience: the seconds without news from a worker after which it counts as hanging.
        chunk: the number of attempts before a worker is replaced, since compiled programs fill its memory.
        flags: flags for XLA.
    """

    name: str
    share: float = 1.0
    patience: float = 120.0
    chunk: int = 300
    flags: str = QUICK

    def attempts(self, seed: int, number: int) -> Sequence[Attempt]:
        """The attempts with this number, which depend only on the seed and the number."""
        make: Callable[[int, int], Sequence[Attempt]] = import_module(f".{self.name}", __package__).attempts
        return make(seed, number)


AREAS = {
    area.name: area
    for area in (
        Area("special_values", 2.0, chunk=120, flags=""),
        Area("random_programs", 2.0),
        Area("structures_and_orders", 1.5),
        Area("transformations", 1.5, flags=f"{QUICK} {FOUR_DEVICES}"),
        Area("control_flow", 1.5, chunk=150),
        # At optimisation level 0, XLA sometimes miscompiles arithmetic in single precision.
        Area("long_code", 1.5, chunk=150, flags=""),
        Area("precision", 1.0, flags=""),
        Area("threads", 0.7, patience=300.0, chunk=60),
        Area("caches", 0.7, patience=300.0, chunk=60),
        Area("searches", 0.7, chunk=1000),
        Area("commands", 0.7, patience=300.0, chunk=2),
    )
}
