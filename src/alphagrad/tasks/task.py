"""A task: a function with an example point, and what the paper measured for it."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib import import_module, resources
from typing import Any

import numpy as np

import graphax as gx

from ..errors import TaskError

Arguments = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class PaperResult:
    """What the paper reports on a task: raw multiplications, and median runtimes in milliseconds.

    The runtimes are those of forward, reverse, Markowitz and the paper's own order. An order consists of vertex numbers
    of the paper's graph, which for some tasks differs from ours.
    """

    forward: int
    reverse: int
    markowitz: int
    alphagrad: int
    order: tuple[int, ...] | None
    runtimes_ms: tuple[float, ...] | None
    gpu_runtimes_ms: tuple[float, ...] | None


@dataclass(frozen=True)
class Task:
    """A function to find elimination orders for.

    Attributes:
        name: the name of the task, as in the paper.
        description: what the function computes, in one line.
        field: the field that the function comes from.
        function: maps positional arrays to an array or a tuple of them.
        make_args: maps a scale and a seed to arguments at which values and derivatives are finite. Tasks without sizes
            ignore the scale.
        argnums: the arguments to differentiate with respect to.
        batch_axes: ``in_axes`` for `jax.vmap` to run the task on a batch.
    """

    name: str
    description: str
    field: str
    function: Callable
    make_args: Callable[..., Arguments]
    argnums: tuple[int, ...]
    batch_axes: tuple[int | None, ...]

    @property
    def paper(self) -> PaperResult | None:
        """The paper's results, or None for a task that is not in it."""
        return _paper_results().get(self.name)

    @property
    def place(self) -> tuple[str, str]:
        """The module and the name that the function is imported from."""
        if isinstance(self.function, LateFunction):
            return self.function.module, self.function.name
        return self.function.__module__, self.function.__qualname__

    @property
    def sizes(self) -> tuple[int, int | None, int]:
        """The numbers of inputs, intermediate vertices and outputs, known without tracing the function.

        The second is None if it depends on the version of JAX. Only tasks that `alphagrad tasks` lists have sizes.
        """
        return _sizes()[self.name]

    def arguments(self, scale: int = 1, seed: int = 0) -> Arguments:
        """Example arguments. Every seed gives another point."""
        if scale < 1:
            raise TaskError(f"the scale of a task, which multiplies its sizes, must be at least 1, but is {scale}")
        return self.make_args(scale, seed)

    def graph(self, simplify: bool = False, scale: int = 1) -> "gx.ComputationGraph":
        """The computational graph at the shapes of the example arguments."""
        return gx.build_graph(self.function, *self.arguments(scale), argnums=self.argnums, simplify=simplify)


@dataclass(frozen=True)
class LateFunction:
    """A function whose module is imported when the function is first called, because importing JAX takes long."""

    module: str
    name: str

    @cached_property
    def __wrapped__(self) -> Callable:
        return getattr(import_module(self.module), self.name)

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, *args: Any) -> Any:
        return self.__wrapped__(*args)


@dataclass(frozen=True)
class FunctionsOf:
    """The functions of a module of this package, as attributes. The module is not imported yet."""

    module: str

    def __getattr__(self, name: str) -> LateFunction:
        if name.startswith("__"):
            raise AttributeError(name)
        return LateFunction(f"{__package__}.{self.module}", name)


def on_batches(name: str, field: str, function: Callable, description: str, *centre: Any) -> Task:
    """A task that differentiates with respect to every argument. Each element of a batch has its own arguments."""
    inputs = len(centre)
    return Task(name, description, field, function, partial(around, centre), tuple(range(inputs)), (0,) * inputs)


def by_name(*tasks: Task) -> dict[str, Task]:
    return {task.name: task for task in tasks}


def around(centre: tuple[Any, ...], scale: int = 1, seed: int = 0) -> Arguments:
    """A point whose entries differ from those of ``centre`` by up to five percent."""
    rng = np.random.Generator(np.random.PCG64(seed))
    values = [np.asarray(value, float) for value in centre]
    return tuple(np.asarray(value * (1 + 0.05 * (2 * rng.random(value.shape) - 1))) for value in values)


def _shipped(name: str) -> Any:
    return json.loads((resources.files(__package__) / name).read_text(encoding="utf-8"))


@cache
def _sizes() -> dict[str, tuple[int, int | None, int]]:
    return {name: tuple(sizes) for name, sizes in _shipped("sizes.json").items()}


@cache
def _paper_results() -> dict[str, PaperResult]:
    data: dict[str, dict[str, list]] = _shipped("paper_results.json")
    orders, runtimes = data["elimination_orders"], data["median_runtime_ms_table_2"]
    counts = data["multiplications_table_1"]
    rest = {name: (orders.get(name), runtimes.get(name), runtimes.get(f"{name}_gpu")) for name in counts}
    return {name: PaperResult(*counts[name], *map(_as_tuple, rest[name])) for name in counts}


def _as_tuple(values: list | None) -> tuple | None:
    return None if values is None else tuple(values)
