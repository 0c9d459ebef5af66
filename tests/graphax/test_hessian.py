"""Hessians by symmetric elimination, of random programs and of functions as users write them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings, strategies as st
from jax.scipy.special import erf

import graphax as gx
from graphax import api, symmetric
from graphax.bundles import Mirrored
from graphax.hessian import NestedHessian, SymmetricHessian, hessian_program
from graphax.hessian_modes import PlainHessian, plain_hessian
from graphax.pipeline import Pipeline
from graphax.plan import Instruction
from graphax.trace import Request

from .comparing import array, assert_same
from .programs import programs

thorough = settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)


def total(program):
    """The sum of the squares of all results of a program."""
    return lambda *args: sum(jnp.sum(jnp.sin(x) + x**2) for x in jax.tree.leaves(program(*args)))


def is_exactly_symmetric(hessian, args):
    """Whether every block of a Hessian with respect to all arguments equals its transpose, to the last bit."""
    rank = [np.ndim(x) for x in args]
    for i, row in enumerate(hessian):
        for j, block in enumerate(row):
            order = [*range(rank[j], rank[j] + rank[i]), *range(rank[j])]
            if not np.array_equal(block, np.transpose(hessian[j][i], order), equal_nan=True):
                return False
    return True


@given(program=programs(steps=8), shuffle=st.randoms(use_true_random=False))
@settings(thorough, max_examples=5)
def test_any_order_gives_the_hessian(program, shuffle):
    note(program)
    function, args = total(program), program.arguments()
    argnums = tuple(range(len(args)))
    order = list(gx.build_graph(function, *args, argnums=argnums).intermediates)
    shuffle.shuffle(order)
    got = jax.jit(gx.hessve(function, argnums, order=order))(*args)
    assert_same(got, jax.jit(jax.hessian(function, argnums))(*args), 1e-7)
    assert is_exactly_symmetric(got, args)


@given(program=programs(steps=8))
@settings(thorough, max_examples=5)
def test_kernels_and_blocks_are_the_hessian(program):
    note(program)
    function, args = total(program), program.arguments()
    argnums = tuple(range(len(args)))
    want = jax.jit(jax.hessian(function, argnums))(*args)
    batch = [jnp.stack([x, x]) for x in args]
    got = jax.jit(jax.vmap(gx.hessve(function, argnums)))(*batch)
    assert_same(jax.tree.map(lambda x: x[1], got), want, 1e-7)
    blocks = jax.jit(gx.hessve(function, argnums, sparse=True))(*args)
    dense = jax.tree.map(lambda b: b.todense(), blocks, is_leaf=lambda b: isinstance(b, gx.JacobianBlock))
    assert_same(dense, want, 1e-7)
    assert is_exactly_symmetric(dense, args)


@jax.custom_jvp
def softened(x):
    return jnp.log1p(jnp.exp(x))


softened.defjvp(lambda x, t: (softened(*x), jax.nn.sigmoid(x[0]) * t[0]))


@jax.custom_vjp
def halved(x):
    return x / 2


halved.defvjp(lambda x: (x / 2, None), lambda _, t: (t / 2,))

SCALAR = {
    "quadratic form": (lambda x: x @ jnp.asarray(array(4, 4)) @ x, (array(4, seed=1),)),
    "Rosenbrock": (lambda x: jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2), (array(6),)),
    "linear": (lambda x: jnp.sum(3 * x), (array(3),)),
    "constant": (lambda x: 2.0, (array(3),)),
    "the argument itself": (lambda x: x, (0.3,)),
    "weakly typed": (lambda x: x**3, (0.7,)),
    "one use of several": (lambda x, y: x["a"] * y["b"][0], ({"a": 0.5, "b": array(2)}, {"b": array(2, seed=1)})),
    "matrices": (lambda a, b: jnp.sum(jnp.tanh(a @ b) ** 2), (array(2, 3), array(3, 2, seed=1))),
    "custom derivatives": (lambda x: jnp.sum(softened(x) * halved(x**2)), (array(3),)),
    "special function": (lambda x, y: erf(x * y) * jnp.exp(-x), (0.3, 1.2)),
    "a branch": (lambda x: jax.lax.cond(x[0] > 0, lambda x: jnp.sum(x**3), lambda x: jnp.prod(x), x), (array(3),)),
    "indices": (lambda x: jnp.sum(x[jnp.array([2, 0, 2, 1])] ** 3 * jnp.sort(x)[::-1][0]), (array(3),)),
    "a solve": (lambda x: jnp.sum(jnp.linalg.solve(jnp.eye(3) + jnp.outer(x, x), x)), (array(3),)),
    "a masked power, with an adjoint that is not constant": (
        lambda x: jnp.sin(x[0]) * jnp.sum(jnp.where(x > 0, x**3, 1.0)),
        (np.array([0.3, -0.7]),),
    ),
    "a mask of a mask": (lambda x: jnp.sin(jnp.sum(jnp.where(x > 0, jnp.where(x < 1, x**3, x), x * x))), (array(5),)),
    "a maximum": (lambda x: jnp.max(x) ** 2 + jnp.linalg.norm(x), (array(5),)),
}


@pytest.mark.parametrize("name", SCALAR)
def test_functions_to_one_number(name):
    function, args = SCALAR[name]
    argnums = tuple(range(len(args)))
    got = jax.jit(gx.hessve(function, argnums))(*args)
    assert_same(got, jax.jit(jax.hessian(function, argnums))(*args))
    assert isinstance(hessian_program(Pipeline(function, args, {}, Request(argnums))), SymmetricHessian)


def running_sum(x):
    return jax.lax.fori_loop(0, 3, lambda n, c: c + jnp.sum(jnp.sin(c * x)), 0.1)


OTHERS = {
    "several numbers": (lambda x: jnp.sin(x) * x[0], (array(3),)),
    "several results": (lambda x, y: {"a": x**3 * y, "b": jnp.stack([x * y, y])}, (0.5, 1.2)),
    "a loop": (running_sum, (array(3),)),
    "complex values in between": (lambda x: jnp.abs(jnp.sum(jnp.exp(1j * x))), (array(3),)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_functions_are_differentiated_twice(name):
    function, args = OTHERS[name]
    argnums = tuple(range(len(args)))
    got = jax.jit(gx.hessve(function, argnums))(*args)
    assert_same(got, jax.jit(jax.hessian(function, argnums))(*args))
    assert isinstance(hessian_program(Pipeline(function, args, {}, Request(argnums))), NestedHessian)
    if name in ("a loop", "complex values in between"):
        assert is_exactly_symmetric(got, args)
    blocks = jax.jit(gx.hessve(function, argnums, sparse=True))(*args)
    dense = jax.tree.map(lambda b: b.todense(), blocks, is_leaf=lambda b: isinstance(b, gx.JacobianBlock))
    assert_same(dense, got)


@pytest.mark.parametrize("function", [lambda x, y: jnp.sum(jnp.sin(x) * y) ** 2, lambda x, y: jnp.sin(x) * y])
@pytest.mark.parametrize("has_aux", [False, True])
@pytest.mark.parametrize("how", [lambda f: f, jax.jit])
def test_value_gradient_and_hessian(function, has_aux, how):
    args = array(3), 0.7
    derivatives = gx.value_grad_hess(
        lambda *a: (function(*a), {"x": a[0]}) if has_aux else function(*a), (0, 1), has_aux
    )
    value, gradient, hessian = how(derivatives)(*args)
    if has_aux:
        value, aux = value
        assert_same(aux, {"x": jnp.asarray(args[0])})
    assert_same(value, function(*args))
    assert_same(gradient, jax.jacrev(function, (0, 1))(*args))
    assert_same(hessian, jax.hessian(function, (0, 1))(*args))


EMPTY = {
    "one number": lambda x: jnp.sum(x) ** 2,
    "no numbers": lambda x: x**2,
    "several results": lambda x: (x**2, jnp.sum(x), jnp.concatenate([x, jnp.ones(2)])),
}


@pytest.mark.parametrize("name", EMPTY)
@pytest.mark.parametrize("shape", [(0,), (2, 0)])
def test_arguments_without_elements(name, shape):
    function = EMPTY[name] if shape == (0,) else lambda x: EMPTY[name](x.ravel())
    assert_same(gx.hessve(function)(np.ones(shape)), jax.hessian(function)(np.ones(shape)))


WEAK = {
    "a number": (lambda x: x**3, 0.7),
    "a constant": (lambda x: 3.0, jnp.ones(3)),
    "several results": (lambda x: (jnp.ones(2), 3.0, x**2), jnp.ones(3)),
    "a number and an array": (lambda p: p["n"] ** 2 * jnp.sum(p["x"] ** 2), {"n": 1.5, "x": jnp.ones(3)}),
    "several results of both": (lambda p: (p["n"] * p["x"], p["n"] ** 2), {"n": 1.5, "x": jnp.ones(3)}),
}


@pytest.mark.parametrize("name", WEAK)
def test_weak_types_are_those_of_jax(name):
    types = lambda tree: jax.tree.map(lambda leaf: (leaf.dtype, leaf.weak_type), tree)
    function, x = WEAK[name]
    _, gradient, hessian = gx.value_grad_hess(function)(x)
    assert types(hessian) == types(gx.hessve(function)(x)) == types(jax.hessian(function)(x))
    assert types(gradient) == types(jax.jacrev(function)(x))


def test_a_banded_hessian_stays_banded():
    hessian = gx.hessve(SCALAR["Rosenbrock"][0], sparse=True)(array(1000))
    assert hessian.structure.stored < 3200
    offsets, numbers = hessian.diagonals()
    assert offsets.tolist() == [-1, 0, 1]
    np.testing.assert_array_equal(numbers[0, :-1], numbers[2, 1:])


def test_derivatives_of_hessians():
    function, args = SCALAR["matrices"]
    third = jax.jit(jax.jacfwd(lambda a: gx.hessve(function)(a, args[1])))(args[0])
    assert_same(third, jax.jacfwd(lambda a: jax.hessian(function)(a, args[1]))(args[0]))


def network(x, w, v):
    return jnp.sum(jnp.tanh(v @ jnp.tanh(w @ x)) ** 2)


COUNTED = {
    "network": (network, (array(3), array(4, 3, seed=1), array(2, 4, seed=2)), 0.55),
    # Since JAX 0.12, a factorisation takes most of the operations, which both ways need once.
    "determinant": (lambda a: jnp.linalg.det(a) ** 2, (array(3, 3),), 0.75 if jax.__version_info__ < (0, 12) else 0.85),
    "triple product": (lambda a: jnp.dot(a[0], jnp.cross(a[1], a[2])) ** 2, (array(3, 3),), 0.45),
    "Rosenbrock": (*SCALAR["Rosenbrock"], 1.0),
    "special function": (*SCALAR["special function"], 1.0),
}


@pytest.mark.parametrize("name", COUNTED)
def test_a_hessian_takes_fewer_operations_than_two_jacobians(name):
    function, args, share = COUNTED[name]
    argnums = tuple(range(len(args)))
    twice = gx.jacve(gx.jacve(function, argnums, backend="xla"), argnums, backend="xla")
    counts = [_operations(each, *args) for each in (gx.hessve(function, argnums, backend="xla"), twice)]
    assert counts[0] <= share * counts[1]


def _operations(function, *args):
    from graphax.backend import kernel_of

    return kernel_of(function, [jnp.asarray(x) for x in args]).statements.operations


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtypes_are_those_of_the_result(dtype):
    x = array(3).astype(dtype)
    hessian = gx.hessve(lambda x: jnp.sum(x**3))(x)
    assert hessian.dtype == dtype
    np.testing.assert_allclose(hessian, np.diag(6 * x), rtol=1e-5)


def test_under_shard_map_with_checks():
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("i",))
    spec = jax.sharding.PartitionSpec("i")
    function = lambda x: jnp.sum(jnp.sin(x) * x)
    one = jax.vmap(gx.hessve(function))
    got = jax.jit(jax.shard_map(one, mesh=mesh, in_specs=spec, out_specs=spec))(array(2, 3))
    assert_same(got, jax.vmap(jax.hessian(function))(array(2, 3)))


def test_halves_that_xla_rounds_differently():
    """One half of a choice between an array and its transpose was contracted to fused multiply-adds."""

    def function(x):
        columns = jnp.sum(jnp.arctan2(x, 3.0 + x * x), 0)
        return jnp.sum(jnp.sin(x) + x**2) + jnp.sin(jnp.sqrt(1.0 + jnp.sum(columns**2)))

    x = array(6, 4)
    order = list(gx.build_graph(function, x).intermediates)
    for seed in range(8):
        np.random.default_rng(seed).shuffle(order)
        assert is_exactly_symmetric(((jax.jit(gx.hessve(function, order=order, backend="xla"))(x),),), (x,))


CORNERS = {
    "a row and a column": lambda x: jnp.sum(jnp.sin(x[0] + x[:-1] ** 2)),
    "squares of sums": lambda x: jnp.sum((x[0] + x[:-1]) ** 2),
    "two rows": lambda x: jnp.sum((x[0] * x[1] + x[2:] ** 2) ** 2),
    "listed twice": lambda x: jnp.sum(jnp.cos(x[jnp.arange(60) % 7] * x[:60] + x[1])),
}


@pytest.mark.parametrize("function", CORNERS.values(), ids=CORNERS)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_entries_that_several_terms_share_are_not_mirrored(function, sparse):
    """A row and a column share their corner in any proportion, so one is not the transpose of the other."""
    x = array(61, seed=1)
    got = gx.hessve(function, sparse=sparse)(x)
    assert_same(got.todense() if sparse else got, jax.hessian(function)(x), 1e-12)


@pytest.mark.slow
def test_few_parameters_of_long_data_are_left_to_jax():
    """Elimination has a sum for every pair of parameters, and XLA makes each sum a loop over all data."""
    data = np.linspace(0.1, 2.0, 300)

    def loss(x, shift):
        model = x[0] * jnp.exp(-x[1] * data) + x[2] * jnp.exp(-((data - shift[0, 0]) ** 2)) + shift[0, 1]
        return jnp.sum((model - jnp.sin(data)) ** 2)

    args = array(3), array(1, 2, seed=1)
    got = jax.jit(gx.hessve(loss, (0, 1)))(*args)
    assert_same(got, jax.hessian(loss, (0, 1))(*args), 1e-9)
    assert is_exactly_symmetric(got, args)
    value, gradient, hessian = jax.jit(gx.value_grad_hess(loss, (0, 1)))(*args)
    assert_same((value, gradient), jax.value_and_grad(loss, (0, 1))(*args), 1e-9)
    assert_same(hessian, got, 1e-12)
    program = hessian_program(Pipeline(loss, args, {}, Request((0, 1))))
    assert isinstance(plain_hessian(program), PlainHessian)
    assert plain_hessian(hessian_program(Pipeline(loss, args, {}, Request((0, 1)), "rev"))) is None


@pytest.mark.slow
def test_bands_of_middle_size_are_written_at_once():
    """LUKSAN14LS of CUTEst: many terms with few entries are not added one array at a time."""

    def function(x):
        a, b, c, d = x[:-3:3], x[1:-2:3], x[2:-1:3], x[3::3]
        return jnp.sum((a - b**2) ** 2 + (b * d - c) ** 4 + jnp.sin(a * d) + b * c * d)

    x = array(97)
    assert "scatter[" in str(jax.make_jaxpr(gx.hessve(function, backend="xla"))(x))
    found = gx.hessve(function)(x)
    np.testing.assert_allclose(found, jax.hessian(function)(x), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(found, found.T)


def test_one_order_is_enough_where_a_hessian_is_known():
    """NASH of CUTEst: the Hessian of a quadratic form takes no operations in any order."""

    def function(x):
        return jnp.sum(x[:3] * x[3:]) * 2.0

    x = array(6)
    symmetric.symmetric_plan.cache_clear()
    symmetric.order_of_pairs.cache_clear()
    found = gx.hessve(function, backend="xla")(x)
    np.testing.assert_allclose(found, jax.hessian(function)(x), rtol=1e-5, atol=1e-5)
    # One plan to compare orders, and one with whole blocks.
    assert symmetric.symmetric_plan.cache_info().misses == 2


def _fit(model):
    times = np.linspace(0.0, 1.0, 400)
    return lambda x: jnp.sum((model(x, times) - np.cos(times)) ** 2)


@pytest.mark.slow
def test_fits_to_long_data_are_left_to_jax_before_anything_is_planned(monkeypatch):
    """OSBORNEB of CUTEst: planning a kernel in vain took three times as long as everything that JAX does."""
    loss = _fit(lambda x, t: x[0] * jnp.exp(-x[1] * t) + x[2] * jnp.sin(x[3] * t))
    x, planned = array(4), []
    known = hessian_program
    monkeypatch.setattr(api, "hessian_program", lambda pipeline: planned.append(pipeline) or known(pipeline))
    found = jax.jit(gx.hessve(loss))(x)
    np.testing.assert_allclose(found, jax.hessian(loss)(x), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(found, found.T)
    value, gradient, _ = jax.jit(gx.value_grad_hess(loss))(x)
    np.testing.assert_allclose(value, loss(x), rtol=1e-6)
    np.testing.assert_allclose(gradient, jax.grad(loss)(x), rtol=1e-4, atol=1e-4)
    assert not planned
    jax.jit(jax.vmap(gx.hessve(loss)))(jnp.stack([x, 2 * x]))
    jax.jit(gx.hessve(loss, order="rev"))(x)
    assert len(planned) == 2


def test_fits_that_jax_refuses_are_eliminated():
    @jax.custom_vjp
    def decay(x, t):
        return jnp.exp(-x * t)

    decay.defvjp(lambda x, t: (decay(x, t), (x, t)), lambda saved, g: (jnp.sum(-saved[1] * decay(*saved) * g), None))
    loss = _fit(lambda x, t: x[0] * decay(x[1], t) + x[2] * t + x[3] * t * t + jnp.sin(x[0] * t))
    plain = _fit(lambda x, t: x[0] * jnp.exp(-x[1] * t) + x[2] * t + x[3] * t * t + jnp.sin(x[0] * t))
    x = array(4)
    np.testing.assert_allclose(jax.jit(gx.hessve(loss))(x), jax.hessian(plain)(x), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("given", [np.float32, np.float64])
@pytest.mark.parametrize("loops", [False, True])
def test_derivatives_have_the_types_of_arguments(given, sparse, loops):
    """As in JAX, gradients are cotangents of the arguments, whatever the type of the result is."""

    def function(x, y):
        x = jax.lax.fori_loop(0, 3, lambda _, c: jnp.sin(c) * 1.5, x) if loops else x
        return jnp.sum(x * x).astype(np.float32) * jnp.sum(y.astype(np.float32) ** 2)

    args = array(3).astype(given), array(2).astype(np.float64)
    _, gradient, hessian = jax.jit(gx.value_grad_hess(function, (0, 1), sparse=sparse))(*args)
    blocks = [[block.todense() for block in row] for row in hessian] if sparse else [list(row) for row in hessian]
    assert_same(list(gradient), list(jax.grad(function, (0, 1))(*args)), 1e-5)
    assert_same(blocks, [list(row) for row in jax.hessian(function, (0, 1))(*args)], 1e-5)


def test_sums_of_mirrored_blocks_are_not_mirrored_again():
    """XLA would compute all entries of a batch again while it mirrors them."""

    def function(x):
        return jnp.sum(jnp.cumsum(x) ** 2) + jnp.sum(jnp.cos(x))

    x = array(5, 9)
    plan = hessian_program(Pipeline(function, [x[0]], {}, Request(0))).plan
    steps = [step for step in plan.code if isinstance(step, Instruction)]
    assert not isinstance(steps[-1].operation, Mirrored)
    got = jax.jit(jax.vmap(gx.hessve(function)))(x)
    np.testing.assert_array_equal(got, got.transpose(0, 2, 1))
    assert_same(got, jax.vmap(jax.hessian(function))(x))
