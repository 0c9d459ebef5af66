"""Searches, orders, training runs and benchmarks, drawn with matplotlib. Each function returns a figure and its axes.

from alphagrad import plot, search

fig, ax = plot.search_history(search(f, *xs))              # the best cost over time, and the bound
fig, ax = plot.cost_over_time(f, *xs, budget=2)            # the same for all finders, side by side
fig, ax = plot.order_comparison(f, *xs)                    # the cost of orders after each elimination
fig, ax = plot.learning_curve("runs/alphazero-RoeFlux_1d-0")
fig, ax = plot.batch_scaling("bench.json")
fig.savefig("figure.svg")
"""

try:
    import matplotlib.figure
except ModuleNotFoundError as missing:
    message = "alphagrad.plot needs matplotlib: pip install 'graphax-alphagrad[plot]'"
    raise ImportError(message, name="matplotlib") from missing

from .batches import batch_scaling
from .eliminations import order_comparison
from .learning import learning_curve
from .searches import cost_over_time, search_history

__all__ = ["batch_scaling", "cost_over_time", "learning_curve", "order_comparison", "search_history"]
