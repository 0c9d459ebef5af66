"""Vertex elimination as a game in pure JAX: states are arrays, and every function can be jitted, mapped and scanned."""

from .rules import GameState, VertexGame, init, is_over, legal_actions, observe, play, step
from .tables import GameTables, Sizes, common_sizes, make_tables, sizes_of, stack_tables

__all__ = [
    "GameState",
    "GameTables",
    "Sizes",
    "VertexGame",
    "common_sizes",
    "init",
    "is_over",
    "legal_actions",
    "make_tables",
    "observe",
    "play",
    "sizes_of",
    "stack_tables",
    "step",
]
