"""Explanations of what `jacve` does, as readable text and as data."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

from .accuracy import Accuracy, accuracy as measure
from .backend import Backend, BackendChoice, choice_of_kernel
from .bundles import AnyEdge
from .graph import ComputationGraph, Vertex
from .order import Order, OrderLike
from .pipeline import Pipeline
from .plan import Cost, Plan
from .presets import BASELINES
from .table import table
from .trace import Request

# Eliminations shown in full by `str(explanation)`; all are in `explanation.eliminations`.
_SHOWN = 40


@dataclass(frozen=True)
class EliminationRow:
    """The cost of eliminating one vertex."""

    vertex: Vertex
    predecessors: int
    successors: int
    multiplications: int
    additions: int
    structures: tuple[str, ...]


@dataclass(frozen=True)
class ResultRow:
    """One block of the Jacobian. ``structure`` is None if the output does not depend on the input."""

    output: int
    inp: str
    structure: AnyEdge | None
    stored: int
    entries: int


@dataclass(frozen=True, eq=False)
class Explanation:
    """An explanation of an elimination order. Prints as a table.

    Attributes:
        graph, plan: the graph of the function and the plan of the order.
        order: the order and where it comes from.
        costs: folded and raw cost of the order (under a key that begins with ``"this order"``) and of forward,
            reverse and Markowitz.
        backend: the backend that runs the Jacobian, and why.
        accuracy: the rounding error at the given arguments, if requested.
        kernel: the backend that runs the function itself, and why, if it was made by `kernel`.
    """

    graph: ComputationGraph
    plan: Plan
    order: Order
    costs: dict[str, tuple[Cost, Cost]]
    backend: BackendChoice
    accuracy: Accuracy | None
    kernel: BackendChoice | None = None

    @property
    def eliminations(self) -> list[EliminationRow]:
        """The cost of each elimination, in order."""
        rows = []
        for number, steps in self.plan.by_vertex():
            rows.append(
                EliminationRow(
                    self.graph.vertices[number],
                    len({step.edge[1] for step in steps}),
                    len({step.edge[0] for step in steps}),
                    sum(step.multiplications("folded") for step in steps),
                    sum(step.operation.additions for step in steps),
                    tuple(dict.fromkeys(map(str, {step.edge: step.structure for step in steps}.values()))),
                )
            )
        return rows

    @property
    def results(self) -> list[ResultRow]:
        """The blocks of the Jacobian by output and input: their structures and the number of values they store."""
        rows = []
        for position, output in enumerate(self.graph.outputs):
            for number in self.graph.inputs:
                vertex = self.graph.vertices[number]
                structure = None if output is None else self.plan.results.get((output, number))
                entries = 0 if output is None else prod(self.graph.vertices[output].shape) * prod(vertex.shape)
                rows.append(ResultRow(position, vertex.name, structure, structure.stored if structure else 0, entries))
        return rows

    @property
    def fallbacks(self) -> list[tuple[Vertex, Vertex, AnyEdge]]:
        """(value, operand, structure) for each local block whose values come from applying the linear map to tangents.

        This happens where a primitive in the map has no complete rule.
        """
        vertices, edges = self.graph.vertices, self.graph.edges
        return [(vertices[k], vertices[j], edges[k, j]) for k, j in self.graph.dense_fallbacks]

    def __str__(self):
        return "\n\n".join(
            part
            for part in (
                f"{self.graph!r}" + ("\n(common subexpressions removed)" if self.graph.simplified else ""),
                self._costs_table(),
                self._eliminations_table(),
                self._loops_table(),
                self._results_table(),
                self._fallbacks_table(),
                str(self.backend) + (f"\n{self.accuracy}" if self.accuracy else ""),
                f"The function itself, without its Jacobian\n{self.kernel}" if self.kernel else "",
            )
            if part
        )

    def _costs_table(self) -> str:
        rows = [
            [name, folded.multiplications, folded.additions, folded.peak, raw.multiplications]
            for name, (folded, raw) in self.costs.items()
        ]
        names = ["order", "multiplications", "additions", "peak live", "raw multiplications"]
        text = table("Cost of accumulating the Jacobian", names, rows)
        return "\n".join([text, *self._about_the_order()])

    def _about_the_order(self) -> list[str]:
        """How the order was chosen, or how good it is known to be."""
        if self.order.cost is not None and self.order.bound:
            return [f"This order is from a search: {_origin(self.order)}."]
        return ['"auto" chooses by operations: multiplications and additions.'] if self.order.finder == "auto" else []

    def _eliminations_table(self) -> str:
        rows = [
            [row.vertex.number, row.vertex.name, _shape(row.vertex.shape), f"{row.predecessors}×{row.successors}",
             row.multiplications, row.additions, _few(row.structures), _tail(row.vertex.source)]
            for row in self.eliminations[:_SHOWN]
        ]  # fmt: skip
        rest = len(self.plan.order) - _SHOWN
        if rest > 0:
            rows.append(["...", f"{rest} more", "", "", "", "", "", ""])
        names = ["vertex", "operation", "shape", "in×out", "mul", "add", "new blocks", "source"]
        return table("Eliminations, in order", names, rows) if rows else "Nothing to eliminate."

    def _loops_table(self) -> str:
        rows = []
        for number, passing in self.plan.passings:
            # An edge pulled through a loop of unknown length meets the Jacobian of the loop, which is carried forward.
            way = "forward" if passing.forward or passing.unbounded else "backward"
            steps = f"any ({passing.length} counted)" if passing.unbounded else passing.length
            counts = [passing.multiplications // passing.length, passing.additions // passing.length]
            source = _tail(self.graph.vertices[number].source)
            rows.append([number, way, steps, _origin(passing.how.order), *counts, passing.moved // 2, source])
        names = ["vertex", "way", "steps", "order of a step", "mul a step", "add a step", "numbers kept", "source"]
        return table("Loops: which way derivatives are carried through them", names, rows) if rows else ""

    def _results_table(self) -> str:
        rows = [
            [row.output, row.inp, str(row.structure) if row.structure else "zero", row.stored, row.entries]
            for row in self.results
        ]
        return table(
            "Blocks of the Jacobian (v: values, then their labels; a label on both sides is a delta)",
            ["output", "input", "block", "stored", "entries"],
            rows,
        )

    def _fallbacks_table(self) -> str:
        rows = [
            [value.number, value.name, operand.number, str(structure), _tail(value.source)]
            for value, operand, structure in self.fallbacks
        ]
        title = "Local blocks found by applying the linear map to tangents (no complete structure rule)"
        return table(title, ["vertex", "operation", "by vertex", "block", "source"], rows) if rows else ""


def explain(
    function: Callable[..., object],
    *args: Any,
    order: OrderLike = "auto",
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    backend: Backend = "auto",
    accuracy: bool = False,
    **kwargs: Any,
) -> Explanation:
    """Explain how `jacve` computes a Jacobian with this order, and compare the cost of other orders.

    Print the result for a table, or read its attributes. With ``accuracy``, the Jacobian is computed in single and in
    double precision to report the rounding error of the order at these arguments. For a function made by `kernel`, the
    explanation also says which backend runs the function itself.
    """
    pipeline = Pipeline(function, args, kwargs, Request(argnums, has_aux), order)
    label = f"this order ({order})" if isinstance(order, str) else "this order"
    plans = {label: pipeline.plan} | {name: pipeline.graph.plan(name) for name in BASELINES}
    costs = {name: (plan.cost(), plan.cost("raw")) for name, plan in plans.items()}
    called = partial(function, **kwargs) if kwargs else function
    loss = measure(called, args, order, argnums, has_aux) if accuracy else None
    itself = choice_of_kernel(function, args, kwargs)
    return Explanation(pipeline.graph, pipeline.plan, pipeline.order, costs, pipeline.choice(backend), loss, itself)


def _shape(shape: Sequence[int]) -> str:
    return "×".join(map(str, shape)) or "scalar"


def _origin(order: Order) -> str:
    """Where an order comes from and how good it is known to be."""
    if order.cost is None or not order.bound:
        return order.finder
    return f"{order.finder} ({'optimal' if order.cost <= order.bound else f'{order.cost:g}, at least {order.bound:g}'})"


def _few(texts: Sequence[str]) -> str:
    return "  ".join(texts[:3]) + ("  ..." if len(texts) > 3 else "")


def _tail(source: str) -> str:
    """The last two parts of a path, which readers recognise."""
    path, _, rest = source.partition(" ")
    return "/".join(path.split("/")[-2:]) + (f" {rest}" if rest else "")
