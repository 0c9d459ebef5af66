"""The paper's scalar tasks: its graphs, its counts, its orders."""

import json
from importlib import resources

import jax
import numpy as np
import pytest

import graphax as gx
from alphagrad.tasks.equations import human_heart_dipole, propane_combustion
from alphagrad.tasks.fluids import roe_flux_1d
from alphagrad.tasks.robotics import robot_arm_6dof

from ..graphax.comparing import assert_same

PAPER = json.loads((resources.files("alphagrad.tasks") / "paper_results.json").read_text())

# function, inputs, intermediates, outputs, edges, folded (multiplications, additions) forward and reverse
TASKS = {
    "RoeFlux_1d": (roe_flux_1d, 6, 98, 3, 177, (362, 220), (234, 135)),
    "RobotArm_6DOF": (robot_arm_6dof, 6, 108, 6, 190, (227, 79), (221, 84)),
    "HumanHeartDipole": (human_heart_dipole, 8, 78, 8, 144, (48, 20), (60, 24)),
    "PropaneCombustion": (propane_combustion, 11, 51, 11, 104, (26, 0), (26, 0)),
}
SCORES = {"RoeFlux_1d": 320, "RobotArm_6DOF": 231, "HumanHeartDipole": 148, "PropaneCombustion": 88}
PREELIMINATED = {"RoeFlux_1d": 304, "RobotArm_6DOF": 221, "HumanHeartDipole": 148, "PropaneCombustion": 88}
AUTO = {"RoeFlux_1d": 203, "RobotArm_6DOF": 132, "HumanHeartDipole": 48, "PropaneCombustion": 24}


def arguments(name):
    args = list(np.random.default_rng(0).uniform(0.5, 1.5, TASKS[name][1]))
    return [1.0, 0.3, 2.0, 0.8, 0.2, 1.7] if name == "RoeFlux_1d" else args


def graph_of(name):
    return gx.build_graph(TASKS[name][0], *arguments(name), argnums=tuple(range(TASKS[name][1])))


@pytest.mark.parametrize("name", TASKS)
def test_the_graph_is_the_papers(name):
    _, inputs, intermediates, outputs, edges, _, _ = TASKS[name]
    graph = graph_of(name)
    assert len(graph.inputs) == inputs
    assert len(graph.intermediates) == intermediates
    assert len(graph.outputs) == outputs
    assert len(graph.edges) == edges


@pytest.mark.parametrize("name", TASKS)
def test_the_counts_are_the_papers(name):
    graph = graph_of(name)
    forward, reverse, markowitz, _ = PAPER["multiplications_table_1"][name]
    assert graph.cost("fwd", counting="raw").multiplications == forward
    assert graph.cost("rev", counting="raw").multiplications == reverse
    assert graph.cost("markowitz", counting="raw").multiplications == markowitz
    assert graph.cost("preelim_rev", counting="raw").multiplications == PREELIMINATED[name]
    for order, folded in zip(("fwd", "rev"), TASKS[name][5:], strict=True):
        cost = graph.cost(order)
        assert (cost.multiplications, cost.additions) == folded


@pytest.mark.parametrize("name", TASKS)
def test_the_papers_orders_work(name):
    function, inputs, *_ = TASKS[name]
    order = PAPER["elimination_orders"][name]
    assert graph_of(name).cost(order, counting="raw").multiplications == SCORES[name]
    argnums = tuple(range(inputs))
    got = gx.jacve(function, order, argnums=argnums)(*arguments(name))
    assert_same(got, jax.jacfwd(function, argnums=argnums)(*arguments(name)), tolerance=1e-12)


@pytest.mark.parametrize("name", TASKS)
def test_auto_needs_no_more_than_the_readme_says(name):
    function, inputs, *_ = TASKS[name]
    graph = gx.build_graph(function, *arguments(name), argnums=tuple(range(inputs)), simplify=True)
    assert graph.cost("auto").multiplications <= AUTO[name]


@pytest.mark.parametrize("name", TASKS)
def test_vector_arguments_cost_about_the_same(name):
    """Unpacking a vector and stacking the results are renamings, so the scalars in between stay scalars."""
    function, *_ = TASKS[name]
    x = np.array(arguments(name))
    packed = lambda v: jax.numpy.stack(function(*v))
    for order in ("fwd", "rev"):
        apart = graph_of(name).cost(order).multiplications
        assert gx.build_graph(packed, x).cost(order).multiplications <= 1.1 * apart
    assert_same(gx.jacve(packed)(x), jax.jacfwd(packed)(x), tolerance=1e-12)
