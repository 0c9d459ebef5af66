from itertools import combinations

from hypothesis import given, strategies as st

from graphax.cut import minimum_cut


@st.composite
def networks(draw):
    """Random acyclic neighbours of the vertices 0..count-1, with weights."""
    count = draw(st.integers(2, 7))
    neighbours = [
        [there for there in range(here + 1, count) if draw(st.booleans())] if here < count else []
        for here in range(count)
    ]
    weights = {vertex: draw(st.integers(0, 4)) for vertex in range(1, count)}
    ends = draw(st.sets(st.integers(1, count - 1), min_size=1))
    return neighbours, ends, weights


def separated(neighbours, ends, cut):
    todo = [0]
    while todo:
        for there in neighbours[todo.pop()]:
            if there in cut:
                continue
            if there in ends:
                return False
            todo.append(there)
    return True


@given(networks())
def test_the_cut_is_the_cheapest_separator(network):
    neighbours, ends, weights = network
    subsets = (set(chosen) for size in range(len(weights) + 1) for chosen in combinations(weights, size))
    cheapest = min(sum(weights[v] for v in cut) for cut in subsets if separated(neighbours, ends, cut))
    assert minimum_cut(0, neighbours, ends, weights) == cheapest


def test_a_cut_may_undo_what_it_sent():
    # The shortest way 0-1-4 blocks two others; 5 is the end.
    neighbours = [[1, 2], [3, 4], [4], [5], [5], []]
    assert minimum_cut(0, neighbours, {5}, {1: 1, 2: 1, 3: 1, 4: 1, 5: 2}) == 2
