import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagrad import SearchError
from alphagrad.bench.own_function import task_of


def weighted(x, n, parameters, table):
    return jnp.sin(x) ** n * parameters["scale"] + table[jnp.array([0, 1])], jnp.cos(x)


ARGS = (np.array([0.3, 0.4]), 2, {"scale": 1.5}, np.arange(3))


@pytest.mark.parametrize(
    ("argnums", "leaves", "axes"), [(0, (0,), (0, None)), ((0, 2), (0, 1), (0, 0, None)), (-2, (1,), (None, 0, None))]
)
def test_arguments_become_arrays(argnums, leaves, axes):
    task = task_of("weighted", weighted, ARGS, argnums)
    assert (task.argnums, task.batch_axes) == (leaves, axes)
    values = task.arguments()
    got = jax.tree.leaves(jax.jacrev(task.function, task.argnums)(*values))
    want = jax.tree.leaves(jax.jacrev(weighted, argnums)(*ARGS))
    for ours, theirs in zip(got, want, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_the_axes_of_a_batch_may_be_given():
    assert task_of("f", weighted, ARGS, 0, (None, None, None, 0)).batch_axes == (None, 0)
    with pytest.raises(SearchError, match="0 or None for each of the 4 arguments"):
        task_of("f", weighted, ARGS, 0, (0,))


def test_what_cannot_be_traced_is_refused():
    with pytest.raises(SearchError, match="cannot be traced"):
        task_of("f", lambda x: x if x > 0 else -x, (1.0,))
