"""Sequences of positions, compared with Python lists."""

import pickle

import numpy as np
import pytest
from hypothesis import given, strategies as st

from graphax.positions import (
    Dynamic,
    Listed,
    as_array,
    chain,
    coincide,
    highest,
    inverse,
    inverse_permutation,
    join,
    listed,
    lowest,
    meet,
    progression,
)

progressions = st.builds(progression, st.integers(-5, 20), st.integers(-4, 4).filter(bool), st.integers(1, 9))
lists = st.lists(st.integers(0, 12), min_size=1, max_size=9).map(listed)
sequences = st.one_of(progressions, lists)


def items(positions) -> list[int]:
    return [int(n) for n in as_array(positions)]


@given(sequences, sequences)
def test_meet_finds_every_pair(first, second):
    i, j = meet(first, second)
    pairs = sorted(zip(items(i), items(j), strict=True))
    assert pairs == [(a, b) for a, x in enumerate(items(first)) for b, y in enumerate(items(second)) if x == y]


@given(sequences, st.data())
def test_chain_is_indexing(outer, data):
    inner = listed(data.draw(st.lists(st.integers(0, len(outer) - 1), min_size=1, max_size=9)))
    assert items(chain(outer, inner)) == [items(outer)[n] for n in items(inner)]


@given(st.data())
def test_coincide_compares_one_by_one(data):
    length = data.draw(st.integers(1, 9))
    first, second = (
        data.draw(
            st.one_of(
                st.builds(progression, st.integers(-3, 9), st.integers(-3, 3).filter(bool), st.just(length)),
                st.lists(st.integers(0, 5), min_size=length, max_size=length).map(listed),
            )
        )
        for _ in range(2)
    )
    wanted = [n for n, (a, b) in enumerate(zip(items(first), items(second), strict=True)) if a == b]
    assert items(coincide(first, second)) == wanted


@given(sequences)
def test_a_progression_is_a_range(positions):
    array = as_array(positions)
    assert listed(array) == positions or len(array) == 1
    steps = set(np.diff(array).tolist())
    assert isinstance(listed(array), range) == (len(array) == 1 or (len(steps) == 1 and steps != {0}))
    assert (lowest(positions), highest(positions)) == (array.min(), array.max())


@given(st.permutations(range(7)))
def test_inverses_of_permutations(order):
    positions = listed(order)
    assert items(chain(positions, inverse_permutation(positions, 7))) == list(range(7))
    assert inverse_permutation(listed([*order[:-1], order[0]]), 7) is None
    assert inverse_permutation(Dynamic(7, "name"), 7) is None


def test_where_each_position_stands():
    found, inside = inverse(listed([5, 0, 3]), 6)
    assert items(inside) == [1, 0, 0, 1, 0, 1]
    assert [items(found)[n] for n in (5, 0, 3)] == [0, 1, 2]
    assert inverse(listed([5, 0, 5]), 6) == (None, None)


def test_positions_known_only_at_run_time_are_chained_by_name():
    at = Dynamic(4, "name")
    assert chain(range(9), at) == at
    assert chain(at, range(4)) == at
    once = chain(listed([3, 1, 1]), chain(at, range(2)))
    assert len(once) == 2
    assert once.renamed(5).names == {(5, "name")}
    assert chain(at, Dynamic(3, "other")).names == {"name", "other"}


def test_lists_are_equal_by_content():
    one, other = Listed(np.array([3, 1, 1])), Listed(np.array([3, 1, 1]))
    assert one == other
    assert hash(one) == hash(other)
    assert one != Listed(np.array([3, 1, 2]))
    assert pickle.loads(pickle.dumps(one)) == one
    with pytest.raises(ValueError, match="read-only"):
        one.array[0] = 2


def test_lists_are_joined_only_with_themselves():
    one = listed([3, 1, 1])
    assert join(one, one) == (one, range(3), range(3))
    assert join(one, range(3)) is None
