"""The game costs what the plan counts, ends with the structures of the Jacobian, and can be mapped and padded."""

from dataclasses import replace
from functools import lru_cache
from itertools import permutations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from alphagrad.elimination import structures
from alphagrad.elimination.objective import Objective
from alphagrad.elimination.problem import Problem
from alphagrad.errors import AlphagradError
from alphagrad.game import (
    Sizes,
    VertexGame,
    common_sizes,
    init,
    is_over,
    legal_actions,
    make_tables,
    observe,
    play,
    rules as game,
    sizes_of,
    stack_tables,
    step,
)
from alphagrad.game.rules import ELIMINATED_TYPE
from alphagrad.game.tables import OTHER_TYPE
from alphagrad.tasks import TASKS
from graphax import build_graph
from graphax.sparsity_types import sparsity_type
from graphax.structure import dense

from ...graphax.scalar_graphs import scalar_graph, scalar_graphs
from ..graphs import program_graphs

relaxed = settings(deadline=None, print_blob=True)
KINDS = [(counting, minimize) for counting in ("raw", "folded") for minimize in ("multiplications", "operations")]
# Sizes that hold all random graphs, so that they share one compiled program.
ROOM = Sizes(inputs=8, intermediates=24, outputs=12, structures=512)

# Unlike other programs in tests, this one runs for long, so it is optimised.
play_all = jax.jit(jax.vmap(play, (None, 0)), compiler_options={"xla_backend_optimization_level": 3})
play_one = jax.jit(play)


@lru_cache(16)
def task_graph(name):
    return TASKS[name].graph()


def random_orders(size, count, seed=0):
    rng = np.random.default_rng(seed)
    return np.stack([rng.permutation(size) for _ in range(count)]).astype(np.int32)


def fits_a_table(graph):
    """Whether a game accepts a graph. A few random programs have thousands of structures, which games refuse."""
    try:
        return bool(sizes_of(graph))
    except AlphagradError:
        return False


def padded(actions, room=ROOM):
    """The actions, followed by illegal ones."""
    return np.array([*actions, *([-1] * (room.intermediates - len(actions)))], np.int32)


def remaining(graph, state, sizes):
    """The edges of the last state by vertex numbers, as in plans."""
    edges, scale = np.asarray(state.edges), np.asarray(state.scale)
    outputs = sorted(number for number, vertex in graph.vertices.items() if vertex.kind == "output")
    known = dict(structures.closed_table(graph).numbered())
    return {
        (outputs[row - sizes.intermediates], graph.inputs[column]): structures.with_coefficient(
            known[edges[row, column]], float(scale[row, column])
        )
        for row, column in zip(*np.nonzero(edges), strict=True)
    }


def rounded(results):
    """Structures with coefficients in single precision, apart from rounding."""
    known = {edge: s.scale for edge, s in results.items() if s.scale is not None}
    return {edge: replace(s, scale=1.0) if edge in known else s for edge, s in results.items()}, known


def assert_same_results(ours, theirs):
    (ours, our_numbers), (theirs, their_numbers) = rounded(ours), rounded(theirs)
    assert ours == theirs
    assert our_numbers == pytest.approx(their_numbers, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("counting", [pytest.param("raw", marks=pytest.mark.slow), "folded"])
@pytest.mark.parametrize(
    "name", [n if n in ("PropaneCombustion", "MLP") else pytest.param(n, marks=pytest.mark.slow) for n in TASKS]
)
def test_tasks_cost_what_the_kernels_count(name, counting):
    graph = task_graph(name)
    orders = random_orders(len(graph.intermediates), 100)
    problem = Problem(graph, Objective.of("multiplications", counting))
    counted = [problem.cost(order) for order in orders]
    for minimize, count in (("multiplications", 100), ("operations", 20)):
        state, costs = play_all(make_tables(graph, counting, minimize), orders[:count])
        np.testing.assert_array_equal(state.cost, [getattr(cost, minimize) for cost in counted[:count]])
        np.testing.assert_array_equal(state.cost, np.sum(costs, axis=1))
        np.testing.assert_array_equal(state.steps, len(graph.intermediates))


@pytest.mark.parametrize("name", TASKS)
def test_tasks_cost_what_plans_count(name):
    graph = task_graph(name)
    game = VertexGame.of(graph, "folded")
    orders = [game.vertices(actions) for actions in random_orders(len(graph.intermediates), 1, seed=1)]
    for order in (*orders, graph.intermediates, graph.intermediates[::-1]):
        assert game.cost(order) == graph.cost(order, "folded").multiplications


@pytest.mark.parametrize("name", TASKS)
def test_tasks_end_with_the_structures_of_the_jacobian(name):
    graph = task_graph(name)
    game = VertexGame.of(graph)
    for order in (graph.intermediates, graph.intermediates[::-1]):
        state, _ = play_one(game.tables, game.actions(order))
        assert_same_results(remaining(graph, state, game.tables.sizes), graph.plan(order).results)


def assert_plays_the_plan(graph, order):
    plan = graph.plan(order)
    for counting, minimize in KINDS:
        game = VertexGame.of(graph, counting, minimize, common_sizes([ROOM, sizes_of(graph)]))
        sizes = game.tables.sizes
        state, _ = play_one(game.tables, padded(game.actions(order), sizes))
        assert float(state.cost) == getattr(plan.cost(counting), minimize)
    assert_same_results(remaining(graph, state, sizes), plan.results)


@given(graph=program_graphs().filter(fits_a_table), shuffle=st.randoms(use_true_random=False))
@settings(relaxed, max_examples=60)
def test_random_programs_are_played_as_planned(graph, shuffle):
    order = list(graph.intermediates)
    shuffle.shuffle(order)
    assert_plays_the_plan(graph, order)


@given(graph=scalar_graphs(), shuffle=st.randoms(use_true_random=False))
@settings(relaxed, max_examples=60)
def test_random_scalar_graphs_are_played_as_planned(graph, shuffle):
    order = list(graph.intermediates)
    shuffle.shuffle(order)
    assert_plays_the_plan(graph, order)


def test_coefficients_beyond_single_precision_stay_where_they_are():
    large, values = dense((), (), 1e30), dense((), ())
    edges = {
        (1, 0): large,
        (2, 1): large,
        (3, 2): values,
        (3, 0): values,
        (4, -1): values,
        (5, 3): large,
        (5, 4): values,
    }
    graph = scalar_graph(2, 4, 1, edges)
    for order in permutations(graph.intermediates):
        assert_plays_the_plan(graph, order)


@pytest.mark.parametrize(
    "coefficients", [(2.0, 3.0), *(pytest.param(c, marks=pytest.mark.slow) for c in ((2.0, 2.0), (1.0, 1.0)))]
)
def test_halves_with_equal_coefficients_stay_known(coefficients):
    def halves(x):
        first, second = (c * part for c, part in zip(coefficients, (x[:2], x[2:]), strict=True))
        return jnp.sin(jnp.concatenate([first, second]))

    graph = build_graph(halves, np.ones(4))
    assert any(entry.keeps for entry in structures.closed_table(graph).sums.values())
    for order in permutations(graph.intermediates):
        assert_plays_the_plan(graph, order)


def test_weights_charge_both_kinds_of_arithmetic():
    graph = task_graph("RoeFlux_3d")
    cost = graph.cost("rev", "folded")
    game = VertexGame.of(graph, "folded", (2.0, 0.5))
    assert game.cost(graph.intermediates[::-1]) == 2 * cost.multiplications + 0.5 * cost.additions


def test_padding_changes_nothing():
    graph = task_graph("MLP")
    sizes = sizes_of(graph)
    room = Sizes(*(size + 3 for size in sizes))
    orders = random_orders(sizes.intermediates, 5)
    tight, loose = make_tables(graph, "folded"), make_tables(graph, "folded", sizes=room)
    state, costs = play_all(tight, orders)
    with_padding, same_costs = play_all(loose, orders)
    np.testing.assert_array_equal(costs, same_costs)
    rows = [*range(sizes.intermediates), room.intermediates]
    columns = [*range(sizes.inputs), *range(room.inputs, room.inputs + sizes.intermediates)]
    view = jax.vmap(observe, (None, 0))
    seen, seen_with_padding = np.asarray(view(tight, state)), np.asarray(view(loose, with_padding))
    np.testing.assert_array_equal(seen, seen_with_padding[:, :, rows][..., columns])
    assert np.all(jax.vmap(is_over, (None, 0))(loose, with_padding))


def test_games_on_several_graphs_at_once():
    graphs = [task_graph(name) for name in ("MLP", "PropaneCombustion", "random_f")]
    room = common_sizes([sizes_of(graph) for graph in graphs])
    tables = stack_tables([make_tables(graph, "folded", sizes=room) for graph in graphs])
    orders = [random_orders(len(graph.intermediates), 1)[0] for graph in graphs]
    state, _ = jax.jit(jax.vmap(play))(tables, np.stack([padded(order, room) for order in orders]))
    alone = [play_one(make_tables(graph, "folded"), order)[0] for graph, order in zip(graphs, orders, strict=True)]
    np.testing.assert_array_equal(state.cost, [game.cost for game in alone])
    np.testing.assert_array_equal(state.steps, [len(order) for order in orders])


def test_illegal_actions_change_nothing():
    graph = task_graph("MLP")
    size = len(graph.intermediates)
    tables = make_tables(graph, sizes=common_sizes([sizes_of(graph), Sizes(0, size + 2, 0, 0)]))
    state, cost = jax.jit(step)(tables, init(tables), 7)
    assert cost > 0
    for action in (7, size, size + 1, size + 2, -1, 10_000):
        same, nothing = jax.jit(step)(tables, state, action)
        assert nothing == 0
        for before, after in zip(state, same, strict=True):
            np.testing.assert_array_equal(before, after)
    legal = legal_actions(tables, state)
    assert [int(n) for n in np.flatnonzero(~np.asarray(legal))] == [7, size, size + 1]


def test_the_graph_is_bipartite_at_the_end_and_not_before():
    graph = task_graph("RoeFlux_1d")
    tables = make_tables(graph)
    sizes = tables.sizes
    state, _ = play_one(tables, np.arange(sizes.intermediates - 1))
    assert not is_over(tables, state)
    state, _ = step(tables, state, sizes.intermediates - 1)
    assert is_over(tables, state)
    assert not np.any(state.edges[: sizes.intermediates])
    assert not np.any(state.edges[:, sizes.inputs :])


@given(graph=program_graphs().filter(fits_a_table))
@settings(relaxed, max_examples=30)
def test_observations_have_the_types_and_sizes_of_the_edges(graph):
    tables = make_tables(graph, sizes=common_sizes([ROOM, sizes_of(graph)]))
    sizes = tables.sizes
    seen = np.asarray(jax.jit(observe)(tables, init(tables)))
    assert seen.shape == (5, sizes.intermediates + sizes.outputs, sizes.inputs + sizes.intermediates)
    assert np.count_nonzero(seen[0]) == len(graph.edges)
    outputs = sorted(number for number, vertex in graph.vertices.items() if vertex.kind == "output")
    rows = {vertex: n for n, vertex in enumerate(graph.intermediates)}
    columns = {vertex: sizes.inputs + n for vertex, n in rows.items()}
    rows |= {vertex: sizes.intermediates + n for n, vertex in enumerate(outputs)}
    columns |= {vertex: n for n, vertex in enumerate(graph.inputs)}
    for (target, source), structure in graph.edges.items():
        kind, *shape = seen[:, rows[target], columns[source]].tolist()
        assert np.prod(shape) == np.prod(structure.out_shape) * np.prod(structure.inp_shape)
        if max(len(structure.out), len(structure.inp)) > 2:
            assert kind == OTHER_TYPE
        else:
            assert kind == sparsity_type(structure)
            assert shape == [*(*structure.inp_shape, 1, 1)[:2], *(*structure.out_shape, 1, 1)[:2]]


def test_observations_mark_what_is_eliminated():
    graph = task_graph("MLP")
    tables = make_tables(graph)
    state, _ = step(tables, init(tables), 4)
    kind, *shape = np.asarray(observe(tables, state))
    column = tables.sizes.inputs + 4
    assert np.all(kind[4] == ELIMINATED_TYPE)
    assert np.all(kind[:, column] == ELIMINATED_TYPE)
    assert np.count_nonzero(kind == ELIMINATED_TYPE) == sum(kind.shape) - 1
    assert not np.any(np.array(shape)[:, 4])


def test_actions_are_vertices_in_ascending_order():
    game = VertexGame.of(task_graph("MLP"))
    vertices = game.graph.intermediates[::-1]
    assert game.vertices(game.actions(vertices)) == vertices
    assert game.actions(game.graph.intermediates).tolist() == list(range(len(vertices)))
    with pytest.raises(AlphagradError, match="-1 is not an intermediate vertex"):
        game.actions([-1])


@pytest.mark.parametrize("double", [False, True])
def test_the_precision_of_other_programs_does_not_matter(double):
    graph = task_graph("MLP")
    with jax.enable_x64(double):
        tables = make_tables(graph, "folded", "operations")
        state, costs = play(tables, jnp.arange(len(graph.intermediates)))
        assert {leaf.dtype.name for leaf in state} == {"int32", "float32", "bool"}
        assert costs.dtype == observe(tables, state).dtype == jnp.float32
    assert state.cost == graph.cost("fwd", "folded").operations


def test_what_does_not_fit_is_refused():
    graph = task_graph("MLP")
    needed, small = sizes_of(graph), Sizes(1, 2, 3, 4)
    with pytest.raises(AlphagradError) as error:
        make_tables(graph, sizes=small)
    assert str(needed) in str(error.value)
    assert str(small) in str(error.value)
    with pytest.raises(AlphagradError, match="peak"):
        make_tables(graph, minimize="peak")
    other = make_tables(task_graph("PropaneCombustion"))
    with pytest.raises(AlphagradError, match="same sizes"):
        stack_tables([make_tables(graph), other])
    with pytest.raises(AlphagradError, match="charge additions"):
        stack_tables([make_tables(graph), make_tables(graph, minimize="operations")])


def test_too_many_structures_are_refused(monkeypatch):
    monkeypatch.setattr(structures, "MOST_STRUCTURES", 20)
    with pytest.raises(AlphagradError, match="more than 20 structures"):
        structures.closed_table.__wrapped__(task_graph("MLP"))


@pytest.mark.slow
@given(graph=program_graphs(steps=6), shuffle=st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=4)
def test_prices_are_what_the_next_move_costs(graph, shuffle):
    tables = game.make_tables(graph)
    state = game.init(tables)
    order = list(range(len(graph.intermediates)))
    shuffle.shuffle(order)
    for action in order:
        expected = [float(game.step(tables, state, other)[1]) for other in range(len(order))]
        np.testing.assert_allclose(game.prices(tables, state), expected)
        state, _ = game.step(tables, state, action)
