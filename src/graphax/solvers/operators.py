"""lineax operators that keep the structure of a Jacobian block."""

from math import prod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np

from ..block import JacobianBlock


class BlockLinearOperator(lx.AbstractLinearOperator):
    """A block of ``jacve(..., sparse=True)`` as a lineax operator between arrays of its input and output shapes.

    Products use the structure of the block. lineax sees whether the block is diagonal, tridiagonal or triangular, so
    `lineax.AutoLinearSolver` chooses a solver that needs no dense matrix, if there is one. ``tags`` declare further
    properties, such as ``lineax.symmetric_tag``.
    """

    block: JacobianBlock
    tags: frozenset = eqx.field(static=True)

    def __init__(self, block: JacobianBlock, tags: Any = ()):
        if not isinstance(block, JacobianBlock):
            raise TypeError(f"BlockLinearOperator takes a JacobianBlock, but got {type(block).__name__}")
        self.block = block
        self.tags = frozenset(tags if isinstance(tags, tuple | list | set | frozenset) else [tags])

    def mv(self, vector: Any) -> Any:
        return self.block.apply(vector)

    def as_matrix(self) -> jax.Array:
        return self.block.todense().reshape(self.out_size(), self.in_size())

    def transpose(self) -> "BlockLinearOperator":
        return BlockLinearOperator(self.block.transpose(), lx.transpose_tags(self.tags))

    def in_structure(self) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(self._shapes()[1], self.block.dtype)

    def out_structure(self) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(self._shapes()[0], self.block.dtype)

    def _shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        structure = self.block.parts[0].structure
        return structure.out_shape, structure.inp_shape

    def offsets(self) -> range:
        """A range of diagonals (column minus row) that contains all entries."""
        rows, columns = map(prod, self._shapes())
        if self.block.is_dynamic:
            return range(1 - rows, columns)
        found = self.block.sparsity.offsets
        return range(int(found.min()), int(found.max()) + 1) if len(found) else range(0, 1)

    def is_within(self, first: float, last: float) -> bool:
        """True for a square matrix whose entries all lie between two diagonals."""
        offsets = self.offsets()
        square = self.in_size() == self.out_size()
        return square and first <= offsets.start and offsets.stop - 1 <= last

    def band(self, offset: int) -> jax.Array:
        """The entries of one diagonal of a square matrix."""
        along, numbers = self.block.diagonals()
        size = self.in_size()
        places = np.arange(max(0, offset), size + min(0, offset))
        found = [row for at, row in zip(along.tolist(), numbers, strict=True) if at == offset]
        return found[0][places] if found else jnp.zeros(len(places), self.block.dtype)


def _tagged(operator: BlockLinearOperator, tag: object) -> bool:
    return tag in operator.tags


def _self(operator: BlockLinearOperator) -> BlockLinearOperator:
    return operator


def _bands(operator: BlockLinearOperator) -> tuple[jax.Array, jax.Array, jax.Array]:
    return operator.band(0), operator.band(-1), operator.band(1)


def _conjugate(operator: BlockLinearOperator) -> BlockLinearOperator:
    return BlockLinearOperator(jax.tree.map(jnp.conj, operator.block), operator.tags)


_DEFINITE = lx.positive_semidefinite_tag, lx.negative_semidefinite_tag
_SEEN = {
    lx.linearise: _self,
    lx.materialise: _self,
    lx.conj: _conjugate,
    lx.diagonal: lambda o: o.band(0) if not o.block.is_dynamic else jnp.diagonal(o.as_matrix()),
    lx.tridiagonal: _bands,
    lx.is_diagonal: lambda o: _tagged(o, lx.diagonal_tag) or o.is_within(0, 0),
    lx.is_tridiagonal: lambda o: _tagged(o, lx.tridiagonal_tag) or o.is_within(-1, 1),
    lx.is_lower_triangular: lambda o: _tagged(o, lx.lower_triangular_tag) or o.is_within(-np.inf, 0),
    lx.is_upper_triangular: lambda o: _tagged(o, lx.upper_triangular_tag) or o.is_within(0, np.inf),
    lx.is_symmetric: lambda o: any(_tagged(o, tag) for tag in (lx.symmetric_tag, *_DEFINITE)) or o.is_within(0, 0),
    lx.has_unit_diagonal: lambda o: _tagged(o, lx.unit_diagonal_tag),
    lx.is_positive_semidefinite: lambda o: _tagged(o, lx.positive_semidefinite_tag),
    lx.is_negative_semidefinite: lambda o: _tagged(o, lx.negative_semidefinite_tag),
}
for _function, _answer in _SEEN.items():
    _function.register(BlockLinearOperator)(_answer)
