"""The local machine: its processor, machine code for it, and linking of this code into the process."""

import ctypes
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any

from ..errors import GraphaxError, NativeError
from .handler import THREAD_LIMIT
from .machine import Machine
from .points import POINTS

THREADS_VARIABLE = "GRAPHAX_THREADS"
MEMORY_VARIABLE = "GRAPHAX_KEEP_MEMORY"

# The parameters of glibc's mallopt.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3


def available() -> bool:
    """Whether LLVM is available."""
    try:
        import llvmlite.binding  # noqa: F401
    except ImportError:
        return False
    return True


@dataclass(frozen=True)
class Host:
    """The processor, by LLVM's names."""

    triple: str
    cpu: str
    features: str
    version: str

    @property
    def vector_bits(self) -> int:
        features = self.features.split(",")
        if "+avx512f" in features and "+avx512dq" in features:
            return 512
        return 256 if "+avx" in features else 128

    @property
    def identity(self) -> str:
        """Everything that machine code depends on, apart from its source."""
        return "\n".join((self.triple, self.cpu, self.features, self.version))


@cache
def host() -> Host:
    try:
        import llvmlite
        import llvmlite.binding as llvm
    except ImportError as error:
        raise NativeError(
            "the native backend needs llvmlite, which is not installed: pip install 'graphax-alphagrad[native]', "
            "or use backend='xla'"
        ) from error
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    version = f"llvmlite {llvmlite.__version__}"
    return Host(llvm.get_process_triple(), llvm.get_host_cpu_name(), features, version)


def machine_code(code: str) -> bytes:
    """Compile a module of LLVM's language for this machine."""
    import llvmlite.binding as llvm

    this = host()
    target = llvm.Target.from_triple(this.triple)
    machine = target.create_target_machine(cpu=this.cpu, features=this.features, opt=3, reloc="pic", jit=True)
    module = llvm.parse_assembly(code)
    module.triple = this.triple
    module.data_layout = str(machine.target_data)
    module.verify()
    return machine.emit_object(module)


def link(machine_code: bytes, names: Sequence[str], given: Mapping[str, int] | None = None) -> Any:
    """Link machine code into this process, until the returned object is dropped.

    ``names`` are the exported symbols: indexing the result gives their addresses. ``given`` maps names that the code
    imports to addresses.
    """
    import llvmlite.binding as llvm

    builder = llvm.JITLibraryBuilder()
    builder.add_object_img(machine_code).add_current_process()
    for name, address in (given or {}).items():
        builder.import_symbol(name, address)
    for name in names:
        builder.export_symbol(name)
    return builder.link(_linker(), f"graphax{next(_numbers)}")


class Cpu(Machine):
    """The processor of this process."""

    platform = "cpu"
    handler = "handler.ll"

    @property
    def identity(self) -> str:
        return host().identity

    def given(self) -> dict[str, int]:
        return {THREAD_LIMIT: ctypes.addressof(thread_limit)}

    def compiled(self, code: str) -> bytes:
        return machine_code(code)

    def opened(self, content: bytes) -> tuple[Any, int]:
        library = link(content, (POINTS,))
        return library, library[POINTS]

    def close(self, opened: Sequence[Any]) -> None:
        """Nothing to do: code is freed with the last reference to it."""


CPU = Cpu()

# Libraries of one process need different names; one counter serves all threads.
_numbers = count()


@cache
def _linker() -> Any:
    import llvmlite.binding as llvm

    return llvm.create_lljit_compiler()


@cache
def keep_freed_memory() -> None:
    """Make glibc keep freed memory.

    Otherwise glibc returns large results to the system when they are dropped, and the next call has to fault in every
    page of its results again. That takes several times as long as a kernel. Other C libraries have no such function.
    """
    adjust = getattr(ctypes.CDLL(None), "mallopt", None)
    if adjust is not None and os.environ.get(MEMORY_VARIABLE, "1") != "0":
        adjust(_TRIM_THRESHOLD, 1 << 30)
        adjust(_MMAP_THRESHOLD, 32 << 20)


def _most_threads() -> int:
    given = os.environ.get(THREADS_VARIABLE, 2**31)
    try:
        return int(given)
    except ValueError:
        raise GraphaxError(f"{THREADS_VARIABLE} must be a maximum number of threads, but is {given!r}") from None


thread_limit = ctypes.c_int64(_most_threads())


def set_threads(most: int) -> int:
    """Set the maximum number of threads per kernel. Returns the previous value."""
    before = thread_limit.value
    thread_limit.value = max(1, most)
    return before
