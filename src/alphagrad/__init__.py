"""Search for elimination orders for graphax, with lower bounds and certificates.

import alphagrad

r = alphagrad.search(f, *xs, budget=10)      # the best order found, and a lower bound
r.order.save("order.json")
J = graphax.jacve(f, order=r.order)(*xs)
"""

from typing import TYPE_CHECKING

from graphax import __version__ as __version__
from graphax.modules import Moved, lazily

if TYPE_CHECKING:
    from .agents.alphazero import AlphaZeroConfig as AlphaZeroConfig
    from .agents.networks import GraphNetworkConfig as GraphNetworkConfig, NetworkConfig as NetworkConfig
    from .agents.ppo import PPOConfig as PPOConfig
    from .agents.training import TrainingProgress as TrainingProgress, TrainingResult as TrainingResult, train as train
    from .bench.compare import compare as compare
    from .bench.report import BenchmarkReport as BenchmarkReport
    from .elimination.objective import Objective as Objective, ObjectiveLike as ObjectiveLike
    from .errors import (
        AlphagradError as AlphagradError,
        NotEnoughMemoryError as NotEnoughMemoryError,
        SearchError as SearchError,
        TaskError as TaskError,
    )
    from .finders.budget import Budget as Budget, BudgetLike as BudgetLike, Progress as Progress
    from .finders.records import RecordWarning as RecordWarning, best_known as best_known
    from .finders.result import SearchResult as SearchResult
    from .finders.search import search as search

_PLACES = {
    "agents.alphazero": ("AlphaZeroConfig",),
    "agents.networks": ("GraphNetworkConfig", "NetworkConfig"),
    "agents.ppo": ("PPOConfig",),
    "agents.training": ("TrainingProgress", "TrainingResult", "train"),
    "bench.compare": ("compare",),
    "bench.report": ("BenchmarkReport",),
    "elimination.objective": ("Objective", "ObjectiveLike"),
    "errors": ("AlphagradError", "NotEnoughMemoryError", "SearchError", "TaskError"),
    "finders.budget": ("Budget", "BudgetLike", "Progress"),
    "finders.records": ("RecordWarning", "best_known"),
    "finders.result": ("SearchResult",),
    "finders.search": ("search",),
}
__all__ = sorted(name for names in _PLACES.values() for name in names)
# The search needs packages that tasks and the command line do not need, and learning needs more still.
if not TYPE_CHECKING:
    __getattr__ = lazily(__name__, _PLACES, lambda module: "rl" if module.startswith("agents") else "search")
environment = Moved("alphagrad.environment", "alphagrad.game.environment")
