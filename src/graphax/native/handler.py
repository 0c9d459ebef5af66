"""The functions that XLA calls: they read its call frame (``frame.ll``), and share the points out to threads
(``handler.ll``) or launch a kernel on a GPU (``launch.ll``).

XLA never forgets a function that it was told of, and kernels come and go. So it is told of **entries**, which are
compiled by the page and stay. Each has a `Slot`, which says where the kernel is now. Whoever runs a kernel is counted
as a user of its slot, and so are threads that come to help late. A kernel without users can be dropped; if its entry is
called again, it is recalled.

`OFFSETS` are those of XLA's C interface (``xla/ffi/api/c_api.h`` under `jax.ffi.include_dir()`). Minor versions only
add to the ends of structures; a header of another major version is refused.
"""

import ctypes
import os
import re
from functools import cache
from pathlib import Path
from string import Template

import jax

from ..errors import NativeError

# On a GPU, threads of a block. Up to so many points, or if a warp shares more bytes, a block is a single warp.
_THREADS, _FEW_POINTS, _LARGE_ROOM = 128, 32_768, 12_288

# Threads take this many points at a time, times statements: some tens of microseconds of work.
_CHUNK_WORK, _LEAST_CHUNK = 1 << 20, 16

# The version of XLA's interface that this is written for, and where what is read and written here stands in it.
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
    """What an entry knows of its kernel; a line of the cache, so that kernels do not disturb each other.

    ``code`` is the address of a function, or the driver's name of a kernel.
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
    )


_ENTRY = """
define internal ptr @entry{n}(ptr %frame) {{
  %slot = getelementptr [8 x i64], ptr @{slots}, i64 {n}
  %error = tail call ptr @handle(ptr %frame, ptr %slot)
  ret ptr %error
}}
"""


# The names under which the code here finds what is Python's, and Python what is here.
THREAD_LIMIT, SLOTS, RECALL = "graphax_thread_limit", "graphax_slots", "graphax_recall"
ENTRIES, DROP = "graphax_entries", "graphax_drop"

_GONE = (
    "a kernel of graphax was dropped and cannot be loaded again, because its file is gone; compile the function anew"
)


def chunk_size(work: int, lanes: int) -> int:
    """How many points a thread takes at a time, given how many operations there are for each.

    They are whole blocks of so many lanes, because a block that began before its chunk could begin before all points;
    and whole lines of the cache.
    """
    block = max(_LEAST_CHUNK, lanes)
    return max(block, _CHUNK_WORK // max(1, work) // block * block)


@cache
def handler_code(name: str, size: int) -> str:
    """The code of a page of so many entries, which handle calls as a file of code says."""
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
    """The header of XLA's interface, as jaxlib ships it."""
    return Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h"


@cache
def interface_version() -> tuple[int, int]:
    """The version of XLA's interface; `NativeError` if its structures may be others than those of `OFFSETS`."""
    found = dict(re.findall(r"#define XLA_FFI_API_(MAJOR|MINOR) (\d+)", header().read_text(encoding="utf-8")))
    major, minor = (int(found.get(name, -1)) for name in ("MAJOR", "MINOR"))
    if major != MAJOR:
        raise NativeError(
            f"XLA's foreign function interface has version {major}.{minor}, but kernels are written for {MAJOR}.x; "
            f"update graphax-alphagrad, or use backend='xla'"
        )
    return major, minor
