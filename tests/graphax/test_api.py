import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.sparse import BCOO

import graphax as gx
from graphax.errors import JacobianMismatch

from .comparing import array, assert_same


def layer(w, x):
    return jnp.tanh(w @ x)


def primitives(jaxpr):
    return [eqn.primitive.name for eqn in jaxpr.jaxpr.eqns]


def test_no_matrix_product_in_the_paper_example():
    """Section 2.5: the Jacobian of tanh(W x) needs only elementwise products. With respect to W, it has a delta."""
    w, x = array(3, 4), array(4)
    jacobian = jax.make_jaxpr(gx.jacve(layer, argnums=(0, 1), sparse=True, backend="xla"))(w, x)
    assert primitives(jacobian).count("dot_general") == 1  # the function itself
    by_w, by_x = gx.jacve(layer, argnums=(0, 1), sparse=True)(w, x)
    assert str(by_w.structure) == "vij[i|i,j]"
    assert by_w.values.shape == (3, 4)
    assert str(by_x.structure) == "vij[i|j]"
    assert gx.build_graph(layer, w, x, argnums=(0, 1)).cost().multiplications == 24


@pytest.mark.slow
def test_a_million_elements_need_a_million_numbers():
    def chain(x):
        for _ in range(10):
            x = jnp.sin(x) * x + 1.0
        return x

    n = 1_000_000
    compiled = jax.jit(gx.jacve(chain, sparse=True)).lower(jax.ShapeDtypeStruct((n,), np.float32)).compile()
    memory = compiled.memory_analysis()
    assert memory.output_size_in_bytes + memory.temp_size_in_bytes <= 40 * 4 * n
    block = jax.jit(gx.jacve(chain, sparse=True))(jnp.full(n, 0.5, jnp.float32))
    assert str(block.structure) == "vi[i|i]"
    want = jax.grad(lambda y: chain(y)[0])(jnp.full(1, 0.5, jnp.float32))
    np.testing.assert_allclose(block.values, np.full(n, want[0]), rtol=1e-4)


@pytest.mark.parametrize("rank", [1, *(pytest.param(rank, marks=pytest.mark.slow) for rank in (2, 3))])
def test_a_batch_stays_block_diagonal_at_any_rank(rank):
    def function(x):
        y = jnp.tanh(array(3, 4) @ x) / jnp.sqrt(1.0 + jnp.sum(x * x))
        return jnp.linalg.solve(jnp.outer(y, y) + jnp.eye(3), jax.nn.softmax(y))

    batched = function
    for _ in range(rank):
        batched = jax.vmap(batched)
    x = array(*range(2, 2 + rank), 4)
    block = gx.jacve(batched, sparse=True)(x)
    batch = "ijk"[:rank]
    out, inp = "ijklm"[rank], "ijklm"[rank + 1]
    axes = ",".join(batch)
    assert str(block.structure) == f"v{batch}{out}{inp}[{axes},{out}|{axes},{inp}]"
    assert_same(block.todense(), jax.jacfwd(batched)(x))


@pytest.mark.parametrize("order", ["auto", "fwd", "rev", "markowitz"])
class TestComposition:
    def function(self, x, w):
        return jnp.sin(w @ jnp.cos(x)) * x[:2]

    def args(self):
        return array(3), array(2, 3, seed=1)

    def test_jit(self, order):
        got = jax.jit(gx.jacve(self.function, order=order, argnums=(0, 1)))(*self.args())
        assert_same(got, jax.jacfwd(self.function, argnums=(0, 1))(*self.args()))

    def test_vmap(self, order):
        x, w = array(5, 3), self.args()[1]
        got = jax.vmap(gx.jacve(self.function, order=order), (0, None))(x, w)
        assert_same(got, jax.vmap(jax.jacfwd(self.function), (0, None))(x, w))

    def test_grad(self, order):
        x, w = self.args()
        total = lambda jacobian: lambda w: jnp.sum(jacobian(self.function)(x, w) ** 2)
        got = jax.grad(total(lambda f: gx.jacve(f, order=order)))(w)
        assert_same(got, jax.grad(total(jax.jacfwd))(w))

    def test_jvp(self, order):
        x, w = self.args()
        got = jax.jvp(lambda x: gx.jacve(self.function, order=order)(x, w), (x,), (jnp.ones(3),))
        want = jax.jvp(lambda x: jax.jacfwd(self.function)(x, w), (x,), (jnp.ones(3),))
        assert_same(got, want)

    def test_itself(self, order):
        got = gx.jacve(gx.jacve(self.function, order=order), order=order)(*self.args())
        assert_same(got, jax.jacfwd(jax.jacfwd(self.function))(*self.args()))

    def test_inside_a_loop(self, order):
        x, w = self.args()

        def newton(c, _):
            return c - 0.1 * gx.jacve(self.function, order=order)(c, w).sum(0), None

        got = jax.lax.scan(newton, x, None, length=3)[0]
        want = jax.lax.scan(lambda c, _: (c - 0.1 * jax.jacfwd(self.function)(c, w).sum(0), None), x, None, length=3)[0]
        assert_same(got, want)

    def test_of_a_closure_over_a_traced_value(self, order):
        x, _ = self.args()

        def outer(jacobian):
            return lambda y: jnp.sum(jacobian(lambda x: jax.nn.relu(jnp.sin(x * y) + y[0]))(x))

        got = jax.grad(outer(lambda f: gx.jacve(f, order=order)))(x)
        assert_same(got, jax.grad(outer(jax.jacfwd))(x))
        got = jax.vmap(outer(lambda f: gx.jacve(f, order=order)))(array(4, 3))
        assert_same(got, jax.vmap(outer(jax.jacfwd))(array(4, 3)))


def test_value_and_jacve():
    value, jacobian = gx.value_and_jacve(layer, argnums=1)(array(3, 4), array(4))
    assert_same(value, layer(array(3, 4), array(4)))
    assert_same(jacobian, jax.jacrev(layer, argnums=1)(array(3, 4), array(4)))


def test_keeps_the_name_of_the_function():
    assert gx.jacve(layer).__name__ == "layer"


@pytest.mark.parametrize("argnums", [0, 1, (0, 1)])
def test_hessve(argnums):
    def function(x, y):
        return jnp.sum(jnp.sin(x["a"]) * y) + jnp.prod(y) * x["b"] ** 3

    args = {"a": array(3), "b": 0.7}, array(3, seed=1)
    want = jax.hessian(function, argnums=argnums)(*args)
    assert_same(jax.jit(gx.hessve(function, argnums=argnums))(*args), want)
    assert_same(jax.jit(gx.hessve(function, order="rev", argnums=argnums))(*args), want)


def test_hessve_has_aux():
    function = lambda x: (jnp.sum(x**3), {"x": x})
    hessian, aux = gx.hessve(function, has_aux=True)(array(3))
    assert_same(hessian, jax.hessian(lambda x: function(x)[0])(array(3)))
    assert_same(aux["x"], jnp.asarray(array(3)))


def test_the_hessian_of_a_separable_function_is_diagonal():
    hessian = gx.jacve(gx.jacve(lambda x: jnp.sum(jnp.sin(x))), sparse=True)(array(5))
    assert str(hessian.structure) == "vi[i|i]"


def test_sparse_results():
    def function(x, y):
        return jnp.sin(x) * 2.0, y[::-1], jnp.exp(1j * x), jnp.float64(3.0)

    args = array(3), array(2)
    dense = gx.jacve(function, argnums=(0, 1))(*args)
    for make in (lambda f: f, jax.jit):
        blocks = make(gx.jacve(function, argnums=(0, 1), sparse=True))(*args)
        assert_same(
            jax.tree.map(lambda b: b.todense(), blocks, is_leaf=lambda b: isinstance(b, gx.JacobianBlock)), dense
        )
        for row, wanted in zip(blocks, dense, strict=True):
            for block, want in zip(row, wanted, strict=True):
                matrix = block.to_bcoo()
                assert isinstance(matrix, BCOO)
                assert_same(matrix.todense(), want)
                assert block.shape == want.shape
    assert blocks[0][0].to_bcoo().nse == 3
    assert blocks[0][1].to_bcoo().nse == 0
    assert blocks[1][1].values is None


def test_sparse_results_pass_through_vmap():
    blocks = jax.vmap(gx.jacve(lambda x: jnp.sin(x) * x, sparse=True))(array(4, 3))
    assert blocks.values.shape == (4, 3)


class TestCheckJacobian:
    def test_agrees(self):
        function = lambda p, x: {"y": jnp.tanh(p["w"] @ x) + p["b"], "n": jnp.argmax(x)}
        params = {"w": array(3, 4), "b": array(3)}
        assert gx.check_jacobian(function, params, array(4), argnums=(0, 1)) < 1e-12
        assert gx.check_jacobian(lambda x: (x**2, x), array(4), has_aux=True, order="fwd") < 1e-12

    def test_large_functions(self):
        assert gx.check_jacobian(lambda x: jnp.sin(x) * jnp.roll(x, 0), np.ones(300_000)) < 1e-12

    def test_infinities_are_no_difference(self):
        gx.check_jacobian(jnp.sqrt, np.zeros(()))

    def test_finds_a_wrong_rule(self, monkeypatch):
        from graphax import rule

        monkeypatch.setitem(rule._REGISTERED, "neg", lambda call: call.elementwise(scale=1.0))
        rule.clear_caches()
        with pytest.raises(JacobianMismatch, match=r"output\['a'\] differs from jax.jvp by"):
            gx.check_jacobian(lambda x: {"a": -x}, array(3))
        rule.clear_caches()


def test_effects_happen_once(capsys):
    def function(x):
        jax.debug.callback(lambda: print("called"))
        return jnp.sin(x) * 2.0

    jax.block_until_ready(gx.jacve(function)(array(3)))
    jax.effects_barrier()
    assert capsys.readouterr().out == "called\n"


@pytest.mark.slow
def test_no_tracer_escapes():
    with jax.checking_leaks():
        jax.jit(gx.jacve(lambda x: jax.nn.relu(jnp.sin(x)) * x))(array(3))


def test_no_tracer_of_a_custom_rule_escapes():
    def mapped(y):
        @jax.custom_jvp
        def scaled(x):
            return x * y

        scaled.defjvp(lambda primals, tangents: (primals[0] * y, tangents[0] * y))
        return gx.jacve(lambda x: jnp.sin(scaled(x)))(1.5)

    with jax.checking_leaks():
        jax.vmap(mapped)(array(3))


@pytest.mark.parametrize("name", ["jacve", "value_and_jacve", "hessve"])
@pytest.mark.parametrize("theirs", [jax.jacfwd, jax.jacrev, jax.hessian])
def test_arguments_stand_where_jax_has_them(name, theirs):
    ours = list(inspect.signature(getattr(gx, name)).parameters.values())
    positional = [(p.name, p.default) for p in ours if p.kind is p.POSITIONAL_OR_KEYWORD][1:]
    expected = [(p.name, p.default) for p in inspect.signature(theirs).parameters.values()][1:]
    assert positional[: len(expected)] == expected
    assert all(p.kind is p.KEYWORD_ONLY for p in ours[5:])


def test_argnums_by_position():
    function = lambda x, y, z: jnp.sin(x * y) * z
    args = 1.0, 2.0, 3.0
    assert_same(gx.jacve(function, (1, 2))(*args), jax.jacfwd(function, (1, 2))(*args))
    assert_same(gx.hessve(function, (1, 2))(*args), jax.hessian(function, (1, 2))(*args))
    value, jacobian = gx.value_and_jacve(function, (1, 2))(*args)
    assert_same((value, jacobian), (jnp.asarray(function(*args)), jax.jacfwd(function, (1, 2))(*args)))


HOLOMORPHIC = {
    "square": lambda z: z * z,
    "matrix": lambda z: jnp.sin(z) @ jnp.array([[1.0, 2j], [3.0, 1 + 1j]]),
    "several": lambda z: (jnp.exp(z).sum(), {"inverse": 1 / z}),
    "constant": lambda z: jnp.ones(3, complex),
}


@pytest.mark.parametrize("name", HOLOMORPHIC)
@pytest.mark.parametrize("order", ["fwd", "rev"])
def test_holomorphic(name, order):
    function, z = HOLOMORPHIC[name], jnp.array([1 + 2j, 0.5 - 1j])
    want = jax.jacfwd(function, holomorphic=True)(z)
    assert_same(gx.jacve(function, holomorphic=True, order=order)(z), want)
    assert_same(jax.jit(jax.vmap(gx.jacve(function, 0, False, True)))(z[None]), jax.tree.map(lambda x: x[None], want))


def test_holomorphic_hessian():
    function, z = lambda z: jnp.sin(z).sum() ** 2, jnp.array([1 + 2j, 0.5 - 1j])
    assert_same(jax.jit(gx.hessve(function, holomorphic=True))(z), jax.hessian(function, holomorphic=True)(z))


@pytest.mark.parametrize("integer", [3, jnp.arange(4), np.arange(6, dtype=np.int8).reshape(2, 3)])
def test_integers_have_a_derivative_of_zero(integer):
    function = lambda n, x: x * jnp.sum(n * 1.0) + jnp.ones(3)
    want = jax.jacrev(function, (0, 1), allow_int=True)(integer, 2.0)
    for got in (gx.jacve(function, (0, 1), allow_int=True), jax.jit(gx.jacve(function, (0, 1), allow_int=True))):
        by_integer, by_number = got(integer, 2.0)
        assert (by_integer.shape, by_integer.dtype) == (want[0].shape, want[0].dtype)
        assert not by_integer.any()
        assert_same(by_number, want[1])


WEAK = {
    "square": lambda v: v * v,
    "itself": lambda v: v,
    "of a type": lambda v: v * jnp.float32(2),
    "constant": lambda v: 2.0,
    "several": lambda v: (jnp.sin(v), v * jnp.float64(2), jnp.stack([v, 2 * v]), jnp.zeros(3)),
}


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", WEAK)
def test_weak_types_are_those_of_jax(name, transform):
    types = lambda tree: jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype, leaf.weak_type), tree)
    function = WEAK[name]
    assert types(transform(gx.jacve(function))(1.5)) == types(transform(jax.jacfwd(function))(1.5))
    got, _ = transform(gx.value_and_jacve(function))(1.5)
    assert types(got) == types(jax.jit(function)(1.5))


def test_a_python_number_does_not_raise_the_precision():
    assert (gx.jacve(lambda v: v * v)(1.5) * jnp.float32(2)).dtype == jnp.float32


def test_numpy_arrays_beside_are_indexed_by_traced_values():
    function = lambda table, x: x * table[jnp.arange(2) % table.shape[0]].sum()
    assert_same(gx.jacve(function, 1)(np.array([-0.7]), 2.0), jax.jacfwd(function, 1)(np.array([-0.7]), 2.0))
