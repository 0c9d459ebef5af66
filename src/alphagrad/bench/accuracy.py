"""The Jacobian in double precision, which others are compared with."""

from math import prod

import jax
import numpy as np

from .case import Case

# Points of a batch that are compared; with more of them little is learnt.
POINTS = 256


def exact_entries(case: Case, count: int = POINTS) -> list[np.ndarray]:
    """The arrays of the Jacobian at the first points, by JAX in float64 from the very same arguments.

    In the mode that has fewer passes to make, of which the other is hopeless for large networks.
    """
    with jax.enable_x64(True):
        args = [np.asarray(x, np.float64) for x in case.first(count)]
        example = case.task.arguments(case.scale)
        outputs = sum(prod(x.shape) for x in jax.tree.leaves(jax.eval_shape(case.function, *example)))
        inputs = sum(example[number].size for number in case.task.argnums)
        mode = jax.jacrev if outputs <= inputs else jax.jacfwd
        exact = jax.jit(case.over_batch(mode(case.function, case.task.argnums)))(*args)
        return [np.asarray(x) for x in jax.tree.leaves(exact)]
