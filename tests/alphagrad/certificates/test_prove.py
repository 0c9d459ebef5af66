"""Certificates never exceed the optimum, which is found by brute force for small graphs of single numbers."""

from dataclasses import replace
from functools import cache
from itertools import permutations

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings, strategies as st

import graphax as gx
from alphagrad.certificates.conditional_cuts import ConditionalCuts
from alphagrad.certificates.prove import Prover, prove
from alphagrad.certificates.reduction import reduced
from alphagrad.certificates.scalar_graph import ScalarGraph
from alphagrad.certificates.scenarios import ScenarioProgram
from alphagrad.tasks import TASKS
from graphax.plan import COUNTINGS

from ...graphax.scalar_graphs import EDGES, scalar_graph, scalar_graphs

thorough = settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
countings = st.sampled_from(COUNTINGS)
graphs = st.one_of(scalar_graphs(7), scalar_graphs(7, ("values",)), scalar_graphs(7, ("values", "one", "two"), ends=4))


def optimum(graph: ScalarGraph) -> int:
    """The least cost of all orders. The remaining graph depends only on the set of eliminated vertices."""

    @cache
    def least(eliminated: frozenset[int]) -> int:
        state = graph.copy()
        for vertex in sorted(eliminated):
            state.eliminate(vertex)
        rest = state.intermediates
        return min((state.cost(v) + least(eliminated | {v}) for v in rest), default=0)

    return least(frozenset())


@given(graph=scalar_graphs(), counting=countings, shuffle=st.randoms(use_true_random=False))
@settings(thorough, max_examples=60)
def test_scalar_graphs_cost_what_plans_do(graph, counting, shuffle):
    order = list(graph.intermediates)
    shuffle.shuffle(order)
    state = ScalarGraph(graph, counting)
    assert sum(map(state.eliminate, order)) == graph.cost(order, counting).multiplications


@given(graph=scalar_graphs(5), counting=countings)
@settings(thorough, max_examples=20)
def test_the_optimum_is_that_of_all_orders(graph, counting):
    costs = (graph.cost(order, counting).multiplications for order in permutations(graph.intermediates))
    assert optimum(ScalarGraph(graph, counting)) == min(costs)


@given(graph=graphs, counting=countings)
@settings(thorough, max_examples=120)
def test_the_bound_never_exceeds_the_optimum(graph, counting):
    note(graph.edges)
    proof = prove(graph, counting, seconds=20)
    best = optimum(ScalarGraph(graph, counting))
    assert graph.lower_bound(counting=counting) <= proof.bound <= best
    if proof.order is not None:
        assert proof.cost == graph.cost(proof.order, counting).multiplications >= best


@given(graph=scalar_graphs(7, ("values",), ends=4))
@settings(thorough, max_examples=60)
def test_graphs_with_values_only_are_solved(graph):
    note(graph.edges)
    assert prove(graph, "raw", seconds=20).bound == optimum(ScalarGraph(graph, "raw"))


@given(graph=graphs, counting=countings)
@settings(thorough, max_examples=100)
def test_reductions_keep_the_bound(graph, counting):
    note(graph.edges)
    whole = ScalarGraph(graph, counting)
    core = reduced(whole)
    assert core.settled + optimum(core.graph) <= optimum(whole)
    assert sorted((*core.eliminated, *core.graph.intermediates)) == list(graph.intermediates)


@given(graph=graphs, counting=countings, shuffle=st.randoms(use_true_random=False))
@settings(thorough, max_examples=150)
def test_conditional_cuts_bound_what_is_spent(graph, counting, shuffle):
    """This holds for any subset of the relations to other vertices, and more relations never lower the bound."""
    note(graph.edges)
    state = ScalarGraph(graph, counting)
    cuts = ConditionalCuts(state.copy())
    order = list(graph.intermediates)
    shuffle.shuffle(order)
    note(order)
    for place, vertex in enumerate(order):
        before, after = frozenset(order[:place]), frozenset(order[place + 1 :])
        some_before = frozenset(v for v in before if shuffle.random() < 0.5)
        some_after = frozenset(v for v in after if shuffle.random() < 0.5)
        nothing, some, all_of_it = (
            cuts.bound(vertex),
            cuts.bound(vertex, some_before, some_after),
            cuts.bound(vertex, before, after),
        )
        assert nothing <= some <= all_of_it <= state.eliminate(vertex)


def test_an_early_end_still_bounds():
    graph = TASKS["RoeFlux_1d"].graph()
    bounds = [prove(graph, "raw", seconds).bound for seconds in (0, 0.3, 2)]
    assert graph.lower_bound(counting="raw") <= bounds[0] <= bounds[1] <= bounds[2] <= 295
    assert bounds[2] > bounds[0]


@pytest.mark.parametrize("name", ["RobotArm_6DOF", "HumanHeartDipole", "PropaneCombustion"])
def test_the_best_known_orders_of_the_paper_are_optimal(name):
    proof = prove(TASKS[name].graph(), "raw", seconds=30)
    assert proof.optimal
    assert proof.bound == {"RobotArm_6DOF": 221, "HumanHeartDipole": 148, "PropaneCombustion": 88}[name]


@pytest.mark.slow
def test_roe_flux_takes_295():
    proof = prove(TASKS["RoeFlux_1d"].graph(), "raw", seconds=600)
    assert proof.optimal
    assert proof.bound == 295
    assert TASKS["RoeFlux_1d"].graph().cost(proof.order, "raw").multiplications == 295


def test_it_stops_at_a_known_cost():
    proof = prove(TASKS["RoeFlux_1d"].graph(), "raw", seconds=60, upper=260)
    assert 260 <= proof.bound < 295


def test_arrays_get_the_bound_of_cuts():
    graph = gx.build_graph(lambda x: jnp.sin(jnp.cos(x) * x), np.ones(3))
    assert prove(graph, seconds=1).bound == graph.lower_bound()


def test_reductions_may_settle_everything():
    edges = {(n + 1, n): EDGES["values"] for n in range(5)}
    proof = prove(scalar_graph(1, 4, 1, edges), "raw")
    assert proof.optimal
    assert proof.bound == 4


def test_vertices_that_do_not_compete_need_no_integers():
    edges = {(n, source): EDGES["values"] for n in (1, 2) for source in (0, -1)}
    edges |= {(n, vertex): EDGES["values"] for n in (3, 4) for vertex in (1, 2)}
    proof = prove(scalar_graph(2, 2, 2, edges), "raw")
    assert proof.optimal
    assert proof.bound == 8


def test_nothing_to_eliminate():
    assert prove(gx.build_graph(jnp.sin, 0.5)).bound == 0


def test_a_vertex_that_holds_two_apart_is_left_to_the_search():
    """Vertex 3 has one predecessor and one successor, but there is no proof that eliminating it at once is best."""
    edges = {(n, s): EDGES["values"] for n in (1, 2) for s in (0, -1)}
    edges |= {(3, 1): EDGES["values"], (4, 3): EDGES["values"], (4, 2): EDGES["values"], (5, 1): EDGES["values"]}
    edges |= {(t, s): EDGES["values"] for t in (6, 7) for s in (4, 5)}
    core = reduced(ScalarGraph(scalar_graph(2, 5, 2, edges), "raw"))
    assert 3 in core.graph.intermediates


def test_a_solution_cut_short_does_not_end_the_proof(monkeypatch):
    """Once, an order from an integer program that ran out of time was mistaken for its optimum."""
    solve = ScenarioProgram.solve

    def cut_short(program, seconds, integral):
        solution = solve(program, seconds, integral)
        return replace(solution, bound=solution.bound - 3, complete=False) if integral else solution

    prover = Prover(TASKS["RobotArm_6DOF"].graph(simplify=True), "raw")
    with monkeypatch.context() as patch:
        patch.setattr(ScenarioProgram, "solve", cut_short)
        for _ in prover.work(2.0):
            pass
    assert prover.open
    for _ in prover.work(60.0):
        pass
    assert prover.proof.optimal


def test_work_can_be_done_in_pieces():
    graph = TASKS["RobotArm_6DOF"].graph(simplify=True)
    prover, bounds = Prover(graph, "raw"), []
    while prover.open and len(bounds) < 100:
        for _ in prover.work(0.5):
            pass
        bounds.append(prover.proof.bound)
    assert bounds == sorted(bounds)
    assert prover.proof.optimal
    assert prover.proof.bound == 189
