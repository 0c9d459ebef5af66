"""Orders: their cost after each elimination."""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

from matplotlib.figure import Figure

from graphax import Order

from ..errors import SearchError
from ..finders.search import graph_of
from ..page.view import DEFAULT_ORDERS, View, make_view
from .lines import colour, draw_bound


def order_comparison(
    target: Any,
    *args: Any,
    orders: Sequence[Any] = DEFAULT_ORDERS,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    simplify: bool = False,
    counting: str = "folded",
    budget: Any = 1.0,
) -> tuple[Figure, Any]:
    """Draw the multiplications up to each elimination along several orders. Returns the figure and its axes.

    Args:
        target, args, argnums, has_aux, simplify, counting: as in `alphagrad.search`.
        orders: anything that ``jacve(order=...)`` accepts, and ``"best"``: the result of a search that starts from the
            best order on record.
        budget: the budget of that search.
    """
    several = isinstance(orders, Iterable) and not isinstance(orders, str | Order)
    names = list(orders) if several else [orders]
    if not names:
        raise SearchError("there is no order to draw; name at least one, such as orders=('fwd', 'rev', 'best')")
    graph = graph_of(target, args, argnums, has_aux, simplify)
    return draw_orders(make_view("", graph, counting, names, budget))


def draw_orders(view: View) -> tuple[Figure, Any]:
    """Like `order_comparison`, for the orders of a view."""
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    for number, replay in enumerate(view.replays):
        total = replay.cost.multiplications
        costs = [0, *accumulate(move.multiplications for move in replay.moves)]
        axes.plot(costs, drawstyle="steps-post", color=colour(number), label=f"{replay.name}, {total:,}")
        axes.plot(len(costs) - 1, total, marker="o", markersize=3, color=colour(number))
    draw_bound(axes, view.bound)
    axes.set(xlabel="vertices eliminated", ylabel=f"multiplications ({view.counting})", title=view.title)
    axes.legend()
    return figure, axes
