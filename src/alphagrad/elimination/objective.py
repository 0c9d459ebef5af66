"""The objective that a search minimises."""

import re
from dataclasses import dataclass

from graphax import ComputationGraph, Cost
from graphax.plan import COUNTINGS
from graphax.presets import BASELINES

from ..errors import SearchError
from .kernels import Prices

# The weights of a multiplication and an addition, by the name of the objective.
WEIGHTS = {"multiplications": (1.0, 0.0), "operations": (1.0, 1.0), "peak": (0.0, 0.0)}
OBJECTIVES = tuple(WEIGHTS)
WEIGHTED = "weighted"


@dataclass(frozen=True)
class Objective:
    """A quantity of a `graphax.Cost` to minimise.

    Attributes:
        minimize: ``"multiplications"``, ``"operations"`` (multiplications and additions), ``"peak"`` (live numbers), or
            ``"weighted"`` for ``weights``.
        counting: ``"folded"`` (what is executed) or ``"raw"`` (every product of two edges, as in the literature).
        weights: the prices of a multiplication and an addition; only for ``"weighted"``.
    """

    minimize: str = "multiplications"
    counting: str = "folded"
    weights: tuple[float, float] = (1.0, 0.0)

    def __post_init__(self):
        if self.counting not in COUNTINGS:
            raise SearchError(f"unknown counting {self.counting!r}; choose one of: {', '.join(COUNTINGS)}")
        if self.minimize not in (*WEIGHTS, WEIGHTED):
            raise SearchError(f"cannot minimize {self.minimize!r}; choose one of: {', '.join((*WEIGHTS, WEIGHTED))}")
        if self.minimize == WEIGHTED:
            _weights(self.weights)
        object.__setattr__(self, "weights", WEIGHTS.get(self.minimize, self.weights))

    @staticmethod
    def of(minimize: "ObjectiveLike", counting: str = "folded") -> "Objective":
        """Read ``minimize=`` as users write it: a name, or a pair of weights for multiplications and additions."""
        if isinstance(minimize, Objective):
            return minimize
        if isinstance(minimize, str) and minimize in WEIGHTS:
            return Objective(minimize, counting)
        return Objective(WEIGHTED, counting, _weights(minimize))

    @staticmethod
    def read(text: str) -> "Objective":
        """The objective that prints as ``text``."""
        name, _, counting = text.removesuffix(")").rpartition(" (")
        weights = re.fullmatch(r"(.+)·multiplications \+ (.+)·additions", name)
        return Objective.of((float(weights[1]), float(weights[2])) if weights else name, counting)

    def value(self, cost: Cost) -> float:
        """The quantity to minimise: a whole number, unless the weights are not whole."""
        if self.minimize == "peak":
            return cost.peak
        multiplication, addition = self.weights
        value = multiplication * cost.multiplications + addition * cost.additions
        return int(value) if value == int(value) else value

    @property
    def step(self) -> float:
        """The smallest difference by which a value must be lower to be better, with room for rounding."""
        return 1 - 1e-6 if all(weight == int(weight) for weight in self.weights) else 1e-9

    def prices(self, reference: float) -> Prices:
        """The charges for the kernels. ``reference`` is a peak of roughly the expected size."""
        return Prices(*self.weights, 1.0 if self.minimize == "peak" else 0.0, float(max(reference, 1)))

    def __str__(self):
        name = self.minimize
        if name == WEIGHTED:
            name = f"{self.weights[0]:g}·multiplications + {self.weights[1]:g}·additions"
        return f"{name} ({self.counting})"


ObjectiveLike = str | tuple[float, float] | Objective
"""What a search minimises: the name of a quantity, weights for multiplications and additions, or an `Objective`."""


def _weights(given: object) -> tuple[float, float]:
    try:
        multiplication, addition = (float(weight) for weight in given)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise SearchError(
            f"cannot minimize {given!r}; choose one of: {', '.join(OBJECTIVES)}, or a pair of weights for "
            f"multiplications and additions"
        ) from None
    if not (0 <= multiplication < float("inf") and 0 <= addition < float("inf")) or multiplication + addition == 0:
        raise SearchError(f"weights must be finite, not negative and not both zero, but are {given!r}")
    return multiplication, addition


def baselines(graph: ComputationGraph, objective: Objective) -> tuple[float, float, float]:
    """The costs of forward, reverse and Markowitz order."""
    forward, reverse, markowitz = (objective.value(graph.cost(name, objective.counting)) for name in BASELINES)
    return forward, reverse, markowitz


# Searches for the fastest order minimise this first. Most additions are fused with a product, so they cost little.
FUSED = Objective(WEIGHTED, "folded", (1.0, 0.25))
