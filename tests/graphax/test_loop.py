"""Derivatives carried through loops, forward and backward, with one elimination per step."""

import pickle
from dataclasses import replace

import jax
import jax.numpy as jnp
import loop_programs
import numpy as np
import pytest
from jax import lax

import graphax as gx
from graphax import Order, execute
from tests.graphax.counting import count_arithmetic

RNG = np.random.default_rng(0)
STATE, PARAMETERS = RNG.random(3), np.array([10.0, 28.0, 8 / 3])
WEIGHTS, INPUTS = RNG.normal(size=(4, 4)) * 0.3, RNG.normal(size=(4, 2))
SEQUENCE, HIDDEN = RNG.normal(size=(6, 2)), RNG.random(4)


def lorenz(y, p, steps=5):
    def step(y, _):
        a, b, c = y
        return y + 0.01 * jnp.stack([p[0] * (b - a), a * (p[1] - c) - b, a * b - p[2] * c]), y * y

    return lax.scan(step, y, None, length=steps)


def network(weights, inputs, hidden, sequence):
    def step(h, x):
        h = jnp.tanh(weights @ h + inputs @ x)
        return h, 2 * h

    return lax.scan(step, hidden, sequence)


def gated(h, sequence):
    return lax.scan(lambda h, x: (jnp.sin(h) * x[0] + x[1], h * x[0]), h, sequence, reverse=True)


def nested(y, p):
    def step(y, _):
        inner = lax.scan(lambda z, k: (jnp.sin(z) * p[0] + y * k, z[0]), y, p)
        return inner[0], inner[1]

    return lax.scan(step, y, None, length=3)


def counting(x):
    def step(carry, _):
        n, odd, value = carry
        return (n + 1, ~odd, jnp.where(odd, value * x[n], value + x[n])), value

    return lax.scan(step, (0, True, x[1]), None, length=4)[1]


CASES = {
    "a trajectory's end": (lambda y, p: lorenz(y, p)[0], (STATE, PARAMETERS)),
    "a trajectory": (lambda y, p: lorenz(y, p)[1], (STATE, PARAMETERS)),
    "both": (lorenz, (STATE, PARAMETERS)),
    "one step": (lambda y, p: lorenz(y, p, 1), (STATE, PARAMETERS)),
    "no step": (lambda y, p: lorenz(y * y, p, 0)[0] + p, (STATE, PARAMETERS)),
    "a network": (network, (WEIGHTS, INPUTS, HIDDEN, SEQUENCE)),
    "a loss": (lambda *args: jnp.sum(network(*args)[1] ** 2), (WEIGHTS, INPUTS, HIDDEN, SEQUENCE)),
    "from the last to the first": (gated, (HIDDEN, SEQUENCE)),
    "a map": (lambda xs: lax.map(lambda x: jnp.sin(x) * x[0], xs), (SEQUENCE,)),
    "a loop in a loop": (nested, (STATE, PARAMETERS)),
    "element by element": (lambda x: lax.scan(lambda c, _: (jnp.sin(c) + x, c), x * x, None, length=4), (HIDDEN,)),
    "picked by a carry": (counting, (RNG.random(7),)),
    "between other values": (lambda y, p: jnp.cumsum(lorenz(jnp.sin(y), p * p)[0]) * y, (STATE, PARAMETERS)),
    "an output that is carried as well": (lambda b: lax.scan(lambda c, x: ((n := jnp.tanh(c + b) * x[0]), n),
                                                             jnp.zeros(4), SEQUENCE)[1], (HIDDEN,)),
    "an argument that enters twice": (lambda y: lorenz(y, y)[0], (STATE,)),
}  # fmt: skip


def blocks_apart(tree, leaf):
    return jax.tree.map(leaf, tree, is_leaf=lambda value: isinstance(value, gx.JacobianBlock))


@pytest.mark.parametrize("name", CASES)
def test_loops(name):
    function, args = CASES[name]
    numbers = tuple(range(len(args)))
    want = jax.jit(jax.jacfwd(function, numbers))(*args)
    for order in ("fwd", "rev", "auto"):
        got = jax.jit(gx.jacve(function, numbers, order=order))(*args)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-11), got, want)
    sparse = blocks_apart(gx.jacve(function, numbers, sparse=True)(*args), lambda block: block.todense())
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-11), sparse, want)


@pytest.mark.parametrize("seed", range(6))
def test_random_programs_with_loops(seed):
    """``benchmarks/loop_programs.py`` tests thousands."""
    loop_programs.check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 300))
def test_more_random_programs_with_loops(seed):
    loop_programs.check(seed)


# Random programs found that a step of the outer loop was confused with a step of the inner loop.
@pytest.mark.parametrize("seed", [1083])
def test_steps_of_a_loop_in_a_loop_have_names_of_their_own(seed):
    loop_programs.check(seed)


def test_a_map_is_block_diagonal():
    block = gx.jacve(CASES["a map"][0], sparse=True)(SEQUENCE)
    assert block.structure.stored <= 6 * 2 * 2


def test_a_batch_stays_apart():
    def steps(x):
        return lax.scan(lambda c, _: (jnp.sin(c) * x, None), x, None, length=5)[0]

    assert gx.jacve(steps, sparse=True)(RNG.random(50)).structure.stored == 50


def test_a_loss_by_weights_is_carried_backward_and_a_trajectory_forward():
    function, args = CASES["a loss"]
    assert [p.forward for _, p in gx.build_graph(function, *args, argnums=(0, 1)).plan().passings] == [False]
    function, args = CASES["a trajectory's end"]
    assert [p.forward for _, p in gx.build_graph(function, *args, argnums=(0, 1)).plan().passings] == [True]


@pytest.mark.parametrize(("order", "ways"), [("fwd", 1), ("rev", 1)])
def test_all_arguments_pass_through_a_loop_together(order, ways):
    function, args = CASES["a network"]
    graph = gx.build_graph(function, *args, argnums=(0, 1, 2, 3))
    assert len(list(graph.plan(order).passings)) == ways


@pytest.mark.parametrize("order", ["fwd", "rev"])
@pytest.mark.parametrize("name", ["a trajectory's end", "a trajectory", "a map"])
def test_counted_is_executed_in_every_step(name, order):
    """A derivative program executes the counted operations, besides the values and partial derivatives of each step."""
    function, args = CASES[name]
    numbers = tuple(range(len(args)))
    graph = gx.build_graph(function, *args, argnums=numbers)
    (loop,) = graph.loops.values()
    inputs = [var.aval for var in loop.body.traced.program.inputs]
    jacobian = gx.jacve(function, numbers, order=order, backend="xla")
    in_all = count_arithmetic(jax.make_jaxpr(jacobian)(*args), free_others=True)
    values = count_arithmetic(jax.make_jaxpr(function)(*args), free_others=True)
    local = jax.make_jaxpr(lambda *v: execute.evaluate_locally(loop.body, v))(*inputs)
    each = count_arithmetic(local, free_others=True)
    step = count_arithmetic(jax.make_jaxpr(loop.body.traced.program)(*inputs), free_others=True)
    cost = graph.cost(order)
    # A loop that is passed backward runs only once, for its values and its local blocks.
    forward = all(passing.forward for _, passing in graph.plan(order).passings)
    for n, counted in enumerate((cost.multiplications, cost.additions)):
        outside = values[n] if forward else values[n] - loop.length * step[n]
        assert in_all[n] == outside + loop.length * each[n] + counted


@pytest.mark.parametrize("name", ["a trajectory's end", "a loss"])
def test_derivatives_of_derivatives_and_batches(name):
    function, args = CASES[name]
    total = lambda jacobian: lambda *a: sum(jnp.sum(jnp.sin(j)) for j in jax.tree.leaves(jacobian(*a)))
    ours, theirs = total(gx.jacve(function, (0, 1))), total(jax.jacfwd(function, (0, 1)))
    np.testing.assert_allclose(jax.grad(ours)(*args), jax.grad(theirs)(*args), atol=1e-9)
    batch = jnp.stack([args[0], args[0] * 0.5])
    axes = (0, *[None] * (len(args) - 1))
    got, want = (jax.jit(jax.vmap(f, axes))(batch, *args[1:]) for f in (ours, theirs))
    np.testing.assert_allclose(got, want, atol=1e-10)


def test_explain_says_which_way_a_loop_is_passed():
    text = str(gx.explain(CASES["a loss"][0], *CASES["a loss"][1]))
    assert "backward" in text
    assert "numbers kept" in text


def graph_of(name):
    function, args = CASES[name]
    return gx.build_graph(function, *args, argnums=tuple(range(len(args))))


def with_bodies(graph, outer, inner):
    """An order, and orders for all bodies that it passes through, also for those inside of bodies."""
    order = Order.of(outer, graph)
    passings = graph.plan(order).passings
    return replace(order, bodies={vertex: with_bodies(passing.how.graph, inner, inner) for vertex, passing in passings})


@pytest.mark.parametrize("inner", ["fwd", "rev", "markowitz"])
@pytest.mark.parametrize("outer", ["fwd", "rev"])
@pytest.mark.parametrize("name", ["a trajectory", "a loss", "a loop in a loop", "between other values"])
def test_steps_follow_the_orders_of_bodies(name, outer, inner):
    function, args = CASES[name]
    numbers, graph = tuple(range(len(args))), graph_of(name)
    order = with_bodies(graph, outer, inner)
    (passing,) = (passing for _, passing in graph.plan(order).passings)
    assert passing.how.plan.order == Order.of(inner, passing.how.graph).vertices
    assert passing.multiplications == passing.length * passing.how.plan.cost().multiplications
    got, want = gx.jacve(function, numbers, order=order)(*args), jax.jacfwd(function, numbers)(*args)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-11), got, want)


def test_orders_of_bodies_nest():
    graph = graph_of("a loop in a loop")
    order = with_bodies(graph, "fwd", "rev")
    ((_, body),) = order.bodies
    assert len(body.bodies) == 1
    assert graph.cost(order) != graph.cost(replace(order, bodies={1: replace(body, bodies=())}))


@pytest.mark.parametrize("outer", ["fwd", "rev"])
def test_a_plan_with_orders_of_bodies_is_not_confused_with_one_without(outer):
    graph = graph_of("a trajectory's end")
    costs = [graph.cost(with_bodies(graph, outer, inner)) for inner in ("fwd", "rev", "markowitz")]
    assert len(set(costs)) > 1
    assert graph.cost(outer).operations <= min(cost.operations for cost in costs)


def test_an_order_for_another_body_names_both():
    graph, other = graph_of("a trajectory's end"), graph_of("a loss")
    order, foreign = with_bodies(graph, "fwd", "rev"), with_bodies(other, "fwd", "rev")
    with pytest.raises(gx.FingerprintError, match="loop of 5 steps") as caught:
        graph.plan(replace(order, bodies=foreign.bodies))
    assert all(body.fingerprint in str(caught.value) for _, body in (*order.bodies, *foreign.bodies))


def test_an_order_for_the_other_way_through_a_body_names_both():
    graph = graph_of("a trajectory's end")
    forward, backward = (with_bodies(graph, outer, "rev") for outer in ("fwd", "rev"))
    ((first, ahead),), ((second, back),) = forward.bodies, backward.bodies
    with pytest.raises(gx.OrderError, match=rf"vertex {second} \(body {back.fingerprint}\), but .* vertex {first} "):
        graph.plan(replace(forward, bodies=backward.bodies))
    with pytest.raises(gx.FingerprintError, match=f"{back.fingerprint} .* forward .* {ahead.fingerprint} "):
        graph.plan(replace(forward, bodies={first: back}))


def test_an_order_of_a_body_where_there_is_no_loop_is_refused():
    graph = gx.build_graph(lambda x: jnp.sin(jnp.cos(jnp.exp(x))), HIDDEN)
    with pytest.raises(gx.OrderError, match=r"vertex 1 \(body unknown\), but .* passes no loop"):
        graph.plan(Order((1, 2), bodies={1: Order(())}))


def test_fingerprints_cover_bodies_but_not_how_often_they_run():
    def graph(body, steps):
        return gx.build_graph(lambda x: lax.scan(lambda c, _: (body(c), None), x, None, length=steps)[0], HIDDEN)

    once, twice = lambda c: jnp.sin(c) * c, lambda c: jnp.sin(jnp.sin(c)) * c
    assert graph(once, 3).fingerprint == graph(once, 4).fingerprint
    assert graph(once, 3).digest != graph(once, 4).digest
    assert graph(once, 3).fingerprint != graph(twice, 3).fingerprint
    inside = [
        graph(lambda c, body=body: lax.scan(lambda c, _: (body(c), None), c, None, 2)[0], 3) for body in (once, twice)
    ]
    assert inside[0].fingerprint != inside[1].fingerprint


@pytest.mark.parametrize("name", ["a trajectory", "a loop in a loop"])
def test_graphs_with_loops_are_planned_elsewhere_as_well(name):
    graph = graph_of(name)
    copy = pickle.loads(pickle.dumps(graph))
    assert copy == graph
    order = with_bodies(graph, "rev", "fwd")
    assert copy.cost(order) == graph.cost(order)


def test_explain_names_the_orders_of_bodies():
    function, args = CASES["a trajectory's end"]
    graph = graph_of("a trajectory's end")
    ((vertex, body),) = with_bodies(graph, "rev", "rev").bodies
    order = replace(Order.of("rev", graph), bodies={vertex: replace(body, finder="search", cost=33, bound=33)})
    assert "search (optimal)" in str(gx.explain(function, *args, order=order, argnums=(0, 1)))


def test_orders_of_bodies_serve_any_number_of_steps():
    def graph(steps):
        cube = lambda y, _: (y + 0.1 * jnp.sin(y * y) * y[0], None)
        return gx.build_graph(lambda y: lax.scan(cube, y, None, length=steps)[0], STATE)

    order = with_bodies(graph(3), "rev", "markowitz")
    assert 3 * graph(40).cost(order).multiplications == 40 * graph(3).cost(order).multiplications


@pytest.mark.parametrize("backend", ["native", "xla"])
def test_arrays_without_entries(backend):
    function = lambda x: jax.lax.fori_loop(0, 3, lambda n, c: jnp.tanh(c) * 0.9 + 0.1 * jnp.sum(c @ c.T), x)
    got = jax.jit(gx.jacve(function, backend=backend))(jnp.zeros((1, 0)))
    assert got.shape == (1, 0, 1, 0)
