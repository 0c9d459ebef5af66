"""Search for elimination orders for graphax, with lower bounds and certificates.

import alphagrad

r = alphagrad.search(f, *xs, budget=10)      # the best order found, and a lower bound
r.order.save("order.json")
J = graphax.jacve(f, order=r.order)(*xs)
"""

from typing import TYPE_CHECKING

from graphax.modules import Moved, lazily

if TYPE_CHECKING:
    from .agents.alphazero import AlphaZeroConfig
    from .agents.networks import GraphNetworkConfig, NetworkConfig
    from .agents.ppo import PPOConfig
    from .agents.training import TrainingProgress, TrainingResult, train
    from .elimination.objective import Objective
    from .errors import AlphagradError, NotEnoughMemoryError, SearchError, TaskError
    from .finders.budget import Budget, Progress
    from .finders.records import RecordWarning, best_known
    from .finders.result import SearchResult
    from .finders.search import search

_PLACES = {
    "agents.alphazero": ("AlphaZeroConfig",),
    "agents.networks": ("GraphNetworkConfig", "NetworkConfig"),
    "agents.ppo": ("PPOConfig",),
    "agents.training": ("TrainingProgress", "TrainingResult", "train"),
    "elimination.objective": ("Objective",),
    "errors": ("AlphagradError", "NotEnoughMemoryError", "SearchError", "TaskError"),
    "finders.budget": ("Budget", "Progress"),
    "finders.records": ("RecordWarning", "best_known"),
    "finders.result": ("SearchResult",),
    "finders.search": ("search",),
}
__all__ = sorted(name for names in _PLACES.values() for name in names)
# The search needs packages that tasks and the command line do not, and learning needs more.
__getattr__ = lazily(__name__, _PLACES, lambda module: "rl" if module.startswith("agents") else "search")
environment = Moved("alphagrad.environment", "alphagrad.game.environment")
