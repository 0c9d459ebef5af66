import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import graphax as gx
from graphax import JacobianBlock

from .comparing import array


def test_blocks_are_written_as_einsum_terms():
    w = array(3, 4)
    block = JacobianBlock.labelled("i", "ik", (3,), (3, 4), w[0], "k")
    np.testing.assert_allclose(block.todense(), np.einsum("ij,k->ijk", np.eye(3), w[0]))
    assert str(block) == "JacobianBlock(vj[i|i,j], shape=(3, 3, 4), stores=4)"


@pytest.mark.parametrize(
    ("out", "inp", "shapes", "values", "on", "message"),
    [
        ("i", "i", ((3,), (5,)), None, "", "label 'i' has size 3 on one axis and 5 on another"),
        ("i", "j", ((3,), (5,)), np.ones(3), "k", "size 3 along label 'k', which no axis of the block has"),
        ("i", "j", ((3,), (5,)), np.ones(4), "i", "size 4 along label 'i'"),
    ],
)
def test_labels_that_do_not_fit_are_refused(out, inp, shapes, values, on, message):
    with pytest.raises(ValueError, match=message):
        JacobianBlock.labelled(out, inp, *shapes, values, on)


def test_a_batch_of_blocks_says_so():
    batch = jax.vmap(gx.jacve(lambda x: jnp.sin(x), sparse=True))(array(4, 3))
    for use in (JacobianBlock.todense, JacobianBlock.to_bcoo, lambda block: block.apply(array(3))):
        with pytest.raises(ValueError, match=r"comes out of jax\.vmap"):
            use(batch)
    assert jax.vmap(JacobianBlock.todense)(batch).shape == (4, 3, 3)


def test_a_tangent_of_the_wrong_shape_is_refused():
    block = gx.jacve(jnp.sin, sparse=True)(array(3))
    with pytest.raises(ValueError, match=r"the tangent has shape \(2,\), but the input has \(3,\)"):
        block.apply([1.0, 2.0])


def test_mixed_dtypes_under_strict_promotion():
    function = lambda x: jnp.sin(jnp.sin(x.astype(jnp.float32)).astype(jnp.bfloat16)) + jnp.cos(x)
    x = jnp.asarray(array(3), jnp.bfloat16)
    with jax.numpy_dtype_promotion("strict"):
        got = gx.jacve(function)(x)
    np.testing.assert_allclose(np.asarray(got, float), np.asarray(jax.jacfwd(function)(x), float), atol=0.02)


ONCE, MANY = np.array([4, 1, 5, 0]), np.array([4, 1, 1, 0])
SINGULAR = {
    "root": lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0),
    "chain": lambda x: jnp.where(x > 0, jnp.log(jnp.sqrt(x)), x),
    "entropy": jax.scipy.special.entr,
    "product with a logarithm": lambda x: jnp.where(x > 0, x * jnp.log(x), 0.0),
    "two paths": lambda x: jnp.where(x > 0, 2 * jnp.sqrt(x) + jnp.sqrt(x) ** 2, 0.0),
    "two masks": lambda x: jnp.where(x > 0, jnp.where(x < 3, jnp.sqrt(x), -jnp.log(x)), 0.0),
    "scaled": lambda x: -3.0 * jnp.where(x > 0, 1 / x, 0.0),
    "before a matrix": lambda x: jax.nn.relu(jnp.arange(12.0).reshape(3, 4) @ jnp.where(x > 0, jnp.sqrt(x), 0.0) - 2),
    "after a matrix": lambda x: jnp.where(jnp.arange(3) > 0, jnp.arange(12.0).reshape(3, 4) @ jnp.sqrt(abs(x)), 0.0),
    "summed": lambda x: jnp.sum(jnp.sqrt(x), where=x > 0),
    "overwritten": lambda x: jnp.sqrt(x).at[:2].set(1.0),
    "overwritten somewhere": lambda x: lax.dynamic_update_slice(jnp.sqrt(x), jnp.ones(2), (jnp.argmin(x),)),
    "beside one without": lambda x: jnp.concatenate([jnp.where(x > 0, jnp.sqrt(x), 0.0)[:3], jnp.sqrt(abs(x) + 1)]),
    "another path somewhere": lambda x: (lambda r: jnp.where(x > 0, r, 0.0).at[2:].add(r[2:]))(jnp.sqrt(x)),
    "scattered": lambda x: jnp.zeros(6).at[MANY].add(jnp.where(x > 0, jnp.sqrt(x), 0.0)),
    "permuted": lambda x: jnp.zeros(6).at[ONCE].add(jnp.where(x > 0, jnp.sqrt(x), 0.0)),
    "gathered and scattered": lambda x: jnp.zeros(6).at[MANY].add(jnp.where(x > 0, jnp.sqrt(x), 0.0)[ONCE % 4]),
    "scattered on two paths": lambda x: (
        jnp.zeros(6)
        .at[MANY]
        .add(jnp.where(x > 0, jnp.sqrt(x), 0.0))
        .at[MANY[::-1]]
        .add(jnp.where(x > 1, jnp.log(x - 1), 0.0))
    ),
    "chosen of three": lambda x: lax.select_n(jnp.sign(x).astype(int) + 1, x * x, x, jnp.sqrt(x)),
}


@pytest.mark.parametrize("run", ["eager", "xla", "native"])
@pytest.mark.parametrize("order", ["fwd", "rev", "markowitz"])
@pytest.mark.parametrize("name", SINGULAR)
def test_a_masked_entry_is_zero_whatever_stands_behind_it(name, order, run):
    """This holds in every order and on every backend. JAX's forward mode is finite there, too."""
    function, x = SINGULAR[name], jnp.array([-1.0, 0.0, 1.0, 4.0])
    jacobian = gx.jacve(function, order=order, backend="auto" if run == "eager" else run)
    try:
        got = (jacobian if run == "eager" else jax.jit(jacobian))(x)
    except gx.NativeError:
        assert name == "overwritten somewhere"
        return
    want = jax.vmap(lambda t: jax.jvp(function, (x,), (t,))[1], out_axes=-1)(jnp.eye(4))
    finite = np.isfinite(want)
    np.testing.assert_allclose(got[finite], want[finite], rtol=1e-12)


def test_a_mask_is_no_factor():
    """A mask selects once, at the end, regardless of the number of products."""
    jaxpr = jax.make_jaxpr(gx.jacve(lambda x: jnp.sin(jnp.where(x > 0, jnp.exp(x), 0.0)), backend="xla"))(jnp.ones(3))
    names = [eqn.primitive.name for eqn in jaxpr.jaxpr.eqns]
    assert "convert_element_type" not in names
