"""Operators of blocks give what dense arrays give, for every structure, and keep the structure."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import graphax as gx
from graphax import JacobianBlock

from .comparing import array

# Functions of seven or of six numbers, by the structure of their Jacobian.
VECTORS = {
    "diagonal": jnp.sin,
    "known coefficient": lambda x: -2.0 * x,
    "bands": lambda x: x[1:] * x[:-1] - 2 * x[1:],
    "wide stencil": lambda x: jnp.convolve(x, jnp.array([1.0, -2.0, 1.0]), mode="valid") ** 2,
    "dense": lambda x: jnp.sin(jnp.asarray(array(3, 7)) @ x),
    "lists": lambda x: x[jnp.array([2, 0, 5, 5])] ** 2,
    "scattered": lambda x: jnp.zeros(5).at[jnp.array([4, 1, 1, 0])].add(jnp.cos(x[:4])),
    "masked": lambda x: jnp.where(x > 0, jnp.sqrt(abs(x)), 0.0),
    "nothing": lambda x: jnp.zeros(2) * x[0],
    "lists known at run time": lambda x: x[jnp.argsort(x)][:3] ** 2,
    "number": lambda x: jnp.sum(x * x),
    "matrix": lambda x: jnp.outer(x[:2], x[2:5]),
}
MATRICES = {
    "rows": lambda x: jnp.sum(x * x, axis=1),
    "elementwise": jnp.tanh,
    "transposed": lambda x: jnp.sin(x.T),
    "from one side": lambda x: jnp.asarray(array(4, 2)) @ jnp.exp(x),
}
CASES = [*((name, f, (7,)) for name, f in VECTORS.items()), *((name, f, (2, 3)) for name, f in MATRICES.items())]
every_structure = pytest.mark.parametrize(
    ("function", "shape"), [pytest.param(f, s, id=n) for n, f, s in CASES]
)  # fmt: skip
HOW = {"eager": lambda f: f, "jit": jax.jit}
run_both_ways = pytest.mark.parametrize("how", HOW.values(), ids=HOW)


def block_of(function, x) -> JacobianBlock:
    return gx.jacve(function, sparse=True)(x)


def dense_of(function, x) -> np.ndarray:
    return np.asarray(jax.jacfwd(function)(x))


def same(got, want):
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, atol=1e-12)


@every_structure
@run_both_ways
@pytest.mark.parametrize("columns", [(), (2, 1)])
def test_products_with_arrays_on_the_right(function, shape, how, columns):
    x, v = array(*shape), array(*shape, *columns)
    want = np.tensordot(dense_of(function, x), v, axes=len(shape))
    same(how(lambda x, v: block_of(function, x) @ v)(x, v), want)


@every_structure
@run_both_ways
@pytest.mark.parametrize(("rows", "kind"), [((), np.asarray), ((5,), jnp.asarray)])
def test_products_with_arrays_on_the_left(function, shape, how, rows, kind):
    x, dense = array(*shape), dense_of(function, array(*shape))
    out = dense.ndim - len(shape)
    v = kind(array(*rows, *dense.shape[:out]))
    same(how(lambda x: v @ block_of(function, x))(x), np.tensordot(v, dense, axes=out))


@every_structure
@run_both_ways
def test_sums_differences_and_multiples(function, shape, how):
    x, y = array(*shape), array(*shape) + 0.5
    a, b = dense_of(function, x), dense_of(function, y)
    for operate in (
        lambda a, b: a + b,
        lambda a, b: a - 2 * b,
        lambda a, b: -a + b / 3,
        lambda a, b: a * np.float32(1.5) + jnp.float64(2) * b,
        lambda a, b: jnp.sum(x) * a - a,
        lambda a, b: np.asarray(0.25) * (+a),
    ):
        got = how(lambda x, y: operate(block_of(function, x), block_of(function, y)))(x, y)
        assert isinstance(got, JacobianBlock)
        assert got.dtype == np.float64
        same(got.todense(), np.asarray(operate(a, b)))


@every_structure
def test_products_of_blocks(function, shape):
    x = array(*shape)
    dense, other = dense_of(function, x), block_of(lambda x: jnp.cos(x) * jnp.roll(x, 1), x)
    got = block_of(function, x) @ other
    same(got.todense(), np.tensordot(dense, other.todense(), axes=len(shape)))


@every_structure
def test_shapes_transposes_and_arrays(function, shape):
    x = array(*shape)
    block, dense = block_of(function, x), dense_of(function, x)
    assert (block.shape, block.ndim, block.dtype) == (dense.shape, dense.ndim, dense.dtype)
    assert block.out_shape + block.inp_shape == block.shape
    turned = np.moveaxis(dense, range(len(block.out_shape)), range(-len(block.out_shape), 0))
    for made, want in ((block, dense), (block.T, turned)):
        same(np.asarray(made), want)
        same(jnp.asarray(made), want)


def test_blocks_whose_entries_are_known_at_run_time_are_not_mixed_up():
    function = VECTORS["lists known at run time"]
    points = [np.random.default_rng(n).normal(size=7) for n in range(3)]
    a, b, c = (block_of(function, x) for x in points)
    x, y, z = (dense_of(function, x) for x in points)
    same((a + b - c + a).todense(), x + y - z + x)
    same((a.T @ b).todense(), x.T @ y)


def test_under_vmap_and_grad():
    function, xs, vs = VECTORS["bands"], array(4, 7), array(4, 7)
    blocks = jax.vmap(gx.jacve(function, sparse=True))(xs)
    got = jax.vmap(lambda block, v: (2 * block + block) @ v)(blocks, vs)
    same(got, np.stack([3 * dense_of(function, x) @ v for x, v in zip(xs, vs, strict=True)]))
    with pytest.raises(ValueError, match=r"comes out of jax\.vmap"):
        2 * blocks

    def squared(jacobian):
        return lambda x: jnp.sum((jacobian(x) @ vs[0]) ** 2)

    same(
        jax.grad(squared(gx.jacve(function, sparse=True)))(xs[0]), jax.grad(squared(jax.jacfwd(function)))(xs[0])
    )  # fmt: skip


def largest_array(function, *args) -> int:
    equations = jax.make_jaxpr(function)(*args).jaxpr.eqns
    return max(var.aval.size for eqn in equations for var in eqn.outvars)


@pytest.mark.parametrize(
    "operate",
    [
        lambda block, v: block @ v,
        lambda block, v: v[:-1] @ block,
        lambda block, v: block @ jnp.stack([v, v], 1),
        lambda block, v: (block + 2 * block.T.T).data,
        lambda block, v: (block.T @ block).data,
    ],
)
def test_nothing_becomes_dense(operate):
    x = array(1000)
    block = block_of(VECTORS["bands"], x)
    assert largest_array(operate, block, jnp.asarray(x)) <= 10_000


def test_sums_keep_bands_and_known_coefficients():
    identity = JacobianBlock.labelled("i", "i", (9,), (9,))
    block = block_of(lambda x: jnp.sin(x).at[1:].add(x[:-1] ** 2), array(9))
    assert (block + 0.5 * identity).has_same_pattern(block)
    assert (3 * identity).structure.scale == 3.0
    assert (identity - identity).structure.scale == 0.0
    single = gx.jacve(jnp.sin, sparse=True)(jnp.ones(9, jnp.float32))
    assert (single + identity).dtype == np.float32


def test_products_of_bands_are_banded():
    block = block_of(VECTORS["bands"], array(1000))
    product = block.T @ block
    assert product.sparsity.offsets.tolist() == [-1, 0, 1]
    assert product.structure.stored < 4000


def test_patterns_are_compared_by_their_entries():
    x = array(7)
    bands, others = block_of(VECTORS["bands"], x), block_of(VECTORS["bands"], 2 * x)
    assert bands.has_same_pattern(others)
    assert bands.has_same_pattern(bands + others)
    assert not bands.has_same_pattern(bands.T)
    assert not block_of(jnp.sin, x).has_same_pattern(block_of(jnp.cumsum, x))
    assert bands != others
    assert len({bands, others}) == 2


@pytest.mark.parametrize(
    ("operate", "error", "message"),
    [
        (lambda block: block @ np.ones(6), ValueError, r"the tangent has shape \(6,\), but the input has \(7,\)"),
        (lambda block: np.ones(7) @ block, ValueError, r"the cotangent has shape \(7,\), but the output has \(6,\)"),
        (lambda block: block + block.T, ValueError, r"from \(7,\) to \(6,\) cannot be added to one from \(6,\)"),
        (lambda block: block @ block, ValueError, r"input of shape \(7,\) does not multiply"),
        (lambda block: block * np.ones(7), TypeError, "does not support ufuncs"),
        (lambda block: jnp.ones(7) * block, TypeError, "unsupported operand"),
        (lambda block: block + 1.0, TypeError, "unsupported operand"),
        (lambda block: jnp.ones((6, 7)) - block, TypeError, "unsupported operand"),
    ],
)
def test_what_does_not_fit_is_refused(operate, error, message):
    with pytest.raises(error, match=message):
        operate(block_of(VECTORS["bands"], array(7)))


def test_a_traced_block_says_how_it_becomes_an_array():
    with pytest.raises(TypeError, match=r"block\.todense\(\)"):
        jax.jit(lambda x: jnp.asarray(block_of(jnp.sin, x)))(array(3))


def test_small_blocks_are_drawn():
    block = block_of(VECTORS["bands"], array(5))
    assert repr(block).splitlines()[1:] == ["■■···", "·■■··", "··■■·", "···■■"]
    assert str(block) == repr(block).splitlines()[0]
    assert "\n" not in repr(block_of(VECTORS["bands"], array(100)))
