"""The functions that XLA calls.

They read its call frame (``frame.ll``) and either distribute points to threads (``handler.ll``) or launch a kernel on a
GPU (``launch.ll``).

XLA never forgets a registered function, but kernels come and go. So XLA is given **entries**, which are compiled by the
page and stay. Each entry has a `Slot` that says where the kernel is now. Every thread that runs a kernel counts as a
user of its slot, including threads that join late. A kernel without users can be dropped. If its entry is called again,
the kernel is recalled.

`OFFSETS` are those of XLA's C interface (``xla/ffi/api/c_api.h`` under `jax.ffi.include_dir()`). Minor versions only
add to the ends of structures; a header of another major version raises an error.
"""

import ctypes
import os
import re
from functools import cache
from pathlib import Path
from string import Template

import jax

from ..errors import NativeError

# The threads per block on a GPU. Up to this many points, or if a warp shares more bytes, a block is a single warp.
_THREADS, _FEW_POINTS, _LARGE_ROOM = 128, 32_768, 12_288

# Threads take this many points, times statements, at a time: some tens of microseconds of work.
_CHUNK_WORK, _LEAST_CHUNK = 1 << 20, 16

# The version of XLA's interface that this code is written for, and the offsets of the fields that it reads and writes.
MAJOR = 0
OFFSETS = {
    "frame_extension": ("XLA_FFI_CallFrame", "extension_start", 8),
    "frame_api": ("XLA_FFI_CallFrame", "api", 16),
    "frame_ctx": ("XLA_FFI_CallFrame", "ctx", 24),
    "frame_args": ("XLA_FFI_CallFrame", "args.args", 72),
    "frame_rets": ("XLA_FFI_CallFrame", "rets.rets", 112),
    "buffer_data": ("XLA_FFI_Buffer", "data", 24),
    "buffer_dims": ("XLA_FFI_Buffer", "dims", 40),
    "api_error_create": ("XLA_FFI_Api", "XLA_FFI_Error_Create", 48),
    "api_error_destroy": ("XLA_FFI_Api", "XLA_FFI_Error_Destroy", 64),
    "api_stream": ("XLA_FFI_Api", "XLA_FFI_Stream_Get", 80),
    "api_schedule": ("XLA_FFI_Api", "XLA_FFI_ThreadPool_Schedule", 136),
    "api_num_threads": ("XLA_FFI_Api", "XLA_FFI_ThreadPool_NumThreads", 144),
    "extension_type": ("XLA_FFI_Metadata_Extension", "extension_base.type", 8),
    "extension_metadata": ("XLA_FFI_Metadata_Extension", "metadata", 24),
    "metadata_major": ("XLA_FFI_Metadata", "api_version.major_version", 24),
    "metadata_minor": ("XLA_FFI_Metadata", "api_version.minor_version", 28),
    "metadata_traits": ("XLA_FFI_Metadata", "traits", 32),
}


class Slot(ctypes.Structure):
    """The data of an entry about its kernel. It fills cache lines, so that kernels do not disturb each other.

    ``code`` is the address of a function, or the driver's handle of a kernel.
    """

    _fields_ = (
        ("users", ctypes.c_int64),
        ("code", ctypes.c_void_p),
        ("inputs", ctypes.c_int64),
        ("outputs", ctypes.c_int64),
        ("portion", ctypes.c_int64),
        ("batched", ctypes.c_int64),
        ("points", ctypes.c_int64),
        ("threads", ctypes.c_int64),
        ("portions", ctypes.c_int64),
        ("unused", ctypes.c_int64 * 7),
    )


_ENTRY = """
define internal ptr @entry{n}(ptr %frame) {{
  %slot = getelementptr [16 x i64], ptr @{slots}, i64 {n}
  %error = tail call ptr @handle(ptr %frame, ptr %slot)
  ret ptr %error
}}
"""


# The names under which this code finds data of Python, and Python finds symbols of this code.
THREAD_LIMIT, SLOTS, RECALL = "graphax_thread_limit", "graphax_slots", "graphax_recall"
ENTRIES, DROP = "graphax_entries", "graphax_drop"

_GONE = (
    "a kernel of graphax was dropped and cannot be loaded again, because its file is gone; compile the function again"
)


def chunk_size(work: int, lanes: int) -> int:
    """The number of points that a thread takes at a time, given the number of operations per point.

    Chunks consist of whole blocks of lanes, because a block that began before its chunk could begin before all points.
    They also consist of whole cache lines.
    """
    block = max(_LEAST_CHUNK, lanes)
    return max(block, _CHUNK_WORK // max(1, work) // block * block)


@cache
def handler_code(name: str, size: int) -> str:
    """The code of a page of ``size`` entries, which handle calls with the code in a file."""
    posix = os.name == "posix"
    major, minor = interface_version()
    files = [Path(__file__).with_name(file).read_text(encoding="utf-8") for file in ("frame.ll", name)]
    handler = Template("\n".join(files)).substitute(
        {name: offset for name, (_, _, offset) in OFFSETS.items()},
        limit=THREAD_LIMIT,
        slots=SLOTS,
        recall=RECALL,
        drop=DROP,
        page=size,
        gone=_GONE,
        gone_size=len(_GONE) + 1,
        major=major,
        minor=minor,
        threads=_THREADS,
        few_points=_FEW_POINTS,
        large_room=_LARGE_ROOM,
        yield_core="%ignored = call i32 @sched_yield()" if posix else "",
        declare_yield="declare i32 @sched_yield()" if posix else "",
    )
    entries = [_ENTRY.format(n=n, slots=SLOTS) for n in range(size)]
    table = ", ".join(f"ptr @entry{n}" for n in range(size))
    return "".join([handler, *entries, f"@{ENTRIES} = constant [{size} x ptr] [{table}]\n"])


def header() -> Path:
    """The header of XLA's interface, as shipped with jaxlib."""
    return Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h"


@cache
def interface_version() -> tuple[int, int]:
    """The version of XLA's interface; raises `NativeError` if its structures may differ from `OFFSETS`."""
    found = dict(re.findall(r"#define XLA_FFI_API_(MAJOR|MINOR) (\d+)", header().read_text(encoding="utf-8")))
    major, minor = (int(found.get(name, -1)) for name in ("MAJOR", "MINOR"))
    if major != MAJOR:
        raise NativeError(
            f"XLA's foreign function interface has version {major}.{minor}, but kernels are written for {MAJOR}.x; "
            f"update graphax-alphagrad, or use backend='xla'"
        )
    return major, minor
