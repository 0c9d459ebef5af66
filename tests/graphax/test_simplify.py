import jax
import jax.numpy as jnp
import numpy as np
import pytest

import graphax as gx
from graphax import _jax
from graphax._jax import Literal
from graphax.simplify import fold_constants, simplify

from .comparing import array


def traced(function, *args):
    return _jax.trace(lambda *a: [function(*a)], *args)


def test_indices_are_known_before_execution():
    program = fold_constants(traced(lambda x: x[np.array([2, -1])], array(4)))
    gather = program.equations[-1]
    assert gather.primitive.name == "gather"
    assert isinstance(gather.invars[1], Literal)
    np.testing.assert_array_equal(gather.invars[1].val, [[2], [3]])


def test_constants_that_hold_one_number_are_known():
    program = fold_constants(traced(lambda x: x * jnp.full(3, 2.0), array(3)))
    assert np.all(np.asarray(program.equations[-1].invars[1].val) == 2.0)


def test_other_constants_stay_constants():
    program = fold_constants(traced(lambda x: x * array(3), array(3)))
    assert not any(isinstance(atom, Literal) for atom in program.equations[-1].invars)


def test_folding_keeps_the_numbering_and_the_values():
    def function(x):
        shift = jnp.where(jnp.arange(4) < 2, 1, jnp.clip(jnp.arange(4), 0, 2))
        return jnp.roll(x, 1)[shift] * jnp.maximum(jnp.eye(4)[0], 0.5)

    program = traced(function, array(4))
    folded = fold_constants(program)
    assert len(folded.equations) == len(program.equations)
    np.testing.assert_allclose(folded(array(4))[0], function(array(4)))


def test_simplification_removes_dead_code_and_repetitions():
    def function(x):
        jnp.tan(x)
        return jnp.sin(x) * jnp.exp(jnp.sin(x)) + 2.0 * jnp.sin(x)

    program = simplify(traced(function, array(3)))
    names = [eqn.primitive.name for eqn in program.equations]
    assert sorted(names) == ["add", "exp", "mul", "mul", "sin"]
    np.testing.assert_allclose(program(array(3))[0], function(array(3)))


def test_equations_with_effects_are_never_merged():
    def function(x):
        jax.debug.callback(lambda: None)
        jax.debug.callback(lambda: None)
        return x

    program = simplify(traced(function, array(3)))
    assert len(program.equations) == 2


def test_different_literals_are_different_expressions():
    program = simplify(traced(lambda x: (x * 2.0) + (x * 3.0), array(3)))
    assert len(program.equations) == 3


def test_numbers_are_not_rounded_to_integers_by_numpy():
    """XLA saturates where NumPy wraps around."""
    function = lambda x: x * jnp.where(jnp.full(4, 1e10, jnp.float32).astype(jnp.int32) > 0, 1.0, 2.0)
    np.testing.assert_array_equal(fold_constants(traced(function, array(4)))(array(4))[0], array(4))


def test_a_reshape_in_another_order_is_folded_in_that_order():
    function = lambda x: x[jax.lax.reshape(jnp.arange(4).reshape(2, 2), (4,), dimensions=(1, 0))]
    np.testing.assert_array_equal(fold_constants(traced(function, array(4)))(array(4))[0], function(array(4)))


@pytest.mark.parametrize(
    "function",
    [
        lambda: jnp.arange(6).reshape(2, 3) * 2 - jnp.arange(3)[None],
        lambda: jnp.clip(-jnp.arange(5), -3, 2) + (jnp.arange(5) >= 2),
        lambda: jnp.where(jnp.arange(4) < 2, jnp.maximum(jnp.arange(4), 1), 7),
        lambda: jnp.concatenate([jnp.arange(2), jnp.zeros(3, int)]).astype(jnp.int8),
        lambda: jnp.minimum(jnp.broadcast_to(jnp.arange(3)[:, None], (3, 2)), 1) != 1,
        lambda: (jnp.arange(4) == 2) & (jnp.arange(4) <= 3),
    ],
)
def test_folding_agrees_with_jax(function):
    np.testing.assert_array_equal(fold_constants(traced(function))()[0], function())


FOLDED = {
    "slice": lambda i: i[1:4:2, ::-1],
    "transpose": lambda i: i.T,
    "gather": lambda i: i[jnp.array([3, 0, 9]), jnp.array([1, 1, 1])],
    "gather that fills": lambda i: i.at[jnp.array([3, 7])].get(mode="fill", fill_value=-5),
    "dynamic slice": lambda i: jax.lax.dynamic_slice(i, (4, -2), (2, 2)),
    "reductions": lambda i: jnp.stack([i.sum(), i.max(), jnp.min(i), jnp.any(i > 3).astype(i.dtype)]),
    "reductions of bits": lambda i: jax.lax.reduce_and(i | 4, (0,)) + jax.lax.reduce_or(i & 6, (0,)),
    "sums": lambda i: jnp.cumsum(i, axis=0) + jax.lax.cumsum(i, axis=1, reverse=True),
    "quotients": lambda i: jax.lax.div(i - 3, i.T.reshape(5, 3) - 2) + jax.lax.div(i.astype(np.uint32), np.uint32(0)),
    "remainders": lambda i: jax.lax.rem(i - 3, i.T.reshape(5, 3) - 2) + jax.lax.rem(i.astype(np.uint32), np.uint32(0)),
    "search": lambda i: jnp.searchsorted(np.array([1, 3, 5]), i),
    "loop": lambda i: jax.lax.scan(lambda c, row: (c + row[0], c * row), i[0, 0], i)[1],
    "loop from the end": lambda i: jax.lax.scan(lambda c, row: (c + row[0], c * row), i[0, 0], i, reverse=True)[1],
    "arithmetic": lambda i: jnp.abs(i - 7) * jnp.sign(3 - i) ^ i**2,
}


@pytest.mark.parametrize("function", FOLDED.values(), ids=FOLDED)
def test_arithmetic_of_indices_is_done_beforehand(function):
    def index(x):
        return (jnp.asarray(np.arange(15).reshape(5, 3) * 3 % 7) + 0 * x.shape[0]).astype(np.int32)

    program = traced(lambda x: function(index(x)) * 1.0 + x[0], array(2))
    folded = fold_constants(program)
    np.testing.assert_array_equal(folded(array(2))[0], program(array(2))[0])
    convert = next(
        eqn for eqn in folded.equations if _jax.dtype(eqn.outvars[0]).kind == "f" and eqn.invars[0].aval.shape
    )
    assert isinstance(convert.invars[0], Literal) or convert.primitive.name == "slice"


def test_indices_by_columns_of_a_table_are_known():
    """Users often store the edges of a graph as pairs, whose columns are slices of a constant."""
    edges = np.array([[0, 3], [1, 2], [2, 0]])

    def function(x):
        pairs = jnp.array(edges)
        return x[pairs[:, 0]] * x[pairs[:, 1]]

    assert not gx.jacve(function, sparse=True)(array(4)).is_dynamic


def test_long_loops_are_not_run_beforehand():
    program = traced(lambda x: x + jax.lax.fori_loop(0, 100_000, lambda n, c: c + n, 0), array(2))
    folded = fold_constants(program)
    assert not isinstance(folded.equations[-1].invars[1], Literal)


@pytest.mark.slow
def test_indices_that_a_search_finds_are_those_of_a_sparse_block():
    """HADAMARD of CUTEst: entries below the diagonal of a product, at indices that `jnp.searchsorted` finds."""

    def function(x):
        y = x[1:].reshape(20, 20)
        k, ends = jnp.arange(210), jnp.cumsum(1 + jnp.arange(20))
        row = jnp.searchsorted(ends, k, side="right")
        return (y.T @ y)[k - jnp.concatenate([jnp.zeros(1, ends.dtype), ends[:-1]])[row], row] * x[0]

    x = array(401)
    np.testing.assert_allclose(gx.jacve(function)(x), jax.jacfwd(function)(x), rtol=1e-5, atol=1e-4)
    assert gx.sparsity(function, x).nnz <= 210 * 40
