import jax
import jax.numpy as jnp
import numpy as np
import pytest

import graphax as gx
from graphax import JacobianBlock

from .comparing import array


def test_blocks_are_written_as_einsum_terms():
    w = array(3, 4)
    block = JacobianBlock.labelled("i", "ik", (3,), (3, 4), w[0], "k")
    np.testing.assert_allclose(block.todense(), np.einsum("ij,k->ijk", np.eye(3), w[0]))
    assert repr(block) == "JacobianBlock(vj[i|i,j], shape=(3, 3, 4), stores=4)"


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
