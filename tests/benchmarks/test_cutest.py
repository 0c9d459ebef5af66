"""Small CUTEst problems: Jacobians and Hessians at the starting points equal JAX's, with NaN at the same places."""

import importlib.util
from argparse import Namespace

import cutest
import jax
import numpy as np
import pytest
from cutest import TOLERANCE, TRACING, blamed, cases, derivatives, done, is_final, is_kept, report, row_of
from shards import Step
from versus import OURS, Comparison, disagreement

if importlib.util.find_spec("sif2jax") is None:
    pytest.skip("sif2jax is not installed", allow_module_level=True)

NAMES = (
    "AKIVA", "ALLINITC", "AVGASA", "BT1", "BIGGSC4", "BROWNDEN", "COATING", "EG2", "GENROSE",
    "HADAMARD", "HATFLDF", "HEART8", "HIMMELBC", "HS52", "HS71", "HS100", "HS113", "MSS2", "OET6", "OSBORNE1",
    "PALMER1C", "POLAK6", "ROSENBR", "S365",
)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_are_those_of_jax(name):
    for case in cases([name]):
        results = {way: jax.jit(function)(case.start) for way, function in derivatives(case).items()}
        error, wrong = disagreement(results, TOLERANCE)
        assert not wrong, f"{case.key}: {wrong}"
        assert error <= TOLERANCE


NAN = float("nan")


@pytest.mark.parametrize(
    ("ours", "forward", "reverse", "right"),
    [
        (1.0, 1.0, 1.0, True),
        (1.0, 1.0, 2.0, True),
        (1.5, 1.0, 2.0, False),
        (NAN, NAN, NAN, True),
        (NAN, 1.0, NAN, True),
        (NAN, 1.0, 1.0, False),
        (1.0, NAN, NAN, False),
        (1.0, NAN, 1.0, True),
        (np.inf, np.inf, 1.0, True),
        (1.0, np.inf, np.inf, False),
    ],
)
def test_nan_is_right_where_jax_has_it(ours, forward, reverse, right):
    results = {
        "jacfwd": [np.array([forward, 3.0])],
        "jacrev": [np.array([reverse, 3.0])],
        OURS: [np.array([ours, 3.0])],
    }
    error, wrong = disagreement(results, 1e-9)
    assert (not wrong) == right
    assert np.isfinite(error) or not right


@pytest.mark.parametrize(
    ("ours", "theirs", "kept"),
    [
        (100e-6, 95e-6, True),
        (120e-6, 100e-6, False),
        (14e-6, 10e-6, True),
        (16e-6, 10e-6, False),
        (50e-6, 500e-6, True),
    ],
)
def test_short_calls_may_be_slower_by_microseconds(ours, theirs, kept):
    found = Comparison({"jacfwd": 1.0, OURS: 1.2}, {"jacfwd": theirs, OURS: ours}, 0.0, "", {}, {})
    assert is_kept(found.as_dict()) == kept
    text, all_kept = report({"A Jacobian": found.as_dict()})
    assert ("A Jacobian" in text) != kept
    assert not all_kept or found.ratio >= 1.5


def test_only_makes_the_problem_that_the_package_has():
    (case,) = cases(["GAUSS2LS"])
    assert case.start.shape == (8,)


def test_modes_of_jax_that_take_too_long_are_left_out(tmp_path):
    output = tmp_path / "rows.jsonl"
    for way in ("jacrev", "jacfwd"):
        blamed(output, Step("A Jacobian", way, 0.0), "longer than 120 s")
        assert not is_final(done(output)["A Jacobian"])
    assert done(output)["A Jacobian"]["without"] == ["jacrev", "jacfwd"]


@pytest.mark.parametrize(("way", "kind"), [(OURS, "failed"), (TRACING, "skipped")])
def test_a_case_ends_where_ours_takes_too_long_or_the_function_does(tmp_path, way, kind):
    output = tmp_path / "rows.jsonl"
    blamed(output, Step("A Jacobian", way, 0.0), "longer than 120 s")
    row = done(output)["A Jacobian"]
    assert is_final(row)
    assert "longer than 120 s" in row[kind]
    assert f"A Jacobian {kind}" in report(done(output))[0]


@pytest.mark.parametrize(
    ("failing", "key", "value"),
    [
        (["jacrev"], "without", ["jacrev"]),
        (["jacfwd", "jacrev"], "skipped", "JAX takes longer than 5 s, or fails"),
        ([OURS], "failed", "MemoryError: too large"),
        ([TRACING], "failed", "MemoryError: too large"),
    ],
)
def test_a_way_of_jax_that_fails_is_left_out(failing, key, value, monkeypatch):
    def measured(case, without, at):
        for step in (TRACING, *derivatives(case)):
            if step not in without:
                at(step)
                if step in failing:
                    raise MemoryError("too large")
        return {"without": without}

    monkeypatch.setattr(cutest, "measured", measured)
    (case,) = (case for case in cases(["BT1"]) if case.kind == "Jacobian")
    assert row_of(case, [], Namespace(largest=100, patience=5.0), lambda step: None)[key] == value
