"""Elimination orders with fingerprints, and all ways to specify one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .body_orders import refined_bodies
from .errors import FingerprintError, OrderError
from .presets import PRESETS, preset_vertices

if TYPE_CHECKING:
    from .graph import ComputationGraph


@dataclass(frozen=True)
class Order:
    """An elimination order for one graph.

    Attributes:
        vertices: the numbers of the vertices, in order of elimination.
        fingerprint: the fingerprint of the graph that the order was made for; empty for an order of unknown origin.
        finder, seed, cost, bound: the origin of the order, and its known cost and bound.
        simplified: True if the vertex numbers are those of the simplified graph.
        form: the form of the graph, see `ComputationGraph.form`; empty if unknown. An order also fits a graph of the
            same form with other vertex numbers, which results if more or fewer arguments are known when it is traced.
        bodies: orders for the bodies of loops, each with the vertex at whose elimination the loop is passed. May be
            given as a dictionary. Steps of other loops are planned by the cheapest of a few presets.
    """

    vertices: tuple[int, ...]
    fingerprint: str = ""
    finder: str = ""
    seed: int | None = None
    cost: float | None = None
    bound: float | None = None
    simplified: bool = False
    bodies: tuple[tuple[int, Order], ...] = ()
    form: str = ""

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "vertices", tuple(index(vertex) for vertex in self.vertices))
        except TypeError:
            raise OrderError(
                f"an Order holds vertex numbers, such as (3, 1, 2), but was given {self.vertices!r}"
            ) from None
        object.__setattr__(self, "bodies", _bodies(self.bodies))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the order as JSON."""
        name = os.fspath(path)
        try:
            Path(name).write_text(json.dumps(asdict(self), default=index) + "\n")
        except OSError as error:
            raise OrderError(f"the order file {name!r} cannot be written: {error.strerror}") from None

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Order:
        """Read an order that `save` wrote."""
        name = os.fspath(path)
        try:
            return Order(**json.loads(Path(name).read_text()))
        except FileNotFoundError:
            raise OrderError(f"there is no order file {name!r}") from None
        except OSError as error:
            raise OrderError(f"the order file {name!r} cannot be read: {error.strerror}") from None
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise OrderError(
                f"{name!r} is not a saved order ({type(error).__name__}: {error}). Orders are JSON files "
                f"written by Order.save."
            ) from None

    @staticmethod
    def of(order: OrderLike, graph: ComputationGraph) -> Order:
        """Turn any specification of an order into an `Order` that fits ``graph``.

        A specification is a preset name, a path to a saved order, an `Order`, a sequence of vertex numbers, or a
        finder: any function that maps a graph to one of the last two.
        """
        order = loaded(order)
        if isinstance(order, str):
            vertices = preset_vertices(order, graph)
            bodies = refined_bodies(graph, vertices) if order == "auto" and graph.has_loops else ()
            return graph.order(vertices, finder=order, bodies=bodies)
        found = order(graph) if callable(order) else order
        return _checked(found if isinstance(found, Order) and found.fingerprint else _explicit(found, graph), graph)

    def fits(self, graph: ComputationGraph) -> bool:
        """Whether the order was made for this graph, for one of the same form, or for no graph in particular."""
        return self.fingerprint in ("", graph.fingerprint) or self.form == graph.form

    def __len__(self) -> int:
        return len(self.vertices)

    def __iter__(self) -> Iterator[int]:
        return iter(self.vertices)


OrderLike = str | os.PathLike[str] | Sequence[int] | Order | Callable[["ComputationGraph"], Iterable[int]]
"""An elimination order: the name of a preset, the path of a saved order, vertex numbers, an `Order`, or a function from
the graph to one of the last two."""


def loaded(order: Any) -> Any:
    """``order``, read from its file if it is a path."""
    is_path = isinstance(order, os.PathLike) or (isinstance(order, str) and order.endswith(".json"))
    return Order.load(order) if is_path else order


def _bodies(given: Any) -> tuple[tuple[int, Order], ...]:
    """Orders of bodies by vertex, ascending. Orders from a file are still plain data here."""
    pairs: Iterable[Any] = given.items() if isinstance(given, Mapping) else given
    try:
        found = {index(vertex): body if isinstance(body, Order) else Order(**body) for vertex, body in pairs}
    except (TypeError, ValueError) as error:
        raise OrderError(
            f"the bodies of an Order must be Orders by vertex, such as {{4: Order((2, 1))}}, "
            f"but are {given!r} ({error})"
        ) from None
    return tuple(sorted(found.items()))


def _explicit(order: Any, graph: ComputationGraph) -> Order:
    try:
        vertices = tuple(index(vertex) for vertex in order)
    except (TypeError, ValueError):
        raise OrderError(
            f"cannot read {order!r} as an elimination order. It must be one of: a preset ({', '.join(PRESETS)}), "
            f"a sequence of vertex numbers, an Order, the path of a saved one (*.json), or a function of the graph."
        ) from None
    # Vertices that are irrelevant to this Jacobian are allowed: an order for all inputs also serves fewer inputs.
    absent = {v for v in vertices if 1 <= v <= graph.numbered and v not in graph.vertices}
    _check_repeats(vertices)
    known = order if isinstance(order, Order) else Order(vertices, finder="explicit")
    return replace(known, vertices=tuple(v for v in vertices if v not in absent))


def _checked(order: Order, graph: ComputationGraph) -> Order:
    if not order.fits(graph):
        raise FingerprintError(
            f"the order was made for the graph {order.fingerprint} ({len(order)} vertices to eliminate), but this "
            f"function has the graph {graph.fingerprint} ({len(graph.intermediates)} to eliminate). The function, the "
            f"shapes of its arguments, argnums and simplification must be those the order was found with; otherwise "
            f"find an order again."
        )
    if order.fingerprint not in ("", graph.fingerprint):
        order = _renumbered(order, graph)
    _check_repeats(order.vertices)
    given, wanted = set(order.vertices), set(graph.intermediates)
    problems = []
    if given - wanted:
        problems.append(f"vertices that cannot be eliminated: {_listed(given - wanted, graph)}")
    if wanted - given:
        problems.append(f"missing vertices: {_listed(wanted - given, graph)}")
    if problems:
        raise OrderError(
            f"an order must name each of the {len(wanted)} intermediate vertices of the graph once, but has "
            f"{'; '.join(problems)}. graph.intermediates lists the vertices to eliminate."
        )
    return replace(order, fingerprint=graph.fingerprint, simplified=graph.simplified, form=graph.form)


def _renumbered(order: Order, graph: ComputationGraph) -> Order:
    """The order for a graph of the same form, which has the same vertices in the same sequence under other numbers."""
    numbers = dict(zip(sorted(order.vertices), graph.intermediates, strict=False))
    bodies = tuple((numbers.get(vertex, vertex), body) for vertex, body in order.bodies)
    return replace(order, vertices=tuple(numbers.get(v, v) for v in order.vertices), bodies=bodies)


def _check_repeats(vertices: Sequence[int]) -> None:
    repeated = sorted({v for v in vertices if vertices.count(v) > 1}) if len(set(vertices)) < len(vertices) else []
    if repeated:
        raise OrderError(f"an order must name each vertex once, but repeats: {', '.join(map(str, repeated[:10]))}")


def _listed(numbers: set[int], graph: ComputationGraph) -> str:
    def described(number: int) -> str:
        vertex = graph.vertices.get(number)
        return (
            f"{number} ({vertex.kind if vertex.kind != 'intermediate' else vertex.name})"
            if vertex
            else f"{number} (unknown)"
        )

    shown = [described(number) for number in sorted(numbers)[:10]]
    return ", ".join(shown) + (f" and {len(numbers) - 10} more" if len(numbers) > 10 else "")
