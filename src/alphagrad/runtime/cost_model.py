"""The run time of kernels on this machine: a price per kind of work, measured once and stored.

The prices of divisions and elementary functions come from kernels that do little else. Arithmetic, loads and stores,
and values that do not fit the registers overlap in time. So their prices are fitted to typical kernels: Jacobians of
two tasks in many orders.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import sha256
from inspect import getsource
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import nnls

import graphax as gx
from graphax.backend import run
from graphax.files import cache_folder, replace_file
from graphax.native import set_threads
from graphax.native.host import host
from graphax.presets import preset_vertices

from ..tasks import TASKS
from .timing import take_turns
from .workload import Workload, kernel_statements, workload

# The operations that are measured separately. Other elementary functions are priced like the exponential. Each link of
# a chain divides by the link before, because several divisions by one number would become a single one.
FUNCTIONS: dict[str, Callable] = {
    "div": lambda x, y: y / x, "sqrt": lambda x, y: jnp.sqrt(x + y), "sin": lambda x, y: jnp.sin(x),
    "cos": lambda x, y: jnp.cos(x), "exp": lambda x, y: jnp.exp(-x), "log": lambda x, y: jnp.log(x + 2),
    "tanh": lambda x, y: jnp.tanh(x), "pow": lambda x, y: jnp.power(x, y), "erf": lambda x, y: jax.lax.erf(x),
    "atan2": lambda x, y: jnp.arctan2(x, y), "sincos": lambda x, y: jnp.sin(x) + jnp.cos(x),
}  # fmt: skip
FITTED = ("arithmetic", "memory", "spill")
LENGTHS = (2, 10)
CHAINS = 4
POINTS = 1 << 14
REPEAT = 25
ORDERS_FITTED = 8


@dataclass(frozen=True)
class CostModel:
    """Prices in nanoseconds per point, on one thread.

    Attributes:
        dtype: the dtype of the numbers.
        prices: the price per kind of work.
        correlation: the rank correlation between predictions and measurements, over the kernels used for fitting.
    """

    dtype: str
    prices: Mapping[str, float]
    correlation: float

    def predict(self, work: Workload) -> float:
        """The predicted nanoseconds per point."""
        return sum(self.prices.get(kind, self.prices["exp"]) * amount for kind, amount in work.items())


def this_machine(dtype: str = "float32") -> CostModel:
    """The model of this machine, loaded from disk, or measured in about ten seconds."""
    # Prices depend on how work is counted, so the source of the counting function is part of the key.
    parts = [host().identity, dtype, repr(FITTED), repr(list(FUNCTIONS)), getsource(workload)]
    identity = sha256("\n".join(parts).encode()).hexdigest()
    path = cache_folder("alphagrad") / "cost_models" / f"{identity[:24]}.json"
    with suppress(OSError, ValueError, TypeError):
        return CostModel(**json.loads(path.read_text(encoding="utf-8")))
    model = calibrate(dtype)
    # If nothing can be written, the model is measured again next time.
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, json.dumps(asdict(model)) + "\n")
    return model


def calibrate(dtype: str = "float32") -> CostModel:
    """Measure kernels and fit the prices."""
    threads = set_threads(1)
    try:
        with jax.enable_x64(dtype == "float64"):
            functions = _function_prices(dtype)
            works, times = zip(*_measured_kernels(dtype), strict=True)
    finally:
        set_threads(threads)
    known = np.array([sum(functions.get(kind, 0.0) * n for kind, n in work.items()) for work in works])
    matrix = np.array([[*(work[kind] for kind in FITTED), 1.0] for work in works])
    # Relative errors count, so that small kernels matter as much as large ones.
    scale = 1 / np.array(times)
    fitted, _ = nnls(matrix * scale[:, None], np.maximum(np.array(times) - known, 0.0) * scale)
    prices = {**functions, **dict(zip((*FITTED, "call"), map(float, fitted), strict=True))}
    predicted = known + matrix @ fitted
    return CostModel(dtype, prices, rank_correlation(predicted, times))


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's rank correlation."""
    from scipy.stats import spearmanr

    varied = len(set(one)) > 1 and len(set(other)) > 1
    return float(spearmanr(one, other).statistic) if varied else float("nan")


def _function_prices(dtype: str) -> dict[str, float]:
    """Nanoseconds per link, from the time difference between a long and a short chain of each operation."""
    x, y = (jnp.full(POINTS, value, dtype) for value in (0.7, 1.3))
    compiled = {
        (name, length): jax.jit(jax.vmap(partial(_natively, partial(_chains, function, length))))
        for name, function in FUNCTIONS.items()
        for length in LENGTHS
    }
    least = measured({key: partial(function, x, y) for key, function in compiled.items()}, REPEAT)
    short, long = LENGTHS
    links = CHAINS * (long - short) * POINTS
    return {name: max(1e9 * (least[name, long] - least[name, short]) / links, 0.0) for name in FUNCTIONS}


def _natively(function: Callable, *args: Any) -> Any:
    return run(function, args, "native")


def _chains(function: Callable, length: int, x: Any, y: Any) -> Any:
    """Several chains side by side, so that no operation waits for the one before."""
    values = [x * (1 + 0.1 * number) for number in range(CHAINS)]
    for _ in range(length):
        values = [function(value, y) for value in values]
    return sum(values)


def _measured_kernels(dtype: str) -> Iterator[tuple[Workload, float]]:
    """Yield the work and the nanoseconds per point of Jacobians of two tasks, in presets and in random orders."""
    rng = np.random.default_rng(0)
    calls, works = {}, {}
    for name in ("RoeFlux_1d", "RobotArm_6DOF"):
        task = TASKS[name]
        example = tuple(jnp.asarray(value, dtype) for value in task.arguments())
        points = [repeated(POINTS, value) for value in example]
        for number, order in enumerate(_orders(task.graph(), rng)):
            jacobian = gx.jacve(task.function, task.argnums, order=order, backend="native")
            calls[name, number] = partial(jax.jit(jax.vmap(jacobian, in_axes=task.batch_axes)), *points)
            works[name, number] = workload(kernel_statements(task.function, example, order, task.argnums))
    least = measured(calls, REPEAT)
    for key, work in works.items():
        yield work, 1e9 * least[key] / POINTS


def _orders(graph: gx.ComputationGraph, rng: np.random.Generator) -> Iterator[Any]:
    """Yield good, usual and poor orders: three presets, the best preset, and variations of the best one."""
    yield from ("rev", "markowitz", "fwd")
    best = preset_vertices("auto", graph)
    for number in range(ORDERS_FITTED):
        moved = list(best)
        for _ in range(number * len(best) // ORDERS_FITTED):
            moved.insert(int(rng.integers(len(moved))), moved.pop(int(rng.integers(len(moved)))))
        yield moved


def repeated(batch: int, value: Any) -> jax.Array:
    """The value at each of ``batch`` points, in separate memory."""
    value = jnp.asarray(value)
    return jnp.broadcast_to(value, (batch, *value.shape)) + jnp.zeros((), value.dtype)


def measured(calls: Mapping[Any, Callable[[], Any]], repeat: int, limit: float = 60.0) -> dict[Any, float]:
    """The minimum seconds of each call.

    Calls take turns. Other load on the machine makes calls slower, never faster.
    """
    seconds: dict[Any, list[float]] = {name: [] for name in calls}
    waiting = {name: lambda call=call: jax.block_until_ready(call()) for name, call in calls.items()}
    for call in waiting.values():
        call()
    take_turns(waiting, seconds, repeat, limit)
    return {name: min(times) for name, times in seconds.items()}
