import jax
import numpy as np
import pytest

from alphagrad.bench.case import Case
from alphagrad.bench.measure import exact_entries
from alphagrad.tasks import TASKS, UNSEEN


@pytest.mark.parametrize("name", ["SABR", "PropaneCombustion"])
@pytest.mark.parametrize("x64", [True, False])
def test_exact_entries_are_in_double_precision(name, x64):
    with jax.enable_x64(x64):
        exact = exact_entries(Case((TASKS | UNSEEN)[name], 4), 2)
    assert all(x.shape == (2,) and x.dtype == np.float64 for x in exact)
