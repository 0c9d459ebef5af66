"""Kernels in this process: each has an entry that XLA calls, and is dropped when nothing needs it.

A `Loaded` represents the need for a kernel: JAX keeps it as long as the compiled program. Any thread may note the end
of a `Loaded`, and the kernel is dropped when one of the next kernels is loaded. XLA may still hold an executable that
JAX has forgotten. If it runs, the kernel is recalled from its file, and stays.
"""

import ctypes
import hashlib
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax

from .. import _jax
from . import disk, host
from .cuda import GPU
from .handler import DROP, ENTRIES, RECALL, SLOTS, Slot, handler_code
from .machine import Machine


@dataclass(frozen=True)
class Calling:
    """How a kernel is called.

    Attributes:
        inputs, outputs: the number of arrays.
        portion: on a CPU, the number of points that a thread takes at a time; on a GPU, the bytes that a warp shares.
        batched: whether there are several points.
        points: the number of points per GPU thread.
        threads: the number of GPU threads per point that take steps of a loop.
        portions: the number of GPU warps that share the points of a warp.
    """

    inputs: int
    outputs: int
    portion: int
    batched: bool
    points: int = 1
    threads: int = 1
    portions: int = 1


class Loaded:
    """A kernel, by the name of its entry among XLA's targets. The kernel stays as long as this object."""

    def __init__(self, name: str):
        self.name = name


class _Entry:
    """A function for XLA to call, with its slot and the kernel in it, if there is one now."""

    def __init__(self, name: str, identity: str, slot: Slot, address: int):
        self.name, self.identity, self.slot, self.address = name, identity, slot, address
        self.known_to_xla = False
        self.kernel: Any = None
        self.needed_by: Callable[[], Loaded | None] = lambda: None


# An entry takes a millisecond to compile, and most processes need a few.
_FIRST_PAGE, _LARGEST_PAGE = 8, 128


class _Page:
    """A block of entries that are empty at first."""

    def __init__(self, machine: Machine, recall: Any, size: int) -> None:
        self.slots = (Slot * size)()
        given = {SLOTS: ctypes.addressof(self.slots), RECALL: ctypes.cast(recall, ctypes.c_void_p).value or 0}
        given |= machine.given()
        code = handler_code(machine.handler, size)

        def linked(content: bytes) -> Any:
            return host.link(content, (ENTRIES, DROP), given)

        self.library = _opened(_identity(host.CPU, code), lambda: host.CPU.compiled(code), linked)
        self.addresses = list((ctypes.c_void_p * size).from_address(self.library[ENTRIES]))
        self.drop = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(self.library[DROP])
        self.used = 0


class Registry:
    """All entries of the process for one machine, under one lock.

    Kernels that nothing needs are dropped when there are more than ``spare`` of them.
    """

    def __init__(self, machine: Machine, spare: int = 0) -> None:
        self.machine, self.spare = machine, spare
        self.lock = threading.RLock()
        self.entries: dict[str, _Entry] = {}
        self.pages: list[_Page] = []
        self.by_slot: dict[int, _Entry] = {}
        self.unneeded: deque[str] = deque()
        # An entry without its kernel calls this from a thread of XLA. It returns 0 if the kernel is there now.
        self._recalled = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(self._recall)

    def load(self, code: str, calling: Calling) -> Loaded:
        """The kernel of this code, compiled and loaded if necessary."""
        name = f"graphax_{hashlib.sha256(repr((code, calling)).encode()).hexdigest()[:32]}"
        with self.lock:
            if len(self.unneeded) > self.spare:
                self.drop_unneeded()
            entry = self.entries.get(name) or self._new_entry(name, _identity(self.machine, code), calling)
            if entry.kernel is None:
                self._fill(entry, lambda: self.machine.compiled(code))
            if not entry.known_to_xla:
                # An interrupt may come in between, but registering twice does no harm.
                jax.ffi.register_ffi_target(name, _jax.capsule(entry.address), platform=self.machine.platform)
                entry.known_to_xla = True
            loaded = entry.needed_by()
            if loaded is None:
                loaded = Loaded(name)
                entry.needed_by = weakref.ref(loaded, lambda _: self.unneeded.append(name))
            return loaded

    def drop_unneeded(self) -> None:
        """Remove kernels from the process that nothing needs, except while they run."""
        with self.lock:
            dropped = []
            for _ in range(len(self.unneeded)):
                entry = self.entries[self.unneeded.popleft()]
                if entry.needed_by() is not None or entry.kernel is None:
                    continue
                if self.pages[0].drop(ctypes.addressof(entry.slot)):
                    self.unneeded.append(entry.name)
                else:
                    dropped.append(entry.kernel)
                    entry.kernel = None
            if dropped:
                self.machine.close(dropped)

    def count(self) -> int:
        """The number of kernels in the process now."""
        with self.lock:
            return sum(entry.kernel is not None for entry in self.entries.values())

    def recall(self, address: int) -> None:
        """Load the kernel of a slot again, from its file."""
        with self.lock:
            entry = self.by_slot[address]
            if entry.kernel is None:
                self._fill(entry, None)

    def _recall(self, slot: int) -> int:
        try:
            self.recall(slot)
        except BaseException:  # noqa: BLE001  nothing could catch it here; the entry returns an error to XLA
            return 1
        return 0

    def _new_entry(self, name: str, identity: str, calling: Calling) -> _Entry:
        host.keep_freed_memory()
        if not self.pages or self.pages[-1].used == len(self.pages[-1].slots):
            size = min(_FIRST_PAGE << 2 * len(self.pages), _LARGEST_PAGE)
            self.pages.append(_Page(self.machine, self._recalled, size))
        page = self.pages[-1]
        slot, address = page.slots[page.used], page.addresses[page.used]
        slot.inputs, slot.outputs, slot.portion = calling.inputs, calling.outputs, calling.portion
        slot.batched, slot.points, slot.threads = calling.batched, calling.points, calling.threads
        slot.portions = calling.portions
        page.used += 1
        entry = self.entries[name] = self.by_slot[ctypes.addressof(slot)] = _Entry(name, identity, slot, address)
        return entry

    def _fill(self, entry: _Entry, make: Callable[[], bytes] | None) -> None:
        entry.kernel, entry.slot.code = _opened(entry.identity, make, self.machine.opened)


def _identity(machine: Machine, code: str) -> str:
    return hashlib.sha256(f"{machine.identity}\n{code}".encode()).hexdigest()


def _opened(identity: str, make: Callable[[], bytes] | None, open_content: Callable[[bytes], Any]) -> Any:
    """Code that is ready to run, from its file if that is valid."""
    stored = disk.read(identity)
    if stored is not None:
        try:
            return open_content(stored)
        except Exception:  # a file that is not our code may raise anything
            if make is None:
                raise
    if make is None:
        raise FileNotFoundError(identity)
    content = make()
    opened = open_content(content)
    disk.write(identity, content)
    return opened


# GPU code is dropped rarely, because dropping waits for everything that runs there.
on_cpu, on_gpu = Registry(host.CPU), Registry(GPU, spare=64)


def _after_fork() -> None:
    # The locks may have been held by threads that this process does not have.
    for registry in (on_cpu, on_gpu):
        registry.lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
