"""Orders that auto refines are never worse, always the same, and found within the limit of effort."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, note, settings

import graphax as gx
from alphagrad.tasks import TASKS, UNSEEN, random_function
from graphax import presets, refine
from graphax.presets import cheapest_preset, preset_vertices
from graphax.prices import Prices, Tally, counted, prices_of
from graphax.refine import SHARE, first_call, refined

from .comparing import assert_same
from .programs import programs

_CHECKED = {"check": True, "timeout": 120, "capture_output": True, "text": True}


def graph_of(function):
    return gx.build_graph(function, *function.arguments(), argnums=tuple(range(len(function.arguments()))))


def forget():
    prices_of.cache_clear()
    preset_vertices.cache_clear()


@given(program=programs())
@settings(deadline=None, max_examples=15)
def test_auto_is_no_worse_than_any_preset(program):
    note(program)
    graph = graph_of(program)
    prices = Prices(graph)
    costs = {name: counted(prices, preset_vertices(name, graph)) for name in gx.PRESETS}
    assert costs["auto"] == min(costs.values())
    assert sorted(preset_vertices("auto", graph)) == list(graph.intermediates)


@pytest.mark.parametrize("seed", range(4))
def test_auto_gains_on_random_functions(seed):
    function = random_function(seed, inputs=5, outputs=4, intermediates=60)
    graph = gx.build_graph(function, *function.args, argnums=tuple(range(len(function.args))))
    prices = Prices(graph)
    preset, auto = cheapest_preset(graph, prices), preset_vertices("auto", graph)
    assert counted(prices, auto) <= counted(prices, preset)
    assert counted(prices, auto) == graph.cost(auto).operations


@pytest.mark.parametrize(
    ("task", "preset", "auto"),
    [("RoeFlux_1d", 329, 310), ("KalmanUpdate", 121, 105), ("LSTMCell", 2600, 2164), ("SABR", 83, 79)],
)
def test_operations_of_tasks(task, preset, auto):
    graph = (TASKS | UNSEEN)[task].graph(simplify=True)
    assert counted(Prices(graph), cheapest_preset(graph, Prices(graph))) == preset
    assert graph.cost("auto").operations <= auto


def test_the_order_does_not_depend_on_what_came_before():
    graph = UNSEEN["KalmanUpdate"].graph(simplify=True)
    forget()
    first = preset_vertices("auto", graph)
    forget()
    for name in gx.PRESETS:
        graph.plan(name)
    presets.preset_vertices.cache_clear()
    assert preset_vertices("auto", graph) == first


def test_the_order_is_the_same_in_every_process():
    code = (
        "from alphagrad.tasks import TASKS\nfrom graphax.presets import preset_vertices\n"
        "print(preset_vertices('auto', TASKS['RoeFlux_1d'].graph(simplify=True)))"
    )
    found = [
        subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, **_CHECKED).stdout
        for seed in ("1", "2")
    ]
    assert found == [f"{preset_vertices('auto', TASKS['RoeFlux_1d'].graph(simplify=True))}\n"] * 2


@pytest.mark.parametrize("share", [0.0, 0.01, SHARE])
@pytest.mark.parametrize("task", ["RoeFlux_1d", "TorsionForces"])
def test_effort_stays_within_its_limit(task, share, monkeypatch):
    monkeypatch.setattr(refine, "SHARE", share)
    graph = (TASKS | UNSEEN)[task].graph(simplify=True)
    prices = Prices(graph)
    vertices = cheapest_preset(graph, prices)
    tally = Tally(prices)
    operations = sum(map(tally.eliminate, vertices))
    limit, once = share * first_call(graph, operations, tally.written) / refine._PRODUCT, tally.work
    known, tallies = prices.known, []
    monkeypatch.setattr(refine, "Tally", lambda prices: tallies.append(Tally(prices)) or tallies[-1])
    refined(graph, prices, vertices)
    (tally,) = tallies
    # The order itself is counted, and at the end a move may be under way, which is counted along all of it.
    assert tally.work + refine._STRUCTURE * (prices.known - known) <= limit + 6 * once


def test_nothing_is_tried_where_there_is_nothing_to_choose():
    graph = gx.build_graph(lambda x: jnp.sin(jnp.cos(x)), 1.0)
    assert preset_vertices("auto", graph) == graph.intermediates


def test_long_lists_are_not_refined(monkeypatch):
    monkeypatch.setattr(presets, "_AUTO_LISTED", 10)
    monkeypatch.setattr(presets, "refined", None)
    places = np.random.default_rng(0).permutation(50)
    graph = gx.build_graph(lambda x: jnp.sin(x)[places] * jnp.cos(x), jnp.ones(50))
    assert sorted(presets._auto(graph)) == list(graph.intermediates)


def test_loops_are_refined():
    def loops(x):
        y, ys = jax.lax.scan(lambda c, _: (jnp.sin(c) * x, c), jnp.cos(x) * x.sum(), length=4)
        return jnp.tanh(ys * y).sum(0)

    x = np.linspace(0.1, 0.5, 3)
    assert_same(gx.jacve(loops)(x), jax.jacfwd(loops)(x))
    graph = gx.build_graph(loops, x, simplify=True)
    costs = {name: counted(Prices(graph), preset_vertices(name, graph)) for name in gx.PRESETS}
    assert costs["auto"] == min(costs.values())


@pytest.mark.parametrize("task", ["RoeFlux_1d", "KalmanUpdate", "Chebyquad"])
def test_jacobians_are_exact(task):
    found = (TASKS | UNSEEN)[task]
    args = found.arguments()
    got = gx.jacve(found.function, argnums=found.argnums)(*args)
    assert_same(got, jax.jacfwd(found.function, argnums=found.argnums)(*args))
