import jax
import numpy as np
import pytest

from alphagrad.bench.accuracy import exact_entries, relative_error
from alphagrad.bench.case import Case
from alphagrad.tasks import TASKS, UNSEEN


@pytest.mark.parametrize("name", ["SABR", "PropaneCombustion"])
@pytest.mark.parametrize("x64", [True, False])
def test_exact_entries_are_in_double_precision(name, x64):
    with jax.enable_x64(x64):
        exact = exact_entries(Case((TASKS | UNSEEN)[name], 4), 2)
    assert all(x.shape == (2,) and x.dtype == np.float64 for x in exact)


@pytest.mark.parametrize(
    ("got", "exact", "error"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([1.0, 2.5], [1.0, 2.0], 0.25),
        ([0.5], [0.0], 0.5),
        ([np.nan], [1.0], np.inf),
        ([7.0, 1.0], [np.inf, 1.0], 0.0),
        ([], [], 0.0),
    ],
)
def test_relative_errors(got, exact, error):
    assert relative_error([np.zeros(1), np.array(got)], [np.zeros(1), np.array(exact)]) == error
