"""Plans are straight-line code: values are defined before they are used, and dropped after their last use."""

import pytest
from hypothesis import given, settings

import graphax as gx
from alphagrad.tasks import TASKS
from graphax.plan import Drop, Elimination, Instruction
from graphax.products import Product
from graphax.sums import Sum

from .programs import programs


def check_straight_line(plan):
    """Run a plan on the numbers of its values only."""
    live = set(range(len(plan.operands)))
    for step in plan.code:
        if isinstance(step, Drop):
            assert live.issuperset(step.values)
            live.difference_update(step.values)
            continue
        assert {step.left, step.right} <= live
        assert step.result == max(live | {step.result})
        assert plan.structures[step.result] == step.structure
        if isinstance(step.operation, Sum):
            # A sum takes the place of what it adds up.
            live -= {step.left, step.right}
        else:
            assert isinstance(step.operation, Product)
        live.add(step.result)
    assert live == set(plan.outputs.values())


@settings(max_examples=25, deadline=None)
@given(programs(steps=6))
def test_values_are_defined_used_and_dropped(program):
    args = program.arguments()
    graph = gx.build_graph(program, *args, argnums=tuple(range(len(args))))
    for order in ("fwd", "rev", "markowitz"):
        check_straight_line(graph.plan(order))


@pytest.mark.parametrize("order", ["fwd", "rev", "markowitz"])
def test_costs_are_those_of_the_eliminations(order):
    """The cost and the peak of the code equal those of eliminating vertex by vertex."""
    graph = TASKS["RoeFlux_1d"].graph()
    plan, state = graph.plan(order), Elimination(graph)
    multiplications = additions = 0
    live = most = state.stored()
    for vertex in plan.order:
        incident = (*state.predecessors[vertex].values(), *state.successors[vertex].values())
        gone = sum(structure.stored for structure in incident)
        fills = state.eliminate(vertex)
        multiplications += sum(fill.product.raw_multiplications for fill in fills)
        additions += sum(fill.product.additions + (fill.total.additions if fill.total else 0) for fill in fills)
        live = state.stored()
        most = max(most, live + gone)
    cost = plan.cost("raw")
    assert (cost.multiplications, cost.additions, cost.peak) == (multiplications, additions, most)


def test_each_elimination_ends_with_a_drop():
    graph = TASKS["RoeFlux_1d"].graph()
    plan = graph.plan("rev")
    assert tuple(step.vertex for step in plan.code if isinstance(step, Drop)) == plan.order
    assert tuple(vertex for vertex, _ in plan.by_vertex()) == plan.order
    assert [step for _, steps in plan.by_vertex() for step in steps] == list(plan.instructions)
    for vertex, steps in plan.by_vertex():
        assert all(isinstance(step, Instruction) and vertex not in step.edge for step in steps)


def test_results_are_the_structures_of_the_outputs():
    plan = TASKS["RoeFlux_1d"].graph().plan("markowitz")
    assert plan.results == {edge: plan.structures[value] for edge, value in plan.outputs.items()}
