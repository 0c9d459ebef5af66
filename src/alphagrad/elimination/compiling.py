"""Compilation of kernels by numba."""

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.runtime import rtsys

_WITH_KERNELS = ("elimination", "finders", "policy")
_SOURCES = sorted(path for folder in _WITH_KERNELS for path in (Path(__file__).parents[1] / folder).glob("*.py"))
_STAMP = hashlib.sha256(b"".join(path.read_bytes() for path in _SOURCES)).hexdigest()


def allocating(function: Callable, **options: Any) -> Callable:
    """Compile a kernel at its first call, or load it from the cache of an earlier process.

    Kernels inline each other, but numba considers a cached kernel valid as long as its own file is unchanged. So all
    kernels are stamped with the content of all files that contain kernels.
    """
    dispatcher = njit(cache=True, **options)(function)
    cache = dispatcher._cache
    cache.load_overload = partial(_loaded, cache)
    cache._cache_file._source_stamp = _STAMP
    cache._cache_file._load_index = partial(_readable, cache._cache_file._load_index)
    return dispatcher


def _loaded(cache: Any, signature: Any, context: Any) -> Any:
    """Load a kernel from the cache, or return None.

    numba itself would first import everything that compiling needs, such as `scipy.linalg`, which would take longest.
    """
    rtsys.initialize(context)
    with cache._guard_against_spurious_io_errors():
        return cache._load_overload(signature, context)


def _readable(load: Callable[[], dict]) -> dict:
    """Load a cache index. An index of another version may name types that no longer exist; it counts as empty."""
    try:
        return load()
    except (ImportError, AttributeError):
        return {}


def compiled(function: Callable) -> Callable:
    """Compile a kernel that allocates nothing. Without reference counts, calls are four times faster."""
    return allocating(function, _nrt=False)


def inlined(function: Callable) -> Callable:
    """Compile a kernel that is inlined into its callers, so that its arguments are not passed."""
    return allocating(function, _nrt=False, inline="always")
