"""Cases that are prepared in several processes and measured one after another."""

import os
from collections import Counter

import jax
import jax.numpy as jnp
import pytest
from together import results_of
from versus import in_a_loop


def squares(number):
    if number < 0:
        raise ValueError("cannot prepare this")
    return lambda: iter([(number, number**2, os.getpid())])


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_of_all_shares(jobs):
    found = list(results_of(squares, [1, 2, 3], jobs))
    assert sorted((number, square) for number, square, _ in found) == [(1, 1), (2, 4), (3, 9)]
    assert len({process for *_, process in found}) == (1 if jobs == 1 else 3)


def test_a_share_that_fails_does_not_keep_the_others_waiting():
    found = []
    with pytest.raises(SystemExit, match="1 of 2 workers failed"):
        found.extend(results_of(squares, [-1, 2], 2))


@pytest.mark.parametrize("together", [1, 3])
def test_all_calls_of_a_loop_are_made(together):
    """XLA leaves out calls whose results nothing needs, and merges equal ones."""
    calls = Counter()

    def function(x):
        jax.debug.callback(lambda: calls.update(["made"]))
        return jnp.sin(x)

    repeated = jax.jit(in_a_loop(lambda x: function(x), 6, together))
    result = repeated(jnp.arange(4.0))
    jax.effects_barrier()
    assert calls["made"] == 6
    assert jnp.allclose(result, jnp.sin(jnp.arange(4.0)))


def test_calls_of_a_loop_depend_on_each_other():
    """There is at least one sine per call in the compiled program, also without effects."""
    compiled = jax.jit(in_a_loop(jnp.sin, 6, 3)).lower(jnp.arange(4.0)).compile()
    assert compiled.as_text().count(" sine(") >= 3
