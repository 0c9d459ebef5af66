from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from graphax.axes import Digit, Disjoint, Relabelling, Unrepresentable, axis_size, point, whole
from graphax.positions import chain, join, meet, progression

progressions = st.builds(progression, st.integers(-5, 20), st.integers(-4, 4).filter(bool), st.integers(1, 9))


@given(progressions, progressions)
def test_meet_finds_every_common_element(first, second):
    i, j = meet(first, second)
    assert [first[m] for m in i] == [second[m] for m in j]
    assert sorted(first[m] for m in i) == sorted(set(first) & set(second))


@given(progressions, progressions)
def test_join_is_the_smallest_progression_with_both(first, second):
    hull, i, j = join(first, second)
    assert [hull[m] for m in i] == list(first)
    assert [hull[m] for m in j] == list(second)
    assert {hull[0], hull[-1]} == {min(*first, *second), max(*first, *second)}
    union = sorted({*first, *second})
    gaps = {b - a for a, b in pairwise(union)}
    assert all(gap % abs(hull.step) == 0 for gap in gaps)
    assert not gaps or any(all(gap % k == 0 for gap in gaps) is False for k in (2 * abs(hull.step), 3 * abs(hull.step)))


@given(progressions, st.data())
def test_chain_indexes_a_progression_by_another(outer, data):
    start = data.draw(st.integers(0, len(outer) - 1))
    count = data.draw(st.integers(1, len(outer) - start))
    inner = progression(start, 1, count)
    assert list(chain(outer, inner)) == [outer[m] for m in inner]
    assert list(chain(outer, inner[::-1])) == [outer[m] for m in inner[::-1]]


def test_equating_a_window_restricts_the_label():
    labels = Relabelling([3, 6])
    labels.equate((Digit(0, range(2, 5), 8),), (Digit(1, range(0, 6), 8),))
    assert labels.resolve((whole(1, 6),)) == (Digit(0, range(2, 5), 6),)


def test_equating_a_whole_axis_with_digits_splits_it():
    labels = Relabelling([6, 2, 3])
    labels.equate((whole(0, 6),), (whole(1, 2), whole(2, 3)))
    split = labels.resolve((whole(0, 6),))
    assert [d.size for d in split] == [2, 3]
    assert split == labels.resolve((whole(1, 2), whole(2, 3)))


def test_windows_that_never_meet_are_disjoint():
    labels = Relabelling([2, 2])
    with pytest.raises(Disjoint):
        labels.equate((Digit(0, range(0, 2), 5),), (Digit(1, range(3, 5), 5),))


def test_a_tie_with_a_shifted_self_is_a_point_or_nothing():
    labels = Relabelling([4])
    labels.equate((Digit(0, range(0, 4), 8),), (Digit(0, range(3, -1, -1)[::-1], 8),))
    assert labels.resolve((whole(0, 4),)) == (whole(0, 4),)
    with pytest.raises(Disjoint):
        labels.equate((Digit(0, range(0, 4), 8),), (Digit(0, range(1, 5), 8),))


def test_radices_without_a_common_refinement_are_not_representable():
    labels = Relabelling([2, 3, 3, 2])
    with pytest.raises(Unrepresentable):
        labels.equate((whole(0, 2), whole(1, 3)), (whole(2, 3), whole(3, 2)))


def test_sizes():
    assert axis_size(()) == 1
    assert axis_size((whole(0, 4), point(1, 5))) == 20


def test_labels_that_would_depend_on_themselves_are_not_representable():
    labels = Relabelling([3, 3])
    labels._meaning |= {0: (whole(1, 3),), 1: (whole(0, 3),)}
    with pytest.raises(Unrepresentable):
        labels.resolve((whole(0, 3),))
