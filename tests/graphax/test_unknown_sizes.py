import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import graphax as gx

from .comparing import array, assert_same


def exported(function, symbols, *args):
    """The results of a function that was traced before the sizes of its arguments were known."""
    sizes = dict(zip("nm", export.symbolic_shape("n, m"), strict=True))
    shapes = [tuple(sizes.get(size, size) for size in shape) for shape in symbols]
    types = [jax.ShapeDtypeStruct(shape, x.dtype) for shape, x in zip(shapes, args, strict=True)]
    return export.export(jax.jit(function))(*types).call(*args)


def loss(w, x):
    return jnp.mean(jnp.tanh(x @ w) ** 2)


FUNCTIONS = {
    "a vector": (lambda x: jnp.sin(x[0] * x) * jnp.sum(x**2), 0, (("n",),), (array(5),)),
    "parameters and data": (loss, 0, ((3,), ("n", 3)), (array(3), array(6, 3))),
    "by the data": (loss, 1, ((3,), ("n", 3)), (array(3), array(6, 3))),
    "several results": (
        lambda w, x: {"a": x @ w, "b": w**3},
        (0, 1),
        (("m",), ("n", "m")),
        (array(3), array(6, 3)),
    ),
}
DERIVATIVES = {
    "jacve": (gx.jacve, jax.jacfwd),
    "xla": (lambda f, argnums: gx.jacve(f, argnums, backend="xla"), jax.jacfwd),
    "value_and_jacve": (gx.value_and_jacve, lambda f, argnums: lambda *a: (f(*a), jax.jacfwd(f, argnums)(*a))),
    "hessve": (gx.hessve, jax.hessian),
    "value_grad_hess": (
        gx.value_grad_hess,
        lambda f, argnums: lambda *a: (f(*a), jax.jacrev(f, argnums)(*a), jax.hessian(f, argnums)(*a)),
    ),
}


@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_sizes_that_are_unknown_while_exporting(name, derivative):
    function, argnums, symbols, args = FUNCTIONS[name]
    ours, theirs = DERIVATIVES[derivative]
    assert_same(exported(ours(function, argnums), symbols, *args), theirs(function, argnums)(*args), 1e-12)


def test_an_unknown_number_of_points_leaves_elimination_as_it_is():
    function = jax.vmap(gx.jacve(lambda x: jnp.sin(x) * x[0], order="rev"))
    x = array(4, 3)
    np.testing.assert_allclose(exported(function, (("n", 3),), x), function(x), rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"backend": "native"}, gx.NativeError, r"a kernel.*shape \(n,\)"),
        ({"order": "rev"}, gx.OrderError, r"in an order.*shape \(n,\)"),
        ({"sparse": True}, gx.GraphaxError, r"blocks.*shape \(n,\)"),
    ],
)
def test_what_needs_sizes_says_so(options, error, match):
    with pytest.raises(error, match=match):
        exported(lambda x: jax.tree.leaves(gx.jacve(jnp.sin, **options)(x)), (("n",),), array(3))
