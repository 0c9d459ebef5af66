"""Functions with every kind of arguments and results, compared with `jax.jacfwd`."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import Primitive

import graphax as gx

from .comparing import array, assert_same


class Pair(NamedTuple):
    first: object
    second: object


@jax.custom_jvp
def straight_through(x):
    return jnp.round(x)


straight_through.defjvp(lambda primals, tangents: (jnp.round(primals[0]), tangents[0]))

FUNCTIONS = {
    "dictionary in, named tuple out": (lambda d: Pair(d["a"] * d["b"], {"c": d["a"]}), ({"a": array(2), "b": 2.0},), 0),
    "nested lists": (lambda x: [[x[0] * 2.0], (x[1][0],)], ([array(2), [array(3)]],), 0),
    "two arguments": (lambda x, y: jnp.outer(x, y), (array(2), array(3)), (0, 1)),
    "the second argument": (lambda x, y: jnp.outer(x, y), (array(2), array(3)), 1),
    "arguments in another order": (lambda x, y: jnp.outer(x, y), (array(2), array(3)), (1, 0)),
    "a tuple of one argument": (lambda x, y: x * y, (array(2), array(2)), (0,)),
    "counted from the end": (lambda x, y: x * y, (array(2), array(2, seed=3)), -1),
    "an integer among the arguments": (lambda n, x: x**n, (3, array(2)), 1),
    "a flag among the arguments": (lambda flag, x: jnp.sin(x) if flag else x, (True, array(2)), 1),
    "a string among the arguments": (lambda x, how: jnp.sin(x) if how == "sin" else x, (array(2), "sin"), 0),
    "Python numbers": (lambda x, y: x * y, (2.0, 3.0), (0, 1)),
    "None among the results": (lambda x: {"a": x, "b": None}, (array(2),), 0),
    "outputs that are inputs": (lambda x, y: (x, y, x * y, x), (array(2), array(2)), (0, 1)),
    "outputs that are constants": (lambda x: (1.0, jnp.ones(3), x), (array(2),), 0),
    "outputs used inside": (lambda x: (y := jnp.sin(x), z := y * x, jnp.sum(z * y)), (array(3),), 0),
    "repeated outputs": (lambda x: (y := jnp.sin(x), y, (y, x)), (array(3),), 0),
    "integer outputs": (lambda x: (jnp.argmax(x), x), (array(3),), 0),
    "complex outputs": (lambda x: jnp.exp(1j * x), (array(2, 3),), 0),
    "an unused argument": (lambda x, y: jnp.sin(x), (array(3), array(2)), (0, 1)),
    "nothing to eliminate": (lambda x: x, (array(2, 3),), 0),
    "a derivative of zero": (lambda x: jnp.floor(x) + jnp.sign(x), (array(3),), 0),
    "a stopped gradient in the middle": (lambda x: x * jnp.nextafter(jax.lax.stop_gradient(x), 1.0), (array(3),), 0),
    "a constant that is closed over": (lambda x: x @ array(3, 2), (array(4, 3),), 0),
    "jit": (jax.jit(lambda x: jnp.sin(x) * x), (array(3),), 0),
    "vmap": (jax.vmap(lambda x, y: jnp.outer(x, y)), (array(4, 2), array(4, 3)), (0, 1)),
    "checkpoint": (jax.checkpoint(lambda x: jnp.sin(jnp.cos(x))), (array(3),), 0),
    "grad": (jax.grad(lambda x: jnp.sum(jnp.sin(x) * x)), (array(3),), 0),
    "custom_jvp": (lambda x: straight_through(x * 2.0) * x, (array(3),), 0),
    "custom_jvp of the library": (lambda x: jax.nn.relu(x) + jax.nn.softplus(x), (array(3),), 0),
    "several results of a primitive": (lambda x: jnp.linalg.eigh(x @ x.T), (array(3, 3),), 0),
    "top_k": (lambda x: jax.lax.top_k(x, 2), (array(4),), 0),
    "random numbers": (lambda x: x * jax.random.normal(jax.random.key(0), (3,)), (array(3),), 0),
    "no elements": (lambda x: (x * 2.0, jnp.sum(x), jnp.concatenate([x, jnp.ones(2)])), (np.zeros((0,)),), 0),
    "no elements along one axis": (lambda x: jnp.sin(x) @ jnp.ones((0, 2)), (np.zeros((3, 0)),), 0),
    "a barrier of unlike shapes": (lambda x: jax.lax.optimization_barrier((x * 2, x[0], x.sum())), (array(2, 3),), 0),
    "a NumPy integer for argnums": (lambda x, y: x * y, (array(2), array(2)), np.int64(1)),
    "no leaves": (lambda x: {"a": ()}, (array(2),), 0),
}  # fmt: skip


@pytest.mark.parametrize("order", ["auto", "fwd", "rev"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_like_jacfwd(name, order):
    function, args, argnums = FUNCTIONS[name]
    want = jax.jacfwd(function, argnums=argnums)(*args)
    assert_same(gx.jacve(function, order=order, argnums=argnums)(*args), want)


def test_custom_vjp():
    @jax.custom_vjp
    def function(x, y):
        return jnp.sin(x) * y

    # The derivative is wrong on purpose, because the custom rule must be used.
    function.defvjp(lambda x, y: (function(x, y), (x, y)), lambda saved, ct: (7.0 * ct * saved[1], ct * saved[0]))
    args = array(3), array(3, seed=1)
    for argnums in (0, 1, (0, 1)):
        want = jax.jacrev(lambda x, y: function(x, y) * x, argnums=argnums)(*args)
        got = gx.jacve(lambda x, y: function(x, y) * x, argnums=argnums)(*args)
        assert_same(got, want)
    assert str(gx.build_graph(function, *args).edges[1, 0]) == "vi[i|i]"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_dtypes(dtype):
    x, w = jnp.asarray(array(3), dtype), jnp.asarray(array(2, 3), dtype)

    def function(x):
        return jnp.tanh(w @ x) * 2.0, x.astype(jnp.float32) ** 2

    eps = float(jnp.finfo(dtype).eps)
    assert_same(gx.jacve(function)(x), jax.jacfwd(function)(x), tolerance=10 * eps)


def test_keyword_arguments():
    def function(x, *, scale, power=1):
        return scale * x**power

    want = jax.jacfwd(function)(array(3), scale=2.0, power=3)
    assert_same(gx.jacve(function)(array(3), scale=2.0, power=3), want)


def test_has_aux():
    def function(x):
        y = jnp.sin(x)
        return jnp.sum(y), {"y": y, "n": 3, "text": None}

    jacobian, aux = gx.jacve(function, has_aux=True)(array(3))
    want, want_aux = jax.jacfwd(function, has_aux=True)(array(3))
    assert_same(jacobian, want)
    assert_same(aux["y"], want_aux["y"])
    assert aux["n"] == 3
    (value, aux), jacobian = gx.value_and_jacve(function, has_aux=True)(array(3))
    assert_same((value, aux["y"], jacobian), (function(array(3))[0], want_aux["y"], want))


@pytest.mark.parametrize(
    ("argument", "dtype"), [(3, "int64"), (np.arange(3), "int64"), (1j, "complex128"), (True, "bool")]
)
def test_integer_and_complex_arguments_are_refused_as_jax_words_it(argument, dtype):
    with pytest.raises(
        TypeError, match=rf"requires real-valued inputs \(input dtype that is a sub-dtype .* got {dtype}"
    ):
        gx.jacve(lambda x: x * 1.0)(argument)


def test_an_argument_that_is_no_array_is_refused():
    with pytest.raises(TypeError, match="'text' of type <class 'str'> is not a valid JAX type"):
        gx.jacve(lambda x: x)("text")


def test_argnums_out_of_range():
    def f(x):
        return x

    with pytest.raises(ValueError, match="argnums=2 asks for positional argument 2, but f was called with 1"):
        gx.jacve(f, argnums=2)(1.0)


@pytest.mark.parametrize("argnums", [(0, 0), (1, -1)])
def test_argnums_twice(argnums):
    with pytest.raises(ValueError, match="asks for the same argument twice"):
        gx.jacve(lambda x, y: x * y, argnums=argnums)(1.0, 2.0)


def test_has_aux_wants_a_pair():
    with pytest.raises(TypeError, match="has_aux=True to be a pair"):
        gx.jacve(lambda x: x, has_aux=True)(1.0)


def test_a_function_that_cannot_be_traced_raises_its_own_error():
    def function(x):
        return x if x > 0 else -x

    with pytest.raises(jax.errors.TracerBoolConversionError, match=r"function at .*test_trace\.py"):
        gx.jacve(function)(1.0)


def test_a_function_that_cannot_be_differentiated_raises_its_own_error_with_the_line():
    primitive = Primitive("without_derivative")
    primitive.def_abstract_eval(lambda x: x)

    def function(x):
        return primitive.bind(x) * 2.0

    with pytest.raises(NotImplementedError, match="Differentiation rule for 'without_derivative'") as caught:
        gx.jacve(function)(1.0)
    assert any("test_trace.py" in note for note in caught.value.__notes__)


def test_shapes_are_enough_to_build_a_graph():
    graph = gx.build_graph(lambda x: jnp.sin(x) * 2.0, jax.ShapeDtypeStruct((3,), np.float32))
    assert graph.intermediates == (1,)
