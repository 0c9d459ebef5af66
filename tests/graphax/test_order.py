import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import graphax as gx
from graphax import Order

from .comparing import array, assert_same


def function(x, y):
    a = jnp.sin(x * y)
    b = jnp.exp(a) + x
    return a * b, b * y


ARGS = 0.4, 0.7


def graph(argnums=(0, 1)):
    return gx.build_graph(function, *ARGS, argnums=argnums)


def test_every_way_to_name_an_order(tmp_path):
    want = jax.jacfwd(function, argnums=(0, 1))(*ARGS)
    saved = Order.of([3, 1, 2, 4], graph())
    saved.save(tmp_path / "order.json")
    finder = lambda g: reversed(g.intermediates)
    ways = ["rev", [3, 1, 2, 4], (4, 3, 2, 1), np.array([1, 2, 3, 4]), range(1, 5), saved, tmp_path / "order.json"]
    for order in [*ways, str(tmp_path / "order.json"), finder, lambda g: Order.of("fwd", g)]:
        assert_same(gx.jacve(function, order=order, argnums=(0, 1))(*ARGS), want)


def test_an_order_survives_its_file(tmp_path):
    order = gx.Order((3, 1, 2, 4), graph().fingerprint, "annealing", seed=7, cost=10, bound=9, simplified=True)
    order.save(tmp_path / "order.json")
    assert gx.Order.load(tmp_path / "order.json") == order
    assert list(order) == [3, 1, 2, 4]
    assert len(order) == 4


def test_orders_of_bodies_survive_their_file(tmp_path):
    inner = gx.Order((2, 1), "ab", bodies={1: gx.Order((4, 5), "cd", seed=3)})
    order = gx.Order((3, 1, 2, 4), graph().fingerprint, bodies={4: inner, np.int32(2): gx.Order((1,))})
    order.save(tmp_path / "order.json")
    assert gx.Order.load(tmp_path / "order.json") == order
    assert [vertex for vertex, _ in order.bodies] == [2, 4]


def test_files_from_before_there_were_bodies_are_read(tmp_path):
    path = tmp_path / "order.json"
    path.write_text('{"vertices": [4, 3, 2, 1], "fingerprint": "", "finder": "rev", "seed": null, "cost": 4}')
    assert gx.Order.load(path) == gx.Order((4, 3, 2, 1), finder="rev", cost=4)


@pytest.mark.parametrize("bodies", [3, (3,), {3: 4}, {"x": gx.Order(())}, {3: {"surprise": 1}}])
def test_bodies_are_orders_by_vertex(bodies):
    with pytest.raises(gx.OrderError, match="must be Orders by vertex"):
        gx.Order((1, 2), bodies=bodies)


def test_an_order_found_on_the_simplified_graph_is_used_on_it():
    redundant = lambda x: jnp.sin(x) * jnp.exp(jnp.sin(x))
    simplified = gx.build_graph(redundant, 0.3, simplify=True)
    order = Order.of("rev", simplified)
    assert order.simplified
    assert len(order) < len(gx.build_graph(redundant, 0.3).intermediates)
    assert_same(gx.jacve(redundant, order=order)(0.3), jax.jacfwd(redundant)(0.3))


def test_vertices_that_do_not_matter_may_be_named():
    full = graph().intermediates
    unused = lambda x, y: (jnp.cos(y), *function(x, y))[1:]
    order = [1, *(v + 1 for v in full)]
    assert_same(gx.jacve(unused, order=order)(*ARGS), jax.jacfwd(function)(*ARGS))


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ([1, 2, 3], r"missing vertices: 4 \(exp|missing vertices: 4 \("),
        ([1, 2, 3, 4, 4, 1], "repeats: 1, 4"),
        ([1, 2, 3, 4, 99], r"cannot be eliminated: 99 \(unknown\)"),
        ([1, 2, 3, 4, 0], r"cannot be eliminated: 0 \(input\)"),
        ([1, 2, 3, 4, 5], r"cannot be eliminated: 5 \(output\)"),
        ([], "missing vertices: 1 .*, 2 .*, 3 .*, 4 "),
        ("fastest", "unknown order 'fastest'; presets are: auto, fwd, rev, markowitz"),
        (3, "cannot read 3 as an elimination order"),
        (["a"], "cannot read"),
        ([1.0, 2.5, 3.0, 4.0], "cannot read"),
        (None, "cannot read None"),
    ],
)
def test_wrong_orders_are_named(order, message):
    with pytest.raises(gx.OrderError, match=message):
        gx.jacve(function, order=order, argnums=(0, 1))(*ARGS)


def test_an_order_for_another_graph_names_both():
    other = gx.build_graph(lambda x: jnp.sin(jnp.cos(jnp.sin(x))), 0.3)
    order = Order.of("rev", other)
    with pytest.raises(gx.FingerprintError) as caught:
        gx.jacve(function, order=order, argnums=(0, 1))(*ARGS)
    assert other.fingerprint in str(caught.value)
    assert graph().fingerprint in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[1, 2]", "{}", '{"vertices": "x"}', '{"vertices": [1], "surprise": 2}', '{"vertices": null}',
        '{"vertices": [1], "bodies": [[2, {"vertices": "x"}]]}',
        pytest.param("[" * 100_000, id="nested without end"),
    ],
)  # fmt: skip
def test_damaged_files_are_refused(tmp_path, text):
    path = tmp_path / "order.json"
    path.write_text(text)
    with pytest.raises(gx.OrderError, match="is not a saved order"):
        gx.jacve(function, order=path)(*ARGS)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(gx.OrderError, match=r"there is no order file .*nowhere\.json"):
        gx.jacve(function, order=tmp_path / "nowhere.json")(*ARGS)


def test_orders_are_json(tmp_path):
    Order.of("rev", graph()).save(tmp_path / "order.json")
    assert json.loads((tmp_path / "order.json").read_text())["finder"] == "rev"


def test_forward_and_reverse():
    assert Order.of("fwd", graph()).vertices == (1, 2, 3, 4)
    assert Order.of("rev", graph()).vertices == (4, 3, 2, 1)


def test_markowitz_breaks_ties_by_number():
    chain = gx.build_graph(lambda x: jnp.sin(jnp.sin(jnp.sin(jnp.sin(x)))), 0.3)
    assert Order.of("markowitz", chain).vertices == (1, 2, 3)


def test_single_use_vertices_first():
    # 1 is used twice, 2 and 3 once.
    fan = gx.build_graph(lambda x: (y := jnp.sin(x), jnp.exp(jnp.cos(y)) * jnp.exp(jnp.sin(y)))[1], 0.3)
    order = Order.of("preelim_rev", fan).vertices
    assert order[-1] == 1
    assert Order.of("preelim_fwd", fan).vertices[-1] == 1


@pytest.mark.parametrize("preset", list(gx.PRESETS))
def test_presets_are_deterministic(preset):
    assert Order.of(preset, graph()).vertices == Order.of(preset, graph()).vertices


def test_large_graphs_get_a_quick_order():
    def long_chain(x):
        for _ in range(2000):
            x = x * 1.1
        return x

    assert len(Order.of("auto", gx.build_graph(long_chain, array()))) == 1999


def test_a_generator_serves_every_call():
    jacobian = gx.jacve(function, order=(n for n in (4, 3, 2, 1)), argnums=(0, 1))
    assert_same(jacobian(*ARGS), jacobian(*ARGS))


def test_numbers_of_any_integer_type_are_saved(tmp_path):
    order = gx.Order(list(np.arange(1, 5)), cost=np.int64(7))
    order.save(tmp_path / "order.json")
    assert gx.Order.load(tmp_path / "order.json") == gx.Order((1, 2, 3, 4), cost=7)
    assert_same(gx.jacve(function, order=order, argnums=(0, 1))(*ARGS), jax.jacfwd(function, argnums=(0, 1))(*ARGS))


def test_a_directory_is_no_order(tmp_path):
    with pytest.raises(gx.OrderError, match="cannot be read"):
        gx.Order.load(tmp_path)


def with_parameters(x, p):
    a, b, c = x
    q = jnp.sin(p) + p**2
    return jnp.stack([a * b * q, jnp.cos(b * c) + q * a, c * a * b * p])


def looped(x, p):
    return jax.lax.scan(lambda c, _: (jnp.sin(c * jnp.cos(p)), c), x, None, length=4)


@pytest.mark.parametrize("function", [with_parameters, looped])
@pytest.mark.parametrize("known", [0.5, np.float64(0.5), jnp.asarray(0.5)])
@pytest.mark.parametrize("preset", ["rev", "auto"])
def test_an_order_fits_whether_other_arguments_are_known_or_traced(function, known, preset):
    """Equations of known arguments disappear when a function is traced, and so do their numbers."""
    x, parameters = jnp.array([0.1, 0.2, 0.3]), jnp.linspace(0.1, 1.0, 5)
    order = gx.Order.of(preset, gx.build_graph(function, x, known, simplify=preset == "auto"))
    got = jax.jit(jax.vmap(gx.jacve(function, order=order), in_axes=(None, 0)))(x, parameters)
    assert_same(got, jax.vmap(jax.jacfwd(function), in_axes=(None, 0))(x, parameters))
    traced = []
    jax.vmap(lambda p: traced.append(gx.build_graph(function, x, p, simplify=preset == "auto")))(parameters)
    assert gx.Order.of(gx.Order.of("rev", traced[0]), gx.build_graph(function, x, known, simplify=preset == "auto"))


def test_an_order_for_another_form_is_refused():
    order = gx.Order.of("rev", gx.build_graph(with_parameters, jnp.ones(3), 0.5))
    with pytest.raises(gx.FingerprintError, match="was made for the graph"):
        gx.jacve(looped, order=order)(jnp.ones(3), 0.5)
