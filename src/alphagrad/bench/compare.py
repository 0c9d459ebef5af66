"""A comparison of elimination with JAX for a user's function."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import jax

import graphax as gx
from graphax.backend import BACKENDS, check_backend

from ..errors import whole_number
from ..finders.budget import Budget, BudgetLike, Progress
from ..finders.search import search
from ..tasks.task import Task
from .advice import advice
from .case import BATCH, LARGEST_JACOBIAN, Case
from .contender import JAX_MODES, Contender, elimination, floor, jax_mode
from .machine import Machine, empty_kernel_cache
from .measure import Benchmark, Effort
from .orders import PAPER, check_order
from .own_function import task_of
from .report import BenchmarkReport

ORDERS = ("auto", "best", "fwd", "rev", "markowitz")


def compare(
    function: Callable[..., object],
    *args: Any,
    argnums: int | Sequence[int] = 0,
    batch: int | Sequence[int] | None = None,
    batch_axes: Sequence[int | None] | None = None,
    orders: Sequence[str] = ORDERS,
    backend: gx.Backend = "auto",
    budget: BudgetLike = 2.0,
    repeat: int = 100,
    seconds: float = 10.0,
    progress: Callable[[str], None] = lambda doing: None,
) -> BenchmarkReport:
    """Measure the Jacobian of ``function`` by JAX's modes and by elimination, and recommend one.

    All contenders take turns in each round, so that they see the same state of the machine. Print the result for tables
    with times, errors against float64, compile times and memory, and a line of advice per batch.
    ``alphagrad.plot.batch_scaling(result.as_dict())`` draws it.

    Args:
        args: example arguments, at which values and derivatives are finite.
        argnums: as in `graphax.jacve`.
        batch: the number of points to map over with `jax.vmap`, or several such numbers; 1 is the function itself. The
            default is 1, and also 512 unless that many Jacobians are too large.
        batch_axes: 0 for each argument that has its own values at each point of a batch, None for others. By default,
            the arguments under ``argnums`` are batched.
        orders: presets, files of orders (``*.json``), and ``"best"``: the result of a short search.
        backend: the backend for these orders. If it is ``"auto"``, the order ``"auto"`` also runs on the other
            backends.
        budget: the budget of the search, see `search`.
        repeat: the number of rounds per case.
        seconds: the time after which a case gets no further rounds.
        progress: is called with a description of each phase.
    """
    name = getattr(function, "__name__", type(function).__name__)
    task = task_of(name, function, args, argnums, batch_axes)
    cases = cases_of(task, batches_of(batch), "float64" if jax.config.read("jax_enable_x64") else "float32")
    contenders = contenders_of(orders, [backend])
    benchmark = Benchmark(Effort(whole_number("repeat", repeat, 1), seconds), progress)
    with empty_kernel_cache():
        if "best" in orders:
            find_order(task, Budget.of(budget), lambda now: progress(f"searching: {now}"))
        benchmark.run(cases, contenders)
    rows = tuple(benchmark.measurements)
    return BenchmarkReport(Machine.here(None), f"alphagrad.compare({name})", rows, benchmark.interrupted, advice(rows))


def batches_of(given: int | Sequence[int] | None) -> list[int]:
    """Batches as users write them; empty for the default."""
    numbers = [] if given is None else list(given) if isinstance(given, Sequence) else [given]
    return [whole_number("batch", number, 1) for number in numbers]


def cases_of(task: Task, batches: Sequence[int], dtype: str) -> list[Case]:
    """A user's function with the given batches.

    The default is one point, and also many points if their Jacobians are not too large.
    """
    if not batches:
        entries = sum(prod(shape.shape) for shape in Case(task, 1).shapes())
        is_mapped = any(axis == 0 for axis in task.batch_axes) and BATCH * entries <= LARGEST_JACOBIAN
        batches = [1, BATCH] if is_mapped else [1]
    return [Case(task, batch, 1, dtype) for batch in batches]


def contenders_of(orders: Sequence[str], backends: Sequence[str]) -> list[Contender]:
    """JAX's modes, and all orders that are available for a user's function."""
    for order in orders:
        check_order(order)
    chosen = [(order, backend) for backend in backends for order in orders if order != PAPER]
    if list(backends) == ["auto"] and "auto" in orders:
        chosen += [("auto", backend) for backend in BACKENDS if backend != "auto"]
    ours = [elimination(order, check_backend(backend)) for order, backend in chosen]
    return [floor(), *map(jax_mode, JAX_MODES), *ours]


def find_order(task: Task, budget: Budget, progress: Callable[[Progress], None]) -> None:
    """Search for a good order and put it on record, where `orders.best_order` finds it."""
    result = search(task, simplify=True, budget=budget, resume=True, progress=progress)
    if result.stopped == "interrupted":
        raise KeyboardInterrupt
