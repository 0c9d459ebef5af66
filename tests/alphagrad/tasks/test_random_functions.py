"""Random functions: properties for every seed and every size."""

import pickle

import jax
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import graphax as gx
from alphagrad.errors import AlphagradError
from alphagrad.tasks.random_functions import DEFAULT, MOST_ELEMENTS, random_function

from ...graphax.comparing import assert_same
from .jacobians import by_elimination_and_by_jax

SEEDS = st.integers(0, 2**32)
KEPT = [
    "x0: (4,)",
    "x1: ()",
    "v1 = slice(x0; (0, 1, 3))",
    "v2 = logistic(x1)",
    "v3 = reduce_sum(v1; (0,))",
    "v4 = logistic(v3)",
    "v5 = sub(v4, v2)",
    "v6 = cos(v2)",
    "v7 = mul(v3, x1)",
    "v8 = atan2(v5, v7)",
    "return v6, v8",
]


@st.composite
def functions(draw):
    ranks = draw(st.sampled_from([(0,), (1,), (0, 1), (1, 2), (0, 1, 2)]))
    inputs, outputs = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    intermediates = 2 * inputs + draw(st.integers(0, 25))
    kinds = draw(st.sets(st.sampled_from(sorted(DEFAULT)), min_size=1))
    probabilities = DEFAULT if ranks == (0,) else dict.fromkeys(sorted(kinds), 1.0)
    seed = draw(SEEDS)
    function = random_function(seed, inputs, outputs, intermediates, ranks=ranks, probabilities=probabilities)
    return function, inputs, outputs, intermediates


def graph_of(function):
    return gx.build_graph(function, *function.args, argnums=tuple(range(len(function.shapes))))


@given(functions())
@settings(max_examples=60, deadline=None)
def test_no_statement_is_dead(drawn):
    function, inputs, outputs, intermediates = drawn
    graph = graph_of(function)
    assert graph.numbered == intermediates + outputs == len(function.statements)
    assert len(graph.intermediates) == intermediates
    assert len(graph.outputs) == outputs == len(set(graph.outputs))
    assert None not in graph.outputs
    assert {source for _, source in graph.edges} >= set(graph.inputs)
    assert set(graph.vertices) == {*graph.inputs, *range(1, intermediates + outputs + 1)}
    assert len(graph.inputs) == inputs
    assert all(np.prod(vertex.shape) <= MOST_ELEMENTS for vertex in graph.vertices.values())


@given(functions(), st.integers(0, 10))
@settings(max_examples=10, deadline=None)
def test_values_and_derivatives_are_finite(drawn, point):
    function, *_ = drawn
    args = function.arguments(point)
    tangents = tuple(np.ones_like(a) for a in args)
    values, derivatives = jax.jit(lambda a, t: jax.jvp(function, a, t))(args, tangents)
    assert all(np.isfinite(leaf).all() for leaf in (*values, *derivatives))


@pytest.mark.parametrize("ranks", [(0,), (1, 2)])
def test_jacobians_are_finite_and_those_of_jax(ranks):
    function = random_function(5, 3, 2, 60, ranks=ranks)
    got, want = by_elimination_and_by_jax(function, function.args, (0, 1, 2))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(want))
    assert_same(got, want)


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_a_seed_is_a_function(seed):
    function = random_function(seed)
    assert function == random_function(seed)
    assert str(function) != str(random_function(seed + 1))
    assert function.seed == seed


def test_functions_pickle():
    function = random_function(7)
    loaded = pickle.loads(pickle.dumps(function))
    assert loaded == function
    for a, b in zip(loaded(*function.args), function(*function.args), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_function_stays_the_same_for_good():
    """Orders and results are stored by seed, so this text must not change."""
    assert str(random_function(1, 2, 2, 6)).splitlines() == KEPT


def test_smallest_functions():
    one = random_function(0, 1, 1, 0, ranks=(0,))
    assert len(one.statements) == 1
    assert len(random_function(0, 1, 3, 0, ranks=(0,)).results) == 3


def test_weights_decide_what_is_drawn():
    for kind, arity in (("unary", 1), ("binary", 2)):
        function = random_function(0, 2, 2, 100, ranks=(0,), probabilities={kind: 1.0})
        assert np.mean([len(statement.operands) == arity for statement in function.statements]) > 0.6


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"inputs": 0}, "at least 1 inputs, but got 0"),
        ({"outputs": 0}, "at least 1 outputs, but got 0"),
        ({"intermediates": -1}, "at least 0 intermediates"),
        ({"seed": -1}, "must not be negative"),
        ({"probabilities": {"unitary": 1.0}}, "unknown kinds of operations .'unitary'.; choose among: unary"),
        ({"probabilities": {"unary": 0.0}}, "needs a weight above 0"),
        ({"probabilities": {"unary": -1.0}}, "finite and not negative"),
        ({"probabilities": {"unary": float("nan")}}, "finite and not negative"),
        ({"probabilities": {"product": 1.0}, "ranks": (0,)}, "these kinds needs a weight above 0: unary, binary"),
        ({"ranks": ()}, "ranks must be 0, 1 or 2"),
        ({"ranks": (3,)}, "ranks must be 0, 1 or 2"),
        ({"sizes": (1,)}, "sizes must be at least 2"),
        ({"sizes": (9,)}, "at most 64 elements"),
        ({"inputs": 9, "outputs": 1, "intermediates": 3}, "3 are too few"),
    ],
)
def test_impossible_requests_are_errors(wrong, message):
    with pytest.raises(AlphagradError, match=message):
        random_function(**{"seed": 0, **wrong})
