"""Functions on the native backend, and distances between floating-point numbers."""

import jax
import jax.numpy as jnp
import numpy as np

from graphax import backend


def natively(function):
    """The same function from arrays to a list of arrays, as a kernel."""
    return lambda *args: backend.run(function, args, "native")


def mapped(function, *arrays):
    """A function of scalars on a batch, as a kernel."""
    return [np.asarray(x) for x in jax.jit(jax.vmap(natively(function)))(*map(jnp.asarray, arrays))]


def ulps(got, want):
    """The distance of ``got`` from a more precise ``want``, in units in the last place; 0 for equal infinities."""
    dtype = got.dtype.type
    rounded = want.astype(dtype)
    with np.errstate(all="ignore"):
        unit = np.spacing(np.maximum(np.abs(rounded), np.finfo(dtype).tiny))
        distance = np.abs(got.astype(want.dtype) - want) / unit
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    return np.where(same, 0.0, distance).astype(float)
