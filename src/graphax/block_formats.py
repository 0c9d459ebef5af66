"""Jacobian blocks in the formats of other packages: SciPy, `jax.experimental.sparse` and lineax."""

from math import prod
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from .labelled import summed_in_groups

if TYPE_CHECKING:
    from .block import JacobianBlock


def bcoo(block: "JacobianBlock") -> Any:
    """See `JacobianBlock.to_bcoo`."""
    from jax.experimental import sparse

    if block.is_dynamic:
        numbers, places = block.entries_when_run(flat=False)
        return sparse.BCOO((numbers, jnp.stack(places, 1).astype(np.int32)), shape=block.shape)
    entries = block.sparsity
    sides = (entries.rows, entries.out_shape), (entries.columns, entries.inp_shape)
    axes = [place for flat, shape in sides if shape for place in np.unravel_index(flat, shape)]
    indices = np.stack(axes, 1) if axes else np.zeros((entries.nnz, 0))
    known = {"indices_sorted": True, "unique_indices": True}
    return sparse.BCOO((block.data, jnp.asarray(indices.astype(np.int32))), shape=block.shape, **known)


def bcsr(block: "JacobianBlock") -> Any:
    """See `JacobianBlock.to_bcsr`."""
    from jax.experimental import sparse

    entries = block.sparsity
    places = jnp.asarray(entries.columns.astype(np.int32)), jnp.asarray(entries.row_starts.astype(np.int32))
    known = {"indices_sorted": True, "unique_indices": True}
    return sparse.BCSR((block.data, *places), shape=entries.shape, **known)


def scipy_array(block: "JacobianBlock", form: str) -> Any:
    """See `JacobianBlock.to_scipy`."""
    from scipy.sparse import coo_array

    numbers, places = block.entries_when_run(flat=True) if block.is_dynamic else (block.data, block.indices())
    shape = prod(block.out_shape), prod(block.inp_shape)
    found = coo_array((np.asarray(numbers), tuple(map(np.asarray, places))), shape=shape)
    found.sum_duplicates()
    return found.asformat(form)


def diagonals(block: "JacobianBlock") -> tuple[np.ndarray, jax.Array]:
    """See `JacobianBlock.diagonals`."""
    entries = block.sparsity
    shape = len(entries.offsets), entries.shape[1]
    if entries.nnz == 0:
        return entries.offsets, jnp.zeros(shape, block.dtype)
    places = np.searchsorted(entries.offsets, entries.columns - entries.rows) * shape[1] + entries.columns
    # Add the numbers directly at their places on the diagonals, instead of sorting them into entries first.
    places = places if entries.groups is None else places[entries.groups]
    return entries.offsets, summed_in_groups(block.numbers(), 0, places, prod(shape)).reshape(shape)


def linear_operator(block: "JacobianBlock") -> Any:
    """See `JacobianBlock.as_linear_operator`."""
    import lineax

    rows, columns = prod(block.out_shape), prod(block.inp_shape)
    offsets = set() if block.is_dynamic else set(block.sparsity.offsets.tolist())
    if not block.is_dynamic and rows == columns and offsets <= {-1, 0, 1}:
        along, numbers = diagonals(block)
        found = dict(zip(along.tolist(), numbers, strict=True))
        main, lower, upper = (found.get(n, jnp.zeros(columns, block.dtype)) for n in (0, -1, 1))
        if offsets <= {0}:
            return lineax.DiagonalLinearOperator(main)
        return lineax.TridiagonalLinearOperator(main, lower[: rows - 1], upper[1:])

    def applied(vector: jax.Array) -> jax.Array:
        return jnp.ravel(block.apply(jnp.reshape(vector, block.inp_shape)))

    return lineax.FunctionLinearOperator(applied, jax.ShapeDtypeStruct((columns,), block.dtype))
