"""Elimination orders for graphax: found in seconds, and certified as far as they can be.

import alphagrad

r = alphagrad.search(f, *xs, budget=10)      # the best order found, and a bound no order can beat
r.order.save("order.json")
J = graphax.jacve(f, order=r.order)(*xs)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .alphazero import AlphaZeroConfig
    from .api import search
    from .budget import Budget, Progress
    from .errors import AlphagradError, NotEnoughMemoryError, SearchError, TaskError
    from .finders.objective import Objective
    from .networks import NetworkConfig
    from .ppo import PPOConfig
    from .records import RecordWarning, best_known
    from .result import SearchResult
    from .training import TrainingProgress, TrainingResult, train

_PLACES = {
    "search": "api",
    "Budget": "budget",
    "Progress": "budget",
    "AlphagradError": "errors",
    "NotEnoughMemoryError": "errors",
    "SearchError": "errors",
    "TaskError": "errors",
    "Objective": "finders.objective",
    "RecordWarning": "records",
    "best_known": "records",
    "SearchResult": "result",
    "AlphaZeroConfig": "alphazero",
    "NetworkConfig": "networks",
    "PPOConfig": "ppo",
    "TrainingProgress": "training",
    "TrainingResult": "training",
    "train": "training",
}
# The modules that need more than the search does.
_LEARNING = ("alphazero", "networks", "ppo", "training")
__all__ = [
    "AlphaZeroConfig",
    "AlphagradError",
    "Budget",
    "NetworkConfig",
    "NotEnoughMemoryError",
    "Objective",
    "PPOConfig",
    "Progress",
    "RecordWarning",
    "SearchError",
    "SearchResult",
    "TaskError",
    "TrainingProgress",
    "TrainingResult",
    "best_known",
    "search",
    "train",
]


def __getattr__(name: str) -> Any:
    """Import what is asked for only then: the search needs packages that tasks and the command line do not."""
    if name not in _PLACES:
        raise AttributeError(f"module 'alphagrad' has no attribute {name!r}")
    try:
        module = import_module(f".{_PLACES[name]}", __name__)
    except ModuleNotFoundError as error:
        extra = "rl" if _PLACES[name] in _LEARNING else "search"
        raise ImportError(
            f"alphagrad.{name} needs {error.name}: pip install 'graphax-alphagrad[{extra}]'", name=error.name
        ) from error
    return getattr(module, name)
