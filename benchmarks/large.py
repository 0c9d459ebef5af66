"""Order search on a sparse graph of 100,000 vertices: time to a greedy order, later improvements, and memory.

    python benchmarks/large.py [--vertices 100000] [--budget 30]

The graph is a random program: every value is computed from one or two of the last few values, and inputs and outputs
are at regular distances. The graph is made directly, without tracing a function.
"""

import argparse
import resource
import time

import numpy as np

import alphagrad
from graphax import ComputationGraph
from graphax.graph import Vertex
from graphax.structure import dense

SCALAR = dense((), ())


def random_graph(intermediates: int, ends: int, reach: int, seed: int) -> ComputationGraph:
    """A random scalar graph: ``ends`` inputs and outputs, operands among the last ``reach`` values."""
    rng = np.random.default_rng(seed)
    inputs = [-number for number in range(ends)]
    recent, edges, unused = inputs[:1], {}, {}
    spacing = intermediates // ends
    for vertex in range(1, intermediates + 1):
        if vertex % spacing == 0 and vertex // spacing < ends:
            recent.append(inputs[vertex // spacing])
        operands = {recent[-1 - int(back)] for back in rng.integers(0, min(reach, len(recent)), rng.integers(1, 3))}
        edges.update({(vertex, operand): SCALAR for operand in operands})
        for operand in operands:
            unused.pop(operand, None)
        unused[vertex] = True
        recent = [*recent[-reach:], vertex]
    # Values that nothing uses are collected into the outputs.
    outputs = range(intermediates + 1, intermediates + 1 + ends)
    edges.update({(outputs[n * ends // len(unused)], vertex): SCALAR for n, vertex in enumerate(unused)})
    used = {vertex for edge in edges for vertex in edge} | set(inputs)
    kinds = dict.fromkeys(inputs, "input") | dict.fromkeys(outputs, "output")
    vertices = {v: Vertex(v, kinds.get(v, "intermediate"), (), np.dtype(float), "random") for v in sorted(used)}
    kept = tuple(output if output in used else None for output in outputs)
    return ComputationGraph(vertices, tuple(inputs), kept, edges, intermediates, False, ())


def peak_memory() -> float:
    """The peak memory of this process, in gigabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vertices", type=int, default=100_000)
    parser.add_argument("--budget", type=float, default=30.0)
    options = parser.parse_args()
    alphagrad.search(random_graph(100, 5, 10, 0), budget=0.1, record=False)
    graph = random_graph(options.vertices, 20, 12, 0)
    print(graph)
    began = time.monotonic()
    found: list[tuple[float, float]] = []

    def note(progress: alphagrad.Progress) -> None:
        if not found or progress.best < found[-1][1]:
            found.append((time.monotonic() - began, progress.best))
            print(f"{found[-1][0]:6.1f} s  {progress.best:,.0f} multiplications  {peak_memory():.2f} GB", flush=True)

    result = alphagrad.search(graph, counting="raw", budget=options.budget, progress=note, record=False)
    first, last = result.history[1], result.history[-1]
    print(f"reverse {result.history[0][2]:,.0f}; first greedy order {first[2]:,.0f} after {first[0]:.1f} s")
    print(f"best {last[2]:,.0f} after {result.seconds:.1f} s, at least {result.bound:,.0f}")
    print(f"{peak_memory():.2f} GB of memory at most")


if __name__ == "__main__":
    main()
