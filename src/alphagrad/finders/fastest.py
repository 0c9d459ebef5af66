"""The search for the fastest order: first by counts, then by a model of the machine, and finally by measurements."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

import graphax as gx
from graphax import ComputationGraph, NativeError, Order
from graphax.presets import BASELINES, PRESETS
from graphax.table import table

from ..elimination.objective import FUSED
from ..errors import SearchError
from ..runtime.cost_model import CostModel, measured, rank_correlation, repeated, this_machine
from ..runtime.workload import kernel_statements, workload
from .bodies import search_bodies
from .budget import Budget, Progress
from .result import SearchResult
from .run import Trial, run

# The number of searches, their share of the time, and the number of orders that are measured.
TRIALS, SEARCHING, MEASURED = 8, 0.6, 6
REPEAT = 200
BATCH = 16_384


@dataclass(frozen=True)
class MappedFunction:
    """The Jacobian of a function at many points at once, whose run time is to be minimised.

    Attributes:
        function, args, argnums, has_aux: as in `graphax.jacve`.
        batch_axes: ``in_axes`` of `jax.vmap`. Arguments without an axis are the same for all points.
        batch: the number of points.
    """

    function: Callable
    args: tuple[Any, ...]
    argnums: int | Sequence[int]
    has_aux: bool
    batch_axes: tuple[int | None, ...]
    batch: int = BATCH

    @property
    def dtype(self) -> str:
        return str(jnp.result_type(*jax.tree.leaves(self.args)))

    def call(self, order: Any) -> Callable[[], Any]:
        """A function that computes the Jacobian at all points."""
        jacobian = gx.jacve(self.function, self.argnums, self.has_aux, order=order)
        points = [
            value if axis is None else jax.tree.map(partial(repeated, self.batch), value)
            for value, axis in zip(self.args, self.batch_axes, strict=True)
        ]
        return partial(jax.jit(jax.vmap(jacobian, in_axes=self.batch_axes)), *points)


@dataclass(frozen=True)
class Candidate:
    """An order with its predicted and measured nanoseconds per point; None if not known."""

    order: Order
    predicted: float | None
    measured: float | None = None


@dataclass(frozen=True, eq=False)
class RuntimeResult(SearchResult):
    """A `SearchResult` whose order is the fastest of those measured.

    Attributes:
        candidates: all candidates, fastest first, with those that were not measured last.
        batch: the number of points at which they were measured.
    """

    candidates: tuple[Candidate, ...]
    batch: int

    @property
    def nanoseconds(self) -> float:
        """The measured time of the Jacobian per point."""
        return self.candidates[0].measured or math.nan

    @property
    def rank_correlation(self) -> float:
        """The rank correlation between predictions of the model and measurements."""
        pairs = [(c.predicted, c.measured) for c in self.candidates if c.predicted and c.measured]
        return rank_correlation(*zip(*pairs, strict=True)) if len(pairs) > 1 else math.nan

    def as_dict(self) -> dict[str, Any]:
        return {
            **super().as_dict(),
            "nanoseconds_per_point": self.nanoseconds,
            "batch": self.batch,
            "rank_correlation": self.rank_correlation,
            "candidates": [asdict(candidate) for candidate in self.candidates],
        }

    def __str__(self):
        rows = [
            [c.order.finder, f"{c.order.cost:g}", _shown(c.predicted), _shown(c.measured)]
            for c in self.candidates
            if c.measured is not None
        ]
        columns = ["order", str(self.objective), "predicted ns a point", "measured ns a point"]
        text = table(f"{len(self.graph.intermediates)} vertices, {self.batch:,} points at once", columns, rows)
        return (
            f"{text}\nfastest: {self.nanoseconds:.3g} ns per point; rank correlation of predicted and measured times "
            f"{self.rank_correlation:.2f}; {self.evaluations:,} orders in {self.seconds:.1f} s, seed {self.order.seed}"
        )


def _shown(nanoseconds: float | None) -> str:
    return "" if nanoseconds is None else f"{nanoseconds:.3g}"


def fastest(target: MappedFunction, trial: Trial, progress: Callable[[Progress], None] | None) -> RuntimeResult:
    """Search by counts, rank the orders by the model, and measure the best few.

    Ctrl-C ends the search, or the measurements, with the best order so far.
    """
    graph, budget = trial.graph, trial.budget
    if budget.seconds is None:
        raise SearchError("minimize='runtime' ends with measurements, so it needs a budget of seconds")
    began = time.monotonic()
    model = _model(target)
    results, stopped = [], "budget"
    share = Budget(max(0.05, budget.seconds * SEARCHING / TRIALS), budget.evaluations)
    for number in range(TRIALS):
        results.append(search_bodies(replace(trial, budget=share, seed=trial.seed + number), run, progress))
        if results[-1].stopped == "interrupted":
            stopped = "interrupted"
            break
    orders = _distinct([*(result.order for result in results), *trial.starts, *_presets(graph)])
    candidates = [_predicted(target, model, order) for order in orders]
    ranked = sorted(candidates, key=lambda c: (math.inf if c.predicted is None else c.predicted, c.order.cost))
    try:
        timed = _measured(target, ranked, max(0.5, budget.seconds - (time.monotonic() - began)))
    except KeyboardInterrupt:
        timed, stopped = ranked, "interrupted"
    best = timed[0].order
    cost = graph.cost(best, FUSED.counting)
    return RuntimeResult(
        order=best,
        cost=cost,
        value=FUSED.value(cost),
        bound=results[0].bound,
        objective=FUSED,
        history=(),
        evaluations=sum(result.evaluations for result in results),
        seconds=time.monotonic() - began,
        stopped=stopped,
        graph=graph,
        candidates=tuple(timed),
        batch=target.batch,
    )


def _model(target: MappedFunction) -> CostModel | None:
    """The cost model of this machine; None if there is no native backend to model."""
    if jax.default_backend() != "cpu" or target.dtype not in ("float32", "float64"):
        return None
    with suppress(NativeError):
        return this_machine(target.dtype)
    return None


def _presets(graph: ComputationGraph) -> Iterator[Order]:
    for name in (*BASELINES, *(name for name in PRESETS if name not in BASELINES)):
        order = Order.of(name, graph)
        yield graph.order(order.vertices, finder=name, cost=FUSED.value(graph.cost(order)))


def _distinct(orders: Sequence[Order]) -> list[Order]:
    return list({(order.vertices, order.bodies): order for order in reversed(orders)}.values())[::-1]


def _predicted(target: MappedFunction, model: CostModel | None, order: Order) -> Candidate:
    with suppress(NativeError):
        if model is not None:
            program = kernel_statements(target.function, target.args, order, target.argnums, target.has_aux)
            return Candidate(order, model.predict(workload(program)))
    return Candidate(order, None)


def _measured(target: MappedFunction, ranked: list[Candidate], seconds: float) -> list[Candidate]:
    """The best few candidates and the baselines with their measured times, fastest first; then the others."""
    chosen = [c for n, c in enumerate(ranked) if n < MEASURED or c.order.finder in BASELINES]
    calls = {number: target.call(candidate.order) for number, candidate in enumerate(chosen)}
    least = measured(calls, REPEAT, seconds)
    timed = [replace(c, measured=1e9 * least[number] / target.batch) for number, c in enumerate(chosen)]
    return [*sorted(timed, key=lambda c: c.measured or math.inf), *(c for c in ranked if c not in chosen)]
