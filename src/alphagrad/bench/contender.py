"""What is measured against each other: ways to a Jacobian, made ready for a case."""

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
# Of the memory that is free, what one contender may take: others may need some before it is done.
MEMORY_SHARE = 0.25


@dataclass(frozen=True)
class Ready:
    """A contender that is compiled for a case.

    Attributes:
        call: computes all results once, and returns when they are there.
        entries: the arrays of the Jacobian in JAX's order, of at least the first so many points; None if it computes
            something else.
        compile_seconds: from the function to machine code.
        memory: bytes of results and of what is needed in between, where that is known.
    """

    call: Callable[[], None]
    entries: Callable[[int], list[np.ndarray]] | None
    compile_seconds: float
    memory: int | None


@dataclass(frozen=True)
class Contender:
    """A name, and what makes it ready for a case. Where that is impossible it raises `Unavailable` or another error of
    graphax, which says why."""

    name: str
    prepare: Callable[[Case], Ready]


def jax_mode(name: str) -> Contender:
    def prepare(case: Case) -> Ready:
        return made_ready(case, case.over_batch(getattr(jax, name)(case.function, case.task.argnums)))

    return Contender(name, prepare)


def elimination(order: str, backend: gx.Backend) -> Contender:
    """`graphax.jacve` with an order, by its name, on a backend."""

    def prepare(case: Case) -> Ready:
        found = order_of(order, case.task)
        jacobian = gx.jacve(case.function, case.task.argnums, order=found, backend=backend)
        return made_ready(case, case.over_batch(jacobian))

    return Contender(f"{order}/{backend}", prepare)


def floor() -> Contender:
    """Each result an input times a constant: what handing back the Jacobian takes by itself."""

    def prepare(case: Case) -> Ready:
        shapes = case.shapes()

        def trivial(*args: Any) -> list[Any]:
            return [_filled(args[n % len(args)], shape, 1.5 + n) for n, shape in enumerate(shapes)]

        return replace(made_ready(case, trivial), entries=None)

    return Contender(FLOOR, prepare)


def _filled(source: Any, wanted: Any, constant: float) -> Any:
    """An array of this shape, every entry an element of ``source`` times a constant; along the batch, where both have
    one, each point has its own."""
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
    """Bytes of results and temporaries, if the platform says."""
    stats = program.memory_analysis()
    return None if stats is None else stats.temp_size_in_bytes + stats.output_size_in_bytes


def _check_memory(needed: int | None) -> None:
    """Refuse what would not fit the memory of the machine; devices refuse by themselves."""
    if needed is None or jax.default_backend() != "cpu" or "SC_AVPHYS_PAGES" not in os.sysconf_names:
        return
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > MEMORY_SHARE * free:
        raise Unavailable(f"it needs {needed / 2**30:.1f} GiB, of {free / 2**30:.1f} GiB that are free")
