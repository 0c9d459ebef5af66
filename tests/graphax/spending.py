"""What an order spends on each vertex."""

from graphax.plan import COUNTINGS, Elimination


def spent(graph, order):
    """The multiplications of an order, by counting and vertex."""
    state, found = Elimination(graph), {counting: {} for counting in COUNTINGS}
    for vertex in order:
        products = [fill.product for fill in state.eliminate(vertex)]
        found["folded"][vertex] = sum(p.multiplications for p in products)
        found["raw"][vertex] = sum(p.raw_multiplications for p in products)
    return found
