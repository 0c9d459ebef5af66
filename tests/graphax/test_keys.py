"""Keys of lists: sorting them, and estimating the overlap of lists."""

import numpy as np
import pytest

from graphax.keys import distinct, in_order, keys_of, sketch

RNG = np.random.default_rng(0)
LISTS = {
    "short": RNG.integers(0, 9, 20),
    "repeated": RNG.integers(0, 1000, 3000),
    "spread": RNG.integers(0, 10**12, 3000) // 7 * 7,
    "wide": RNG.integers(0, 2**62, 500).repeat(2),
    "runs": np.concatenate([np.arange(0, 10**9, 10**6), np.arange(0, 10**9, 10**6)]),
    "one": np.array([5]),
}


@pytest.mark.parametrize("name", LISTS)
def test_distinct_keys(name):
    keys = LISTS[name]
    for found, want in zip(distinct(keys), np.unique(keys, return_index=True, return_inverse=True), strict=True):
        np.testing.assert_array_equal(found, want)
    np.testing.assert_array_equal(in_order(keys), np.argsort(keys, kind="stable"))


def test_keys_of_rows_are_ordered_like_them():
    columns, sizes = RNG.integers(0, 50, (3, 200)), (2**20, 2**30, 2**20)
    keys = keys_of(columns, sizes)
    np.testing.assert_array_equal(np.argsort(keys, kind="stable"), np.lexsort(columns[::-1]))


@pytest.mark.parametrize("length", [100, 200_000])
def test_sketches(length):
    tolerance = 0.0 if length == 100 else 0.03
    keys = np.arange(length) * 17
    assert sketch(keys).distinct == 1
    assert sketch(np.concatenate([keys, keys[: length // 2]])).distinct == pytest.approx(2 / 3, abs=tolerance + 1e-9)
    assert sketch(keys).coinciding(sketch(keys[::-1])) == 1
    assert sketch(keys).coinciding(sketch(keys + 1)) == 0
    half = np.concatenate([keys[::2], keys[::2] + 1])
    assert sketch(half).coinciding(sketch(keys)) == pytest.approx(0.5, abs=tolerance)


def test_a_list_of_nothing():
    nothing = sketch(np.zeros(0, np.int64))
    assert nothing.distinct == 1
    assert nothing.coinciding(nothing) == 0
