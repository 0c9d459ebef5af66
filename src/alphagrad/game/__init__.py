"""Vertex elimination as a game in pure JAX: states are arrays, and every function can be jitted, mapped and scanned."""

from .rules import GameState, VertexGame, degrees, init, is_over, legal_actions, observe, play, prices, step
from .tables import GameTables, Sizes, common_sizes, make_tables, sizes_of, stack_tables
