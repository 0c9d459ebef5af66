"""A game on the terminal: the board, and the typed moves."""

import sys
from collections.abc import Callable
from textwrap import fill

import jax
import jax.numpy as jnp
import numpy as np

from graphax import ComputationGraph

from .. import game
from ..elimination.objective import Objective, baselines
from ..finders.records import best_known
from ..game import GameState, GameTables, VertexGame

HELP = "type the number of a vertex to eliminate, or: hint, undo, quit"
WIDTH = 110


def known_costs(graph: ComputationGraph, objective: Objective) -> dict[str, float | None]:
    """The costs of reverse mode, Markowitz and the best order on record."""
    _, reverse, markowitz = baselines(graph, objective)
    known = best_known(graph, objective)
    return {"reverse": reverse, "markowitz": markowitz, "best_known": known.cost if known else None}


def listed(costs: dict[str, float | None]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {cost:g}" for name, cost in costs.items() if cost is not None)


class TypedGame:
    """A running game. It keeps all states, so that moves can be undone."""

    def __init__(self, graph: ComputationGraph, objective: Objective, say: Callable[[str], None]):
        self._say = say
        self._game = VertexGame.of(graph, objective.counting, objective)
        self._known = known_costs(graph, objective)
        self._states: list[GameState] = [game.init(self._game.tables)]
        self._order: list[int] = []

    def play(self) -> tuple[int, ...] | None:
        """Read moves until all vertices are eliminated; None if the player leaves before."""
        self._say(HELP)
        self._say(f"to beat: {listed(self._known)}")
        while prices := self._prices():
            self._show(prices)
            typed = _typed()
            if typed in (None, "quit"):
                self._say(f"you leave with {len(prices)} vertices to go; cost so far {self._cost:g}")
                return None
            self._answer(typed or "", prices)
        return tuple(self._order)

    @property
    def _cost(self) -> float:
        return float(self._states[-1].cost)

    def _prices(self) -> dict[int, float]:
        """The current cost of eliminating each remaining vertex."""
        tables, state = self._game.tables, self._states[-1]
        prices = np.asarray(_price_of_each(tables, state)).tolist()
        alive = np.flatnonzero(np.asarray(game.legal_actions(tables, state))).tolist()
        return {vertex: prices[action] for vertex, action in zip(self._game.vertices(alive), alive, strict=True)}

    def _show(self, prices: dict[int, float]) -> None:
        self._say(f"\ncost so far {self._cost:g}; vertices and their prices now:")
        self._say(fill("  ".join(f"{vertex}:{price:g}" for vertex, price in prices.items()), WIDTH))

    def _answer(self, typed: str, prices: dict[int, float]) -> None:
        if typed == "hint":
            cheapest = min(prices, key=lambda vertex: prices[vertex])
            self._say(f"the cheapest now is {cheapest}, for {prices[cheapest]:g}")
        elif typed == "undo" and not self._order:
            self._say("there is nothing to undo")
        elif typed == "undo":
            self._states.pop()
            self._say(f"{self._order.pop()} is back")
        elif typed.isdecimal() and int(typed) in prices:
            self._order.append(int(typed))
            state, cost = _step(self._game.tables, self._states[-1], self._game.actions(self._order[-1:])[0])
            self._states.append(state)
            self._say(f"{self._order[-1]} is eliminated, for {float(cost):g}")
        elif typed:
            self._say(f"{typed!r} is not a remaining vertex; {HELP}")


def _typed() -> str | None:
    """The next line, or None at the end of the input."""
    try:
        return input("> " if sys.stdin.isatty() and sys.stdout.isatty() else "").strip()
    except EOFError:
        return None


@jax.jit
def _price_of_each(tables: GameTables, state: GameState) -> jax.Array:
    actions = jnp.arange(len(tables.intermediate))
    return jax.vmap(game.step, (None, None, 0))(tables, state, actions)[1]


_step = jax.jit(game.step)
