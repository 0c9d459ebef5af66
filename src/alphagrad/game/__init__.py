"""Vertex elimination as a game in pure JAX: states are arrays, and every function can be jitted, mapped and scanned."""

from ..elimination.structures import NO_EDGE
from .features import FEATURES, describe
from .rules import GameState, VertexGame, degrees, init, is_over, legal_actions, observe, play, prices, step
from .tables import GameTables, Sizes, common_sizes, make_tables, sizes_of, stack_tables
