"""Graphs for tests of the search: random scalar ones made directly, and a brute-force optimum."""

from functools import lru_cache
from itertools import permutations

import numpy as np
from hypothesis import strategies as st

from graphax import ComputationGraph, build_graph
from graphax.graph import Vertex
from graphax.structure import dense, identity

from ..graphax.programs import programs


@st.composite
def scalar_graphs(draw, most: int = 7) -> ComputationGraph:
    """Scalar graphs with values, ones and other known numbers on their edges."""
    size, inputs = draw(st.integers(1, most)), draw(st.integers(1, 3))
    structures = st.sampled_from([dense((), ()), dense((), ()), identity(()), identity((), -1.0), identity((), 0.5)])
    edges = {}
    for vertex in range(1, size + 1):
        operands = draw(st.sets(st.integers(1 - inputs, vertex - 1), min_size=1, max_size=3))
        edges.update({(vertex, operand): draw(structures) for operand in sorted(operands)})
    sinks = sorted(set(range(1, size + 1)) - {source for _, source in edges})
    outputs = range(size + 1, size + 1 + draw(st.integers(1, 3)))
    for output in outputs:
        for vertex in draw(st.sets(st.sampled_from(range(1, size + 1)), min_size=1, max_size=3)):
            edges[output, vertex] = draw(structures)
    for vertex in sinks:
        edges.setdefault((outputs[0], vertex), draw(structures))
    return graph_of_edges(edges, size, outputs)


def graph_of_edges(edges: dict, size: int, outputs: range) -> ComputationGraph:
    numbers = sorted({vertex for edge in edges for vertex in edge})
    inputs = tuple(vertex for vertex in reversed(numbers) if vertex <= 0)

    def kind(vertex: int) -> str:
        return "input" if vertex <= 0 else "output" if vertex in outputs else "intermediate"

    vertices = {v: Vertex(v, kind(v), (), np.dtype(float), "test") for v in numbers}
    return ComputationGraph(vertices, inputs, tuple(outputs), edges, size, False, ())


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
