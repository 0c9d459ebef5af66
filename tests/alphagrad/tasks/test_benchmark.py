"""The paper's tasks: graphs, counts and orders."""

import jax
import numpy as np
import pytest

import graphax as gx
from alphagrad.tasks import TASKS
from alphagrad.tasks.finance import black_scholes_price

from ...graphax.comparing import assert_same
from .jacobians import by_elimination_and_by_jax

# inputs, intermediates, outputs, edges, folded (multiplications, additions) forward and reverse
SCALAR = {
    "RoeFlux_1d": (6, 98, 3, 177, (362, 220), (234, 135)),
    "RobotArm_6DOF": (6, 108, 6, 190, (227, 79), (221, 84)),
    "HumanHeartDipole": (8, 78, 8, 144, (48, 20), (60, 24)),
    "PropaneCombustion": (11, 51, 11, 104, (26, 0), (26, 0)),
}
SCORES = {"RoeFlux_1d": 320, "RobotArm_6DOF": 231, "HumanHeartDipole": 148, "PropaneCombustion": 88}
PREELIMINATED = {"RoeFlux_1d": 304, "RobotArm_6DOF": 221, "HumanHeartDipole": 148, "PropaneCombustion": 88}
AUTO = {"RoeFlux_1d": 203, "RobotArm_6DOF": 132, "HumanHeartDipole": 48, "PropaneCombustion": 24}

# raw multiplications of forward, reverse and Markowitz, for graphs that differ from the paper's
OWN_COUNTS = {
    "random_g": (686, 598, 446),
    "BlackScholes": (479, 416, 339),
    "RoeFlux_3d": (1370, 838, 734),
    "random_f": (16545, 6055, 12030),
    "MLP": (6636, 268, 602),
    "TransformerEncoder": (122828, 2269, 3129),
    "BatchedTransformer": (242952, 4537, 5959),
}
SIZED = ("MLP", "TransformerEncoder", "BatchedTransformer")


def raw_counts(graph):
    return tuple(graph.cost(order, counting="raw").multiplications for order in ("fwd", "rev", "markowitz"))


def test_every_task_is_counted():
    assert set(TASKS) == {*SCALAR, *OWN_COUNTS}


@pytest.mark.parametrize("name", SCALAR)
def test_the_graph_is_the_papers(name):
    inputs, intermediates, outputs, edges, _, _ = SCALAR[name]
    graph = TASKS[name].graph()
    assert len(graph.inputs) == inputs
    assert len(graph.intermediates) == intermediates
    assert len(graph.outputs) == outputs
    assert len(graph.edges) == edges


@pytest.mark.parametrize("name", SCALAR)
def test_the_counts_are_the_papers(name):
    graph = TASKS[name].graph()
    paper = TASKS[name].paper
    assert raw_counts(graph) == (paper.forward, paper.reverse, paper.markowitz)
    assert graph.cost("preelim_rev", counting="raw").multiplications == PREELIMINATED[name]
    for order, folded in zip(("fwd", "rev"), SCALAR[name][4:], strict=True):
        cost = graph.cost(order)
        assert (cost.multiplications, cost.additions) == folded


@pytest.mark.parametrize("name", OWN_COUNTS)
def test_the_other_counts_stay(name):
    assert raw_counts(TASKS[name].graph()) == OWN_COUNTS[name]


@pytest.mark.parametrize("name", SCALAR)
def test_the_papers_orders_work(name):
    task = TASKS[name]
    order, args = task.paper.order, task.arguments()
    assert task.graph().cost(order, counting="raw").multiplications == SCORES[name]
    got = gx.jacve(task.function, order=order, argnums=task.argnums)(*args)
    assert_same(got, jax.jacfwd(task.function, argnums=task.argnums)(*args), tolerance=1e-12)


@pytest.mark.parametrize("name", SCALAR)
def test_auto_needs_no_more_than_the_readme_says(name):
    assert TASKS[name].graph(simplify=True).cost("auto").multiplications <= AUTO[name]


@pytest.mark.parametrize(
    "name", [n if n == "RobotArm_6DOF" else pytest.param(n, marks=pytest.mark.slow) for n in SCALAR]
)
def test_vector_arguments_cost_about_the_same(name):
    """Unpacking a vector and stacking the results are renamings, so the scalars in between stay scalars."""
    task = TASKS[name]
    x = np.stack(task.arguments())
    packed = lambda v: jax.numpy.stack(task.function(*v))
    for order in ("fwd", "rev"):
        apart = task.graph().cost(order).multiplications
        assert gx.build_graph(packed, x).cost(order).multiplications <= 1.1 * apart
    assert_same(gx.jacve(packed)(x), jax.jacfwd(packed)(x), tolerance=1e-12)


@pytest.mark.parametrize("name", OWN_COUNTS)
def test_the_jacobian_is_that_of_jax(name):
    task = TASKS[name]
    assert_same(*by_elimination_and_by_jax(task.function, task.arguments(), task.argnums), tolerance=1e-10)


def test_black_scholes_is_the_gradient_of_the_price():
    task = TASKS["BlackScholes"]
    args = task.arguments()
    want = jax.grad(black_scholes_price, argnums=task.argnums)(*args)
    assert_same(task.function(*args), want, tolerance=1e-12)
    # At the money and without interest the price is 100 (Φ(0.1) - Φ(-0.1)).
    assert float(black_scholes_price(100.0, 100.0, 0.0, 0.2, 1.0)) == pytest.approx(7.9656, abs=1e-4)


def test_random_tasks_have_the_sizes_asked_for():
    g, f = TASKS["random_g"].graph(), TASKS["random_f"].graph()
    assert (len(g.inputs), len(g.intermediates), len(g.outputs)) == (15, 85, 20)
    assert (len(f.inputs), len(f.intermediates), len(f.outputs)) == (4, 75, 5)


@pytest.mark.parametrize("name", SIZED)
def test_networks_grow_with_the_scale(name):
    task = TASKS[name]
    small, large = task.arguments(), task.arguments(scale=16)
    assert [np.ndim(a) for a in small] == [np.ndim(a) for a in large]
    assert all(len(task.arguments(scale)[2]) == scale * len(small[2]) for scale in (2, 16))
    gradient = jax.jit(jax.grad(task.function, argnums=task.argnums))(*large)
    assert all(np.isfinite(leaf).all() for leaf in gradient)
    assert task.graph(scale=2).intermediates == task.graph().intermediates


def test_a_batch_of_one_costs_the_mlp_nothing():
    task = TASKS["MLP"]
    x, y, *parameters = task.arguments()
    batched = jax.vmap(task.function, task.batch_axes)
    graph = gx.build_graph(batched, x[None], y[None], *parameters, argnums=task.argnums)
    forward, reverse, _ = raw_counts(graph)
    assert (forward, reverse) == OWN_COUNTS["MLP"][:2]
