import json
from collections import Counter
from dataclasses import asdict

import numpy as np
import pytest

from alphagrad.runtime import cost_model
from alphagrad.runtime.cost_model import CostModel, calibrate, rank_correlation, this_machine

PLANTED = {"arithmetic": 0.02, "memory": 0.5, "spill": 0.003, "div": 0.1, "exp": 0.7, "call": 2.0}


def planted_kernels(dtype):
    rng = np.random.default_rng(0)
    for _ in range(12):
        kinds = ("arithmetic", "memory", "spill", "div")
        work = Counter(dict(zip(kinds, rng.integers(1, 500, 4).tolist(), strict=True)))
        yield work, sum(PLANTED[kind] * n for kind, n in work.items()) + PLANTED["call"]


def test_the_fit_finds_prices_that_are_there(monkeypatch):
    monkeypatch.setattr(cost_model, "_function_prices", lambda dtype: {"div": 0.1, "exp": 0.7})
    monkeypatch.setattr(cost_model, "_measured_kernels", planted_kernels)
    model = calibrate("float32")
    assert model.prices == pytest.approx(PLANTED, rel=1e-6)
    assert model.correlation == pytest.approx(1.0)


def test_what_is_not_known_is_priced_like_an_exponential():
    model = CostModel("float32", PLANTED, 1.0)
    assert model.predict(Counter(arithmetic=10, lgamma=2)) == pytest.approx(0.2 + 2 * 0.7)


def test_a_machine_is_measured_once(monkeypatch):
    calls = []
    monkeypatch.setattr(cost_model, "calibrate", lambda dtype: calls.append(dtype) or CostModel(dtype, PLANTED, 0.9))
    first, second = (this_machine("float32") for _ in range(2))
    assert asdict(first) == asdict(second)
    assert this_machine("float64").dtype == "float64"
    assert calls == ["float32", "float64"]


def test_a_damaged_model_is_measured_again(monkeypatch, tmp_path):
    monkeypatch.setattr(cost_model, "calibrate", lambda dtype: CostModel(dtype, PLANTED, 0.9))
    this_machine()
    (path,) = (tmp_path / "cache" / "cost_models").glob("*.json")
    for damage in ("", "{", json.dumps({"dtype": "float32"})):
        path.write_text(damage)
        assert this_machine().prices == PLANTED
        assert json.loads(path.read_text())["prices"] == PLANTED


@pytest.mark.slow
def test_a_machine_can_be_measured(monkeypatch):
    """The whole measurement works with few points. Prices depend on the clock, so only their form is checked."""
    for name, value in {"POINTS": 256, "REPEAT": 3, "ORDERS_FITTED": 1}.items():
        monkeypatch.setattr(cost_model, name, value)
    model = calibrate("float64")
    assert set(model.prices) == {*cost_model.FUNCTIONS, *cost_model.FITTED, "call"}
    assert all(price >= 0 for price in model.prices.values())


def test_ranks():
    assert rank_correlation([1, 2, 3], [10, 20, 90]) == pytest.approx(1)
    assert rank_correlation([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert np.isnan(rank_correlation([1, 1], [3, 2]))
