"""The logic of the coverage script, and a few of its functions."""

from types import ModuleType

import jax.numpy as jnp
import kernel_coverage as coverage
import numpy as np
import pytest

import graphax as gx

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("got", "want", "is_right"),
    [
        ([1.0, 2.0], [1.0, 2.0 + 1e-12], True),
        ([1.0, 2.0], [1.0, 2.0 + 1e-6], False),
        ([NAN], [NAN], True),
        ([3.0], [NAN], True),
        ([NAN], [3.0], False),
        ([INF], [INF], True),
        ([INF], [-INF], False),
        ([INF], [3.0], False),
        ([3.0], [INF], False),
        ([0.0], [1e-6], False),
        ([[1.0]], [1.0], False),
    ],
)
def test_results_are_compared_with_jax(got, want, is_right):
    assert (coverage.difference(np.array(got), np.array(want)) == "") == is_right


def test_unknown_names_have_no_example(monkeypatch):
    """A function of a new version of JAX is listed, and does not stop the script."""
    module = ModuleType("new")
    module.odd, module.Kind, module.number, module.sine = lambda *, mode: mode, int, 3, jnp.sin
    monkeypatch.setattr(coverage, "MODULES", ((module, {}),))
    found = {case.name: case for case in coverage.cases()}
    assert found["new.odd"].kind == coverage.NO_EXAMPLE
    assert found["new.sine"].kinds == "x"
    assert not {"new.Kind", "new.number"} & found.keys()


@pytest.mark.parametrize(
    ("function", "kinds", "kind", "reason"),
    [
        (jnp.sin, "x", coverage.KERNEL, ""),
        (jnp.bitwise_and, "kj", coverage.KERNEL, ""),
        (jnp.linalg.svd, "m", coverage.ELSEWHERE, "there is no rule for svd"),
        (lambda x: jnp.nextafter(x, x), "x", coverage.NO_DERIVATIVE, "NotImplementedError"),
    ],
)
def test_functions_are_run(function, kinds, kind, reason):
    outcome = coverage.outcome_of(coverage.Case("f", lambda *args: function(*args), kinds))
    assert (outcome.kind, outcome.reason) == (kind, reason)
    # The line that calls the function is here, not in an example.
    assert outcome.problem == "" or "names no line of the example" in outcome.problem


def test_wrong_results_are_reported(monkeypatch):
    monkeypatch.setattr(gx, "value_and_jacve", lambda function, argnums, backend: lambda x: ([x], (2 * x,)))
    assert coverage.outcome_of(coverage.case_of("f", jnp.sin, None)).problem


def test_the_page_has_its_tables():
    text = coverage.PAGE.read_text(encoding="utf-8")
    assert coverage.BEGIN in text.partition(coverage.END)[0]
    outcomes = [
        ("jax.nn.relu", coverage.KERNEL, ""),
        ("jax.numpy.new", coverage.NO_EXAMPLE, ""),
        ("x.at[n].set", coverage.ELSEWHERE, "because"),
        ("jax.lax.eig", coverage.ELSEWHERE, "because"),
    ]
    lines = coverage.tables([coverage.Outcome(*outcome) for outcome in outcomes]).splitlines()
    assert "| `jax.nn` | 1 | `relu` |" in lines
    assert "| because | updates: `x.at[n].set`; `jax.lax`: `eig` |" in lines
    assert "| no example | `jax.numpy`: `new` |" in lines
