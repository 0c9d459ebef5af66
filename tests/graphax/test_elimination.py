"""The laws of elimination, over random programs and random orders."""

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings, strategies as st

import graphax as gx
from graphax import Order, execute
from graphax.block import settled
from graphax.derive import derive
from graphax.trace import Request, trace

from .comparing import assert_same
from .counting import count_arithmetic
from .programs import programs

thorough = settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)


@given(program=programs(), shuffle=st.randoms(use_true_random=False))
@settings(thorough, max_examples=7)
def test_any_order_gives_the_jacobian(program, shuffle):
    note(program)
    args = program.arguments()
    argnums = tuple(range(len(args)))
    graph = gx.build_graph(program, *args, argnums=argnums)
    order = list(graph.intermediates)
    shuffle.shuffle(order)
    got = gx.jacve(program, order=order, argnums=argnums)(*args)
    assert_same(got, jax.jacfwd(program, argnums=argnums)(*args))


@given(program=programs(), shuffle=st.randoms(use_true_random=False))
@settings(thorough, max_examples=20)
def test_counted_is_executed(program, shuffle):
    note(program)
    args = program.arguments()
    derivation = derive(trace(program, args, {}, Request(tuple(range(len(args)))), False), False)
    graph = derivation.graph
    order = list(graph.intermediates)
    shuffle.shuffle(order)
    plan = graph.plan(order)
    _, local = jax.eval_shape(lambda: execute.evaluate_locally(derivation, derivation.traced.args))

    def accumulate(local):
        return [settled(block).values for block in execute.eliminate(plan, local).values()]

    multiplications, additions = count_arithmetic(jax.make_jaxpr(accumulate)(local))
    cost = plan.cost()
    assert additions == cost.additions
    # A product with a mask is counted, and executed as a selection.
    masks = any(leaf.dtype == bool for leaf in jax.tree.leaves(local))
    assert multiplications <= cost.multiplications if masks else multiplications == cost.multiplications


@given(program=programs(steps=8))
@settings(thorough, max_examples=6)
def test_sparse_blocks_are_the_jacobian(program):
    note(program)
    args = program.arguments()
    argnums = tuple(range(len(args)))
    dense = gx.jacve(program, argnums=argnums)(*args)
    blocks = gx.jacve(program, argnums=argnums, sparse=True)(*args)
    is_block = lambda node: isinstance(node, gx.JacobianBlock)
    for block, array in zip(jax.tree.leaves(blocks, is_leaf=is_block), jax.tree.leaves(dense), strict=True):
        # Terms that a dense result merges are added in another order here.
        np.testing.assert_allclose(block.todense(), array, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(block.to_bcoo().todense(), array, rtol=1e-12, atol=1e-12)
        tangent = np.random.default_rng(1).normal(size=block.structure.inp_shape)
        np.testing.assert_allclose(block.apply(tangent), np.tensordot(array, tangent, tangent.ndim), atol=1e-9)


@given(program=programs(steps=8))
@settings(thorough, max_examples=8)
@pytest.mark.parametrize("order", list(gx.PRESETS))
def test_presets_eliminate_everything_once(order, program):
    args = program.arguments()
    graph = gx.build_graph(program, *args, argnums=tuple(range(len(args))))
    assert sorted(Order.of(order, graph).vertices) == list(graph.intermediates)


@given(program=programs(steps=8))
@settings(thorough, max_examples=8)
def test_auto_is_the_cheapest_preset(program):
    args = program.arguments()
    graph = gx.build_graph(program, *args, argnums=tuple(range(len(args))))
    costs = {name: graph.cost(name).operations for name in gx.PRESETS}
    assert costs["auto"] == min(costs.values())
