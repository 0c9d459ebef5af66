import json
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

import graphax as gx
from alphagrad import Budget, SearchError, search
from alphagrad.finders import fastest
from alphagrad.runtime.cost_model import CostModel
from alphagrad.tasks import TASKS

MODEL = CostModel("float32", {"arithmetic": 1.0, "memory": 0.0, "spill": 0.0, "exp": 10.0}, 1.0)


@pytest.fixture
def clock(monkeypatch):
    """A fixed model, and a clock for which the second measured order is the fastest."""
    asked = []

    def measured(calls, repeat, limit):
        asked.extend(calls.values())
        return {number: 1e-6 * (0.5 if number == 1 else 1 + number) for number in calls}

    monkeypatch.setattr(fastest, "this_machine", lambda dtype: MODEL)
    monkeypatch.setattr(fastest, "measured", measured)
    return asked


def test_the_clock_decides(clock):
    task = TASKS["RobotArm_6DOF"]
    result = search(task, minimize="runtime", budget=0.5, seed=3)
    timed = [c for c in result.candidates if c.measured is not None]
    assert result.order == timed[0].order
    assert timed[0].measured == min(c.measured for c in timed) == pytest.approx(1e9 * 0.5e-6 / fastest.BATCH)
    assert {"fwd", "rev", "markowitz"} <= {c.order.finder for c in timed}
    assert result.cost == result.graph.cost(result.order)
    assert -1 <= result.rank_correlation <= 1
    # The order that the model ranks first is measured first.
    predicted = [c.predicted for c in result.candidates]
    assert min(predicted) in [c.predicted for c in timed]


def test_the_result_as_text_and_as_data(clock):
    result = search(TASKS["PropaneCombustion"], minimize="runtime", budget=0.3)
    assert "measured ns a point" in str(result)
    assert "rank correlation of predicted and measured times" in str(result)
    data = json.loads(json.dumps(result.as_dict()))
    assert data["nanoseconds_per_point"] == pytest.approx(result.nanoseconds)
    assert len(data["candidates"]) == len(result.candidates)


@pytest.mark.parametrize("axes", [None, (0, 0), (None, 0)])
def test_what_is_measured_is_the_jacobian_under_vmap(clock, axes):
    def f(w, x):
        return jnp.tanh(w @ x) * jnp.sin(x[0])

    args = np.ones((3, 4), np.float32), np.ones(4, np.float32)
    result = search(f, *args, argnums=1, minimize="runtime", budget=0.3, batch_axes=axes)
    (jacobian,) = {np.shape(call()) for call in clock}
    assert jacobian == (fastest.BATCH, 3, 4)
    np.testing.assert_allclose(
        gx.jacve(f, order=result.order, argnums=1)(*args), gx.jacve(f, order="rev", argnums=1)(*args), rtol=1e-5
    )


def test_functions_without_a_kernel_are_measured_too(clock):
    def f(x):
        return jnp.linalg.svdvals(x) * jnp.sin(x)

    result = search(f, 2 * np.eye(3, dtype=np.float32), minimize="runtime", budget=0.3)
    assert all(c.predicted is None for c in result.candidates)
    assert result.nanoseconds > 0
    assert np.isnan(result.rank_correlation)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": Budget(evaluations=5)}, "a budget of seconds"),
        ({"counting": "raw"}, "leave counting"),
        ({"method": "beam"}, "leave counting, method"),
        ({"workers": 2}, "workers"),
    ],
)
def test_what_cannot_be_combined(options, message):
    with pytest.raises(SearchError, match=message):
        search(TASKS["RobotArm_6DOF"], minimize="runtime", **options)


def test_a_graph_cannot_be_run():
    with pytest.raises(SearchError, match="give the function"):
        search(TASKS["RobotArm_6DOF"].graph(), minimize="runtime", budget=0.1)


@pytest.mark.parametrize("axes", [(0,), (None, None), (0, 1)])
def test_wrong_axes(axes):
    with pytest.raises(SearchError, match="0 or None for each of the 2 arguments"):
        search(jnp.multiply, 1.0, 2.0, minimize="runtime", budget=0.1, batch_axes=axes)


def test_an_interrupted_search_is_not_followed_by_others(clock, monkeypatch):
    """Once, Ctrl-C ended only one of eight searches."""
    runs, usual = [], fastest.run

    def interrupted(*args):
        runs.append(1)
        return replace(usual(*args), stopped="interrupted")

    monkeypatch.setattr(fastest, "run", interrupted)
    result = search(TASKS["PropaneCombustion"], minimize="runtime", budget=0.3)
    assert len(runs) == 1
    assert result.stopped == "interrupted"
    assert result.nanoseconds > 0


def test_interrupted_measurements_leave_what_the_model_likes_best(clock, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(fastest, "measured", interrupted)
    result = search(TASKS["PropaneCombustion"], minimize="runtime", budget=0.3)
    assert result.stopped == "interrupted"
    assert result.candidates[0].predicted == min(c.predicted for c in result.candidates)
    assert np.isnan(result.nanoseconds)
