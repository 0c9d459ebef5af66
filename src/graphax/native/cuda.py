"""NVIDIA GPUs, through the same driver that JAX uses: it compiles PTX to kernels that can be launched."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from .. import _jax
from ..errors import NativeError
from . import ptx
from .host import host
from .machine import Machine
from .points import POINTS

# The numbers of the driver's options and attributes.
_ERROR_LOG, _ERROR_LOG_SIZE = 5, 6
_LOCAL_BYTES, _REGISTERS = 3, 4
_LOG_BYTES = 8192
_NOT_FOUND = "the NVIDIA driver (libcuda) is missing or too old"
_FUNCTIONS = (
    "cuInit", "cuLibraryLoadData", "cuLibraryGetKernel", "cuLibraryUnload", "cuKernelGetAttribute", "cuDeviceGet",
    "cuGetErrorString", "cuLaunchKernel", "cuDeviceGetCount", "cuDevicePrimaryCtxGetState", "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2", "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2", "cuCtxSynchronize",
)  # fmt: skip


@cache
def driver() -> Any:
    """The functions of the driver; raises `NativeError` if there is no driver, or if it lacks some."""
    for name in ("libcuda.so.1", "nvcuda.dll"):
        try:
            found = ctypes.CDLL(name)
        except OSError:
            continue
        if all(hasattr(found, function) for function in _FUNCTIONS):
            _check(found, found.cuInit(0))
            return found
    raise NativeError(_NOT_FOUND)


def _check(driver: Any, number: int, log: bytes = b"") -> None:
    if number:
        text = ctypes.c_char_p()
        driver.cuGetErrorString(number, ctypes.byref(text))
        reason = (text.value or b"an error without a name").decode(errors="replace")
        details = log.decode(errors="replace").strip()
        raise NativeError(f"the GPU driver reports: {reason}" + (f"\n{details}" if details else ""))


@dataclass(frozen=True, eq=False)
class Module:
    """Code that the driver has loaded, for all GPUs.

    Attributes:
        library, kernel: the driver's handles of the code and of its only kernel.
        registers, spilled: per thread, the number of registers, and the bytes that did not fit into them.
    """

    library: int
    kernel: int
    registers: int
    spilled: int


def load(code: bytes) -> Module:
    """Have the driver compile PTX; raises `NativeError` with the message of the driver on failure."""
    cuda = driver()
    library, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    log = ctypes.create_string_buffer(_LOG_BYTES)
    options = (ctypes.c_int * 2)(_ERROR_LOG, _ERROR_LOG_SIZE)
    values = (ctypes.c_void_p * 2)(ctypes.addressof(log), _LOG_BYTES)
    found = cuda.cuLibraryLoadData(
        ctypes.byref(library), ctypes.c_char_p(code), options, values, ctypes.c_uint(2), None, None, ctypes.c_uint(0)
    )
    _check(cuda, found, log.value)
    try:
        _check(cuda, cuda.cuLibraryGetKernel(ctypes.byref(kernel), library, POINTS.encode()))
        # Querying attributes makes the driver compile the code now instead of on the first run.
        number = ctypes.c_int()
        _check(cuda, cuda.cuDeviceGet(ctypes.byref(number), 0))
        known = []
        for attribute in (_REGISTERS, _LOCAL_BYTES):
            value = ctypes.c_int()
            _check(cuda, cuda.cuKernelGetAttribute(ctypes.byref(value), attribute, kernel, number))
            known.append(value.value)
    except NativeError:
        cuda.cuLibraryUnload(library)
        raise
    return Module(library.value or 0, kernel.value or 0, *known)


def _wait_for_all() -> None:
    """Wait until all work on the GPUs that this process uses has finished."""
    cuda, count = driver(), ctypes.c_int()
    cuda.cuDeviceGetCount(ctypes.byref(count))
    for number in range(count.value):
        flags, used, context = ctypes.c_uint(), ctypes.c_int(), ctypes.c_void_p()
        cuda.cuDevicePrimaryCtxGetState(number, ctypes.byref(flags), ctypes.byref(used))
        if used.value and not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), number):
            cuda.cuCtxPushCurrent_v2(context)
            cuda.cuCtxSynchronize()
            cuda.cuCtxPopCurrent_v2(ctypes.byref(context))
            cuda.cuDevicePrimaryCtxRelease_v2(number)


class Gpu(Machine):
    """The GPUs of this process. Code is generated for the oldest of them."""

    platform = "CUDA"
    handler = "launch.ll"

    @cached_property
    def target(self) -> str:
        """The target of code generation; raises `NativeError` if there is none."""
        capability = _jax.gpu_capability()
        if capability is None:
            raise NativeError("there is no NVIDIA GPU")
        found = ptx.target(capability)
        if not found:
            raise NativeError(f"GPUs of compute capability {capability / 10} are too old for kernels")
        return found

    @property
    def identity(self) -> str:
        return f"{self.target}\n{host().version}"

    def given(self) -> dict[str, int]:
        names = ("cuLaunchKernel", "cuGetErrorString")
        return {name: ctypes.cast(getattr(driver(), name), ctypes.c_void_p).value or 0 for name in names}

    def compiled(self, code: str) -> bytes:
        return ptx.ptx(code, self.target)

    def opened(self, content: bytes) -> tuple[Any, int]:
        module = load(content)
        return module, module.kernel

    def close(self, opened: Sequence[Any]) -> None:
        # Launched kernels may not have run yet.
        _wait_for_all()
        for module in opened:
            driver().cuLibraryUnload(ctypes.c_void_p(module.library))


GPU = Gpu()


def check_available() -> None:
    """Raise `NativeError` if kernels cannot run on a GPU here."""
    driver()
    assert GPU.target
