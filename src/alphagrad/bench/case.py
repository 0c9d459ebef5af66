"""Benchmark cases: tasks at several array and batch sizes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import jax
import numpy as np

from .. import tasks
from ..errors import TaskError
from ..tasks.task import Arguments, Task

DTYPES = ("float32", "float64")
# Both are stated in table 2 of the paper.
BATCH, NETWORK_SCALE = 512, 16
# The paper draws its figures over batches without stating which.
FIGURE_BATCHES = (1, 8, 64, 512, 4096, 65536)
MIDDLE_BATCHES = (1, 64, 4096)
FIGURE_SCALES = (1, 2, 4, 8, 16)
# Networks are scaled together with their batch, which starts at this size.
FIRST_BATCH = 8
# Jacobians with more numbers are left out of the figures; that of random_f has 2,600 per point.
LARGEST_JACOBIAN = 1 << 26
SINGLE_SAMPLE = ("TransformerEncoder", "BatchedTransformer")
# The relative spread of the points of a batch around the example.
SPREAD = 0.02


@dataclass(frozen=True)
class Case:
    """A task on a batch. A batch of one is the function itself, without `jax.vmap`."""

    task: Task
    batch: int
    scale: int = 1
    dtype: str = "float32"

    def __str__(self):
        size = f", sizes ×{self.scale}" if self.scale > 1 else ""
        return f"{self.task.name}, batch {self.batch:,}{size}, {self.dtype}"

    @property
    def label(self) -> str:
        """The task and its scale, for tables with the batch in another column."""
        return f"{self.task.name} ×{self.scale}" if self.scale > 1 else self.task.name

    def as_dict(self) -> dict[str, Any]:
        return {"task": self.task.name, "batch": self.batch, "scale": self.scale, "dtype": self.dtype}

    @property
    def function(self) -> Callable:
        return self.task.function

    @cached_property
    def points(self) -> Arguments:
        """The arguments of the whole batch, the same in every run."""
        rng = np.random.default_rng(0)
        return tuple(
            of_dtype(_around(x, self.batch, rng) if has_batch else x, self.dtype)
            for x, has_batch in zip(self.task.arguments(self.scale), self.batched, strict=True)
        )

    def first(self, count: int) -> Arguments:
        """The arguments of the first ``count`` points of the batch."""
        return tuple(x[:count] if has_batch else x for x, has_batch in zip(self.points, self.batched, strict=True))

    @property
    def batched(self) -> tuple[bool, ...]:
        """Which arguments differ between points."""
        return tuple(axis is not None and self.batch > 1 for axis in self.task.batch_axes)

    def over_batch(self, function: Callable) -> Callable:
        """Map a function of one point over the batch."""
        axes = tuple(0 if has_batch else None for has_batch in self.batched)
        return jax.vmap(function, in_axes=axes) if self.batch > 1 else function

    def shapes(self) -> list[Any]:
        """The shapes and dtypes of the arrays of the Jacobian, in JAX's order."""
        jacobian = self.over_batch(jax.jacrev(self.function, self.task.argnums))
        return jax.tree.leaves(jax.eval_shape(jacobian, *self.points))


def _around(x: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """``count`` points near ``x``. Whole numbers are the same at all of them."""
    shape = (count, *x.shape)
    return x * (1 + SPREAD * rng.normal(size=shape)) if _is_real(x) else np.broadcast_to(x, shape)


def of_dtype(x: np.ndarray, dtype: str) -> np.ndarray:
    """Real numbers in the measured precision; whole numbers unchanged."""
    return np.asarray(x, dtype) if _is_real(x) else x


def _is_real(x: np.ndarray) -> bool:
    return jax.dtypes.issubdtype(x.dtype, np.floating)


def of_table(chosen: Sequence[Task], dtype: str = DTYPES[0]) -> list[Case]:
    """The cases of table 2 of the paper.

    The batch is 512, networks are sixteen times as large, and transformers run on one sample.
    """
    return [
        Case(task, 1 if task.name in SINGLE_SAMPLE else BATCH, NETWORK_SCALE if has_sizes(task) else 1, dtype)
        for task in chosen
    ]


def of_figures(chosen: Sequence[Task], dtype: str = DTYPES[0]) -> list[Case]:
    """The cases of the figures of the paper: over batches and, for networks, over sizes with growing batches."""
    cases = []
    for task in chosen:
        if has_sizes(task):
            single = task.name in SINGLE_SAMPLE
            cases += [Case(task, 1 if single else FIRST_BATCH * scale, scale, dtype) for scale in FIGURE_SCALES]
        else:
            entries = sum(prod(shape.shape) for shape in Case(task, 1).shapes())
            cases += [Case(task, n, 1, dtype) for n in FIGURE_BATCHES if n * entries <= LARGEST_JACOBIAN]
    return cases


def of_paper(chosen: Sequence[Task], dtype: str = DTYPES[0]) -> list[Case]:
    """All sizes and batches of the paper, without duplicates."""
    cases = []
    for task in chosen:
        found = {(case.batch, case.scale): case for case in of_figures([task], dtype) + of_table([task], dtype)}
        cases += [found[key] for key in sorted(found)]
    return cases


def of_promise(chosen: Sequence[Task], dtype: str = DTYPES[0]) -> list[Case]:
    """All sizes and batches of the paper's tasks; functions of middle size at one, some and many points."""
    cases = []
    for task in chosen:
        middle = task.name in tasks.MIDDLE
        cases += [Case(task, n, 1, dtype) for n in MIDDLE_BATCHES] if middle else of_paper([task], dtype)
    return cases


def has_sizes(task: Task) -> bool:
    """Whether the task changes with the scale."""
    shapes = [[x.shape for x in task.arguments(scale)] for scale in (1, 2)]
    return shapes[0] != shapes[1]


def checked_scale(task: Task, scale: int) -> int:
    if scale > 1 and not has_sizes(task):
        sized = [name for name, other in (tasks.TASKS | tasks.UNSEEN | tasks.MIDDLE).items() if has_sizes(other)]
        raise TaskError(f"--scale {scale}: {task.name} has no sizes to multiply; those that have: {', '.join(sized)}")
    return scale
