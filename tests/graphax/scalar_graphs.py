"""Random graphs of single numbers, as a hypothesis strategy."""

import numpy as np
from hypothesis import strategies as st

import graphax as gx
from graphax.graph import Vertex
from graphax.structure import dense, identity

EDGES = {
    "values": dense((), ()),
    "half": dense((), (), 0.5),
    "two": dense((), (), 2.0),
    "one": identity(()),
    "minus one": identity((), -1.0),
    "copy": identity((), renaming=True),
}


def scalar_graph(inputs: int, intermediates: int, outputs: int, edges) -> gx.ComputationGraph:
    """A random scalar graph. Inputs are 0, -1, ...; intermediates start at 1, followed by the outputs."""
    first_output = intermediates + 1
    numbers = range(1 - inputs, first_output + outputs)
    kinds = {n: "input" if n <= 0 else "intermediate" if n < first_output else "output" for n in numbers}
    vertices = {n: Vertex(n, kind, (), np.dtype(float), "") for n, kind in kinds.items()}
    results = tuple(range(first_output, first_output + outputs))
    return gx.ComputationGraph(vertices, tuple(range(0, -inputs, -1)), results, edges, intermediates, False, ())


@st.composite
def scalar_graphs(draw, intermediates: int = 6, kinds=tuple(EDGES), ends: int = 3) -> gx.ComputationGraph:
    inputs, outputs = draw(st.integers(1, ends)), draw(st.integers(1, ends))
    middle = draw(st.integers(1, intermediates))
    last = middle + outputs
    edges = {}
    for target in range(1, last + 1):
        sources = range(1 - inputs, min(target, middle + 1))
        for source in draw(st.lists(st.sampled_from(sources), min_size=1, max_size=3, unique=True)):
            edges[target, source] = EDGES[draw(st.sampled_from(kinds))]
    for source in range(1, middle + 1):
        if not any(s == source for _, s in edges):
            edges[draw(st.integers(middle + 1, last)), source] = EDGES[draw(st.sampled_from(kinds))]
    return scalar_graph(inputs, middle, outputs, edges)
