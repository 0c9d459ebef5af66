"""Contenders of a benchmark: ways to compute a Jacobian, prepared for a case."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import graphax as gx

from .case import Case
from .orders import Unavailable, order_of

JAX_MODES = ("jacfwd", "jacrev")
FLOOR = "floor"
# The share of the free memory that one contender may use, because others may need some as well.
MEMORY_SHARE = 0.25


@dataclass(frozen=True)
class Ready:
    """A contender that is compiled for a case.

    Attributes:
        call: computes all results once, and returns when they are ready.
        entries: maps a number of points to the arrays of the Jacobian in JAX's order, for at least the first so many
            points; None if the contender computes something else.
        compile_seconds: the time from the function to machine code.
        memory: bytes of results and temporaries, if known.
    """

    call: Callable[[], None]
    entries: Callable[[int], list[np.ndarray]] | None
    compile_seconds: float
    memory: int | None


@dataclass(frozen=True)
class Contender:
    """A name, and a function that prepares the contender for a case.

    If that is impossible, the function raises `Unavailable` or another error of graphax that gives the reason.
    """

    name: str
    prepare: Callable[[Case], Ready]


def jax_mode(name: str) -> Contender:
    def prepare(case: Case) -> Ready:
        return made_ready(case, case.over_batch(getattr(jax, name)(case.function, case.task.argnums)))

    return Contender(name, prepare)


def elimination(order: str, backend: gx.Backend) -> Contender:
    """`graphax.jacve` with a named order on a backend."""

    def prepare(case: Case) -> Ready:
        found = order_of(order, case.task)
        jacobian = gx.jacve(case.function, case.task.argnums, order=found, backend=backend)
        return made_ready(case, case.over_batch(jacobian))

    return Contender(f"{order}/{backend}", prepare)


def floor() -> Contender:
    """A contender whose results are inputs times constants: the time that returning the Jacobian takes by itself."""

    def prepare(case: Case) -> Ready:
        shapes = case.shapes()

        def trivial(*args: Any) -> list[Any]:
            return [_filled(args[n % len(args)], shape, 1.5 + n) for n, shape in enumerate(shapes)]

        return replace(made_ready(case, trivial), entries=None)

    return Contender(FLOOR, prepare)


def _filled(source: Any, wanted: Any, constant: float) -> Any:
    """An array like ``wanted``, in which every entry is an element of ``source`` times a constant.

    If both have a batch, each point has its own element.
    """
    count = wanted.shape[0] if wanted.ndim else 1
    flat = source.ravel()
    column = jnp.resize(flat, (count,)) if flat.size < count else flat[:count]
    return jnp.broadcast_to((column * constant).reshape(wanted.shape[:1] + (1,) * (wanted.ndim - 1)), wanted.shape)


def made_ready(case: Case, function: Callable) -> Ready:
    """A function of the whole batch, compiled by JAX."""
    args = [jnp.asarray(x) for x in case.points]
    start = time.perf_counter()
    try:
        program = jax.jit(function).lower(*args).compile()
        seconds = time.perf_counter() - start
        memory = _memory(program)
        _check_memory(memory)
        jax.block_until_ready(program(*args))
    except jax.errors.JaxRuntimeError as error:
        raise Unavailable(f"JAX fails: {str(error).splitlines()[0]}") from None

    def call() -> None:
        jax.block_until_ready(program(*args))

    def entries(count: int) -> list[np.ndarray]:
        results = jax.tree.leaves(program(*args))
        return [np.asarray(x[:count] if case.batch > 1 else x) for x in results]

    return Ready(call, entries, seconds, memory)


def _memory(program: Any) -> int | None:
    """Bytes of results and temporaries, if the platform reports them."""
    stats = program.memory_analysis()
    return None if stats is None else stats.temp_size_in_bytes + stats.output_size_in_bytes


def _check_memory(needed: int | None) -> None:
    """Raise if the results would not fit the memory of the machine. Devices raise by themselves."""
    if needed is None or jax.default_backend() != "cpu" or "SC_AVPHYS_PAGES" not in os.sysconf_names:
        return
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > MEMORY_SHARE * free:
        raise Unavailable(f"it needs {needed / 2**30:.1f} GiB, of {free / 2**30:.1f} GiB that are free")
