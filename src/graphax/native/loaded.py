"""Kernels that are part of this process: each has an entry that XLA calls, and is dropped when nothing needs it.

A `Loaded` stands for the need: JAX keeps it as long as it keeps what it compiled. Its end is noted by whichever thread
it comes in, and the kernel is dropped by the next one that loads another. XLA may still hold an executable that JAX has
forgotten; if it runs, the kernel is recalled from its file, and stays.
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
from .handler import DROP, ENTRIES, RECALL, SLOTS, THREAD_LIMIT, Slot, handler_code
from .points import POINTS


@dataclass(frozen=True)
class Calling:
    """How a kernel is called: how many arrays it has, and how many points a thread takes at a time."""

    inputs: int
    outputs: int
    chunk: int
    batched: bool


class Loaded:
    """A kernel, by the name of its entry among XLA's targets. It stays while this object does."""

    def __init__(self, name: str):
        self.name = name


class _Entry:
    """A function for XLA to call: its slot, and the kernel in it, if there is one now."""

    def __init__(self, name: str, identity: str, slot: Slot, address: int):
        self.name, self.identity, self.slot, self.address = name, identity, slot, address
        self.known_to_xla = False
        self.library: Any = None
        self.needed_by: Callable[[], Loaded | None] = lambda: None


# An entry takes a millisecond to compile, and most processes need a few.
_FIRST_PAGE, _LARGEST_PAGE = 8, 128


class _Page:
    """Entries with nothing in them yet."""

    def __init__(self, size: int) -> None:
        self.slots = (Slot * size)()
        code = handler_code(size)
        given = {
            THREAD_LIMIT: ctypes.addressof(host.thread_limit),
            SLOTS: ctypes.addressof(self.slots),
            RECALL: ctypes.cast(_recalled, ctypes.c_void_p).value,
        }
        self.library = _linked(_identity(code), lambda: host.machine_code(code), (ENTRIES, DROP), given)
        self.addresses = list((ctypes.c_void_p * size).from_address(self.library[ENTRIES]))
        self.drop = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(self.library[DROP])
        self.used = 0


class _Registry:
    """All entries of the process, under one lock."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.entries: dict[str, _Entry] = {}
        self.pages: list[_Page] = []
        self.by_slot: dict[int, _Entry] = {}
        self.unneeded: deque[str] = deque()

    def load(self, code: str, calling: Calling) -> Loaded:
        """The kernel of this code, compiled and loaded if it is not yet."""
        name = f"graphax_{hashlib.sha256(repr((code, calling)).encode()).hexdigest()[:32]}"
        with self.lock:
            self.drop_unneeded()
            entry = self.entries.get(name) or self._new_entry(name, _identity(code), calling)
            if entry.library is None:
                self._fill(entry, lambda: host.machine_code(code))
            if not entry.known_to_xla:
                # An interrupt may come in between; saying it twice does no harm.
                jax.ffi.register_ffi_target(name, _jax.capsule(entry.address), platform="cpu")
                entry.known_to_xla = True
            loaded = entry.needed_by()
            if loaded is None:
                loaded = Loaded(name)
                entry.needed_by = weakref.ref(loaded, lambda _: self.unneeded.append(name))
            return loaded

    def drop_unneeded(self) -> None:
        """Take kernels out of the process that nobody needs, except while they run."""
        with self.lock:
            for _ in range(len(self.unneeded)):
                entry = self.entries[self.unneeded.popleft()]
                if entry.needed_by() is not None or entry.library is None:
                    continue
                if self.pages[0].drop(ctypes.addressof(entry.slot)):
                    self.unneeded.append(entry.name)
                else:
                    entry.library = None

    def count(self) -> int:
        """How many kernels are in the process now."""
        with self.lock:
            return sum(entry.library is not None for entry in self.entries.values())

    def recall(self, address: int) -> None:
        """Load the kernel of a slot again, from its file."""
        with self.lock:
            entry = self.by_slot[address]
            if entry.library is None:
                self._fill(entry, None)

    def _new_entry(self, name: str, identity: str, calling: Calling) -> _Entry:
        host.keep_freed_memory()
        if not self.pages or self.pages[-1].used == len(self.pages[-1].slots):
            self.pages.append(_Page(min(_FIRST_PAGE << 2 * len(self.pages), _LARGEST_PAGE)))
        page = self.pages[-1]
        slot, address = page.slots[page.used], page.addresses[page.used]
        slot.inputs, slot.outputs, slot.chunk = calling.inputs, calling.outputs, calling.chunk
        slot.batched = calling.batched
        page.used += 1
        entry = self.entries[name] = self.by_slot[ctypes.addressof(slot)] = _Entry(name, identity, slot, address)
        return entry

    def _fill(self, entry: _Entry, make: Callable[[], bytes] | None) -> None:
        entry.library = _linked(entry.identity, make, (POINTS,), {})
        entry.slot.points = entry.library[POINTS]


def _identity(code: str) -> str:
    return hashlib.sha256(f"{host.host().identity}\n{code}".encode()).hexdigest()


def _linked(identity: str, make: Callable[[], bytes] | None, names: tuple[str, ...], given: dict[str, Any]) -> Any:
    """Code as part of the process, from its file if that is any good."""
    stored = disk.read(identity)
    if stored is not None:
        try:
            return host.link(stored, names, given)
        except Exception:  # whatever LLVM says about a file that is no machine code of ours
            if make is None:
                raise
    if make is None:
        raise FileNotFoundError(identity)
    content = make()
    library = host.link(content, names, given)
    disk.write(identity, content)
    return library


@ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
def _recalled(slot: int) -> int:
    """What an entry without its kernel calls, from a thread of XLA's; 0 if the kernel is there now."""
    try:
        _registry.recall(slot)
    except BaseException:  # noqa: BLE001  there is nobody here to raise it to: the entry returns an error to XLA
        return 1
    return 0


_registry = _Registry()
load = _registry.load
drop_unneeded = _registry.drop_unneeded
count = _registry.count


def _after_fork() -> None:
    # The lock may have been held by a thread that this process does not have.
    _registry.lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
