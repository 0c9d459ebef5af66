"""Derivatives measured in turns: notes, caches, and the judgement of errors."""

import os
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from versus import OURS, compare, forget, in_turns

import graphax as gx
from graphax.symmetric import symmetric_plan


def test_notes_come_before_long_calls():
    told = []
    found = in_turns({"short": lambda: None, "long": lambda: time.sleep(0.003)}, rounds=3, note=told.append)
    assert told[:2] == ["short", "long"]
    assert set(told[2:]) == {"long"}
    assert found["short"] < 0.003 <= found["long"]


def test_a_way_of_jax_that_fails_does_not_count():
    def fails(x):
        raise ValueError("no")

    told = []
    found = compare({"jacfwd": fails, "jacrev": lambda x: 2 * x, OURS: lambda x: 2 * x}, [1.0], 1e-9, 3, told.append)
    assert found.better == "jacrev"
    assert not found.wrong
    assert told[:3] == ["jacfwd", "jacrev", OURS]
    with pytest.raises(ValueError, match="no"):
        compare({"jacfwd": fails, OURS: lambda x: x}, [1.0], 1e-9, 3)


@pytest.mark.parametrize(
    ("ours", "right"), [([5e-7, 0.0, 0.0], True), ([5e-6, 0.0, 0.0], False), ([0.0, 5e-7, 0.0], False)]
)
def test_an_entry_may_be_off_as_much_as_that_of_jax(ours, right):
    """Cancelling entries of JAX do not excuse errors in other entries."""

    def theirs(x):
        # Pretend that the first entry cancels, so that compiling changes its rounding errors.
        return x + jnp.array([1e-6, 0.0, 0.0]) * isinstance(x, jax.core.Tracer)

    with jax.enable_x64(True):
        error = jnp.array(ours) + jnp.array([1e-6, 0.0, 0.0])
        found = compare({"jacfwd": theirs, OURS: lambda x: x + error}, [jnp.array([1.0, 0.5, 0.0])], 1e-9, 3)
    assert (not found.wrong) == right


@pytest.mark.slow
def test_first_calls_can_be_measured_again(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHAX_CACHE", str(tmp_path))
    gx.hessve(lambda x: jnp.prod(jnp.sin(x)))(jnp.ones(3))
    assert symmetric_plan.cache_info().currsize
    folders = set()
    for _ in range(3):
        forget()
        folders.add(Path(os.environ["GRAPHAX_CACHE"]))
    assert not symmetric_plan.cache_info().currsize
    # Each cache folder is new, and none is inside another.
    assert len(folders) == 3
    assert len({folder.parent for folder in folders}) == 1


def test_errors_are_judged_by_those_of_jax():
    """Sums that cancel differ between compiled and uncompiled programs."""

    def theirs(x):
        return jnp.float64(1e-6) if isinstance(x, jax.core.Tracer) else jnp.float64(3e-6)

    assert compare({"hessian": theirs, OURS: lambda x: jnp.float64(2e-6)}, [1.0], 1e-9, 3).wrong == ""
    assert compare({"hessian": theirs, OURS: lambda x: jnp.float64(9e-6)}, [1.0], 1e-9, 3).wrong
    assert compare({"hessian": lambda x: 2 * x, OURS: lambda x: 2.1 * x}, [1.0], 1e-9, 3).wrong
