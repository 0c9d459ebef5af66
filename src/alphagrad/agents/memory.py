"""The memory that a compiled program needs, and the memory that is available."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import jax

# The files in which a control group reports its limit, its usage, and the part of its usage that is cached files, which
# can be dropped and read again: for version 2 of control groups, and for version 1.
GROUP_FILES = {
    "": ("memory.max", "memory.current", "inactive_file"),
    "memory": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


def needed(program: jax.stages.Compiled, devices: Sequence[jax.Device]) -> int | None:
    """The number of bytes that the program needs, according to the compiler; None if the compiler does not know.

    On CPUs, which share the memory of this machine, it is the sum over all local devices; otherwise it is per device.
    """
    sizes = program.memory_analysis()
    if sizes is None:
        return None
    results = sizes.output_size_in_bytes - sizes.alias_size_in_bytes
    each = sizes.argument_size_in_bytes + results + sizes.temp_size_in_bytes
    local = _local(devices)
    return each * len(local) if local[0].platform == "cpu" else each


def available(devices: Sequence[jax.Device]) -> int | None:
    """The number of bytes available to a program, or None if unknown.

    It is per device, or for this machine if the devices share its memory.
    """
    local = _local(devices)
    if local[0].platform == "cpu":
        return available_here()
    limits = [(device.memory_stats() or {}).get("bytes_limit") for device in local]
    return min((limit for limit in limits if limit is not None), default=None)


def available_here(root: Path = Path("/")) -> int | None:
    """The number of bytes available to this process: what is left of the machine and of its control groups.

    Only Linux reports this, in files under ``root``. The result is None elsewhere.
    """
    lines = _text(root / "proc/meminfo").splitlines()
    machine = [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    return min([*machine, *_left_in_groups(root)], default=None)


def _left_in_groups(root: Path) -> Iterator[int]:
    """Yield the memory left in the control groups of this process and in their parents, as far as they are limited."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controller, group = line.split(":", 2)
        if controller not in GROUP_FILES:
            continue
        limit_file, usage_file, cache = GROUP_FILES[controller]
        top = root / "sys/fs/cgroup" / controller
        place = top / group.strip("/")
        for folder in (place, *(parent for parent in place.parents if parent.is_relative_to(top))):
            limit, usage = _text(folder / limit_file).strip(), _text(folder / usage_file).strip()
            if limit.isdecimal() and usage.isdecimal():
                stats = dict(line.split(None, 1) for line in _text(folder / "memory.stat").splitlines())
                yield max(int(limit) - int(usage) + int(stats.get(cache, 0)), 0)


def _text(path: Path) -> str:
    """The content of a file; empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def _local(devices: Sequence[jax.Device]) -> list[jax.Device]:
    return [device for device in devices if device.process_index == jax.process_index()]
