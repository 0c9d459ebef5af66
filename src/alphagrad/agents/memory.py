"""How much memory a compiled program takes, and how much there is for it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import jax

# Where a control group says what it may have, what it has, and what of that are files that can be read again: the
# second version of control groups, and the first.
GROUP_FILES = {
    "": ("memory.max", "memory.current", "inactive_file"),
    "memory": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


def needed(program: jax.stages.Compiled, devices: Sequence[jax.Device]) -> int | None:
    """Bytes that the program takes, by the compiler's own account: on each device, or on all that share the memory of
    this machine. None if the compiler does not say."""
    sizes = program.memory_analysis()
    if sizes is None:
        return None
    results = sizes.output_size_in_bytes - sizes.alias_size_in_bytes
    each = sizes.argument_size_in_bytes + results + sizes.temp_size_in_bytes
    local = _local(devices)
    return each * len(local) if local[0].platform == "cpu" else each


def available(devices: Sequence[jax.Device]) -> int | None:
    """Bytes that a program can have on each of these devices, or on this machine if they share its memory. None if
    nobody knows."""
    local = _local(devices)
    if local[0].platform == "cpu":
        return available_here()
    limits = [(device.memory_stats() or {}).get("bytes_limit") for device in local]
    return min((limit for limit in limits if limit is not None), default=None)


def available_here(root: Path = Path("/")) -> int | None:
    """Bytes that this process can have: what the machine has left, or the control groups leave of it.

    Only Linux tells, in files under ``root``.
    """
    lines = _text(root / "proc/meminfo").splitlines()
    machine = [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    return min([*machine, *_left_in_groups(root)], default=None)


def _left_in_groups(root: Path) -> Iterator[int]:
    """What this process's control groups, and those that they are in, have left if they are limited."""
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
    """What a file says; nothing if there is none that can be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def _local(devices: Sequence[jax.Device]) -> list[jax.Device]:
    return [device for device in devices if device.process_index == jax.process_index()]
