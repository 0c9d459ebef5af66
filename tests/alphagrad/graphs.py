"""Graphs for tests of the search, and a brute-force optimum."""

from functools import lru_cache
from itertools import permutations

from hypothesis import strategies as st

from graphax import ComputationGraph, build_graph

from ..graphax.programs import programs


@st.composite
def program_graphs(draw, steps: int = 10) -> ComputationGraph:
    """Graphs of random programs of arrays."""
    program = draw(programs(steps=steps))
    return build_graph(program, *program.arguments(), argnums=tuple(range(len(program.shapes))))


@lru_cache(64)
def optimum(graph: ComputationGraph, counting: str, quantity: str) -> int:
    """The least cost over all orders."""
    orders = permutations(graph.intermediates)
    return min(getattr(graph.cost(order, counting), quantity) for order in orders)
