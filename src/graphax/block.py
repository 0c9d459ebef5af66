"""Jacobian blocks: sums of terms, each a structure with its values."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike

from . import block_formats, part, terms
from .block_operators import BlockOperators
from .entries import Sparsity, known_entries, sparsity_of
from .labelled import NONE, Lists, summed_in_groups
from .notation import written
from .part import Part
from .products import Product
from .structure import Structure, zero
from .sums import Sum, Union
from .terms import AnyStructure, Recipe, Terms, pattern_of, terms_of

# Terms are scattered into a dense array if adding one array per term would take more additions than `_LARGE`...
_LARGE = 1 << 14
# ...if the terms have at most one in this many of the entries of the array...
_SCATTERED_SHARE = 8
# ...and if there are more terms than this, or terms with values.
_FEW_TERMS = 4
# A matrix is drawn if it has at most this many rows and columns.
_DRAWN_ROWS, _DRAWN_COLUMNS = 16, 48


@partial(jax.tree_util.register_dataclass, data_fields=["parts"], meta_fields=["given_dtype"])
@dataclass(frozen=True, eq=False, repr=False)
class JacobianBlock(BlockOperators):
    """The derivative of one array with respect to another, stored without structural zeros and repetitions.

    A block is a linear operator from arrays of ``inp_shape`` to arrays of ``out_shape``. ``block @ v`` contracts the
    input axes with the leading axes of ``v``, ``v @ block`` the output axes with the trailing axes of ``v``, and
    ``block @ block`` is a block again. Blocks of the same shapes can be added and subtracted, and scaled by numbers.
    None of these makes a block dense; `todense` and `numpy.asarray` do.

    Attributes:
        parts: the terms, each with its values. Values of different terms at the same place add up.
        given_dtype: the dtype, if it differs from that of the values.
    """

    parts: tuple[Part, ...]
    given_dtype: Any = None

    @staticmethod
    def of(structure: AnyStructure, values: Any = None, dtype: Any = None) -> "JacobianBlock":
        """A block with this structure. Without ``values``, it is a pattern, unless the structure has a coefficient."""
        if isinstance(structure, Structure):
            return JacobianBlock((Part(structure, values, dtype),), dtype)
        assert values is None
        return JacobianBlock(tuple(Part(term, None, dtype) for term in structure.terms), dtype)

    @staticmethod
    def labelled(
        out: Sequence[Hashable],
        inp: Sequence[Hashable],
        out_shape: Sequence[int],
        inp_shape: Sequence[int],
        values: Any = None,
        on: Sequence[Hashable] = (),
        scale: float | None = 1.0,
        renaming: bool = False,
        lists: Lists = NONE,
    ) -> "JacobianBlock":
        """Write a block as an einsum term.

        ``out`` and ``inp`` give each axis a label, for example a letter. An axis that is not one label from end to end
        is given as a tuple of `Digit`s. The same label twice is a Kronecker delta. ``values`` are the numbers and
        ``on`` their labels; without values the block is ``scale`` times its deltas. ``lists`` maps the names of
        `Dynamic` digits to their positions.

        For y = A @ x the block with respect to x is ``labelled("i", "j", y.shape, x.shape, A, "ij")``; for y = c * x,
        an elementwise product, it is ``labelled("i", "i", y.shape, x.shape, c, "i")``.
        """
        return JacobianBlock((written(out, inp, out_shape, inp_shape, values, on, scale, renaming, lists),))

    @property
    def structure(self) -> AnyStructure:
        """The entries and their labels: a `Structure`, or `Terms` if there are several."""
        structures = tuple(each.structure for each in self.parts)
        return structures[0] if len(structures) == 1 else Terms(structures)

    @property
    def values(self) -> Any:
        """The numbers, with one axis per label of ``structure.values``; None if the structure knows its coefficient.

        If there are several terms, this is a tuple with the numbers of each.
        """
        values = tuple(each.values for each in self.parts)
        return values[0] if len(values) == 1 else values

    @property
    def out_shape(self) -> tuple[int, ...]:
        """The shape of the output."""
        return self.parts[0].structure.out_shape

    @property
    def inp_shape(self) -> tuple[int, ...]:
        """The shape of the input."""
        return self.parts[0].structure.inp_shape

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the dense Jacobian: the shape of the output, then that of the input."""
        return self.out_shape + self.inp_shape

    @property
    def ndim(self) -> int:
        """The number of axes of the dense Jacobian."""
        return len(self.shape)

    @property
    def dtype(self) -> Any:
        """The dtype of the Jacobian."""
        return _dtype_of(self)

    @property
    def is_pattern(self) -> bool:
        """True while the values of some term are not computed yet."""
        return any(each.is_pattern for each in self.parts)

    def todense(self) -> jax.Array:
        """The Jacobian as an ordinary array of ``shape``."""
        self._check_values()
        if self.is_dynamic and _worth_scattering(self.structure):
            numbers, found = self.entries_when_run(flat=True)
            sides = prod(self.out_shape), prod(self.inp_shape)
            return jnp.zeros(sides, self.dtype).at[tuple(found)].add(numbers).reshape(self.shape)
        if _worth_scattering(self.structure):
            places = tuple(side.astype(np.int32) for side in self.indices())
            matrix = jnp.zeros(self.sparsity.shape, self.dtype).at[places]
            return matrix.set(self.data, unique_indices=True, indices_are_sorted=True).reshape(self.shape)
        # Add terms that are each other's transpose first, so that a symmetric block stays symmetric to the last bit.
        sums: dict[Structure, jax.Array] = {}
        for each in self.parts:
            dense, turned = each.todense(self.dtype), each.structure.transposed
            key = turned if turned in sums else each.structure
            sums[key] = lax.add(sums[key], dense) if key in sums else dense
        return reduce(lax.add, sums.values())

    @property
    def sparsity(self) -> Sparsity:
        """The positions of entries that can differ from zero: rows and columns of the flattened matrix."""
        return sparsity_of(self.structure)

    @property
    def is_dynamic(self) -> bool:
        """True if indices among the arguments determine the positions of some entries, at run time."""
        return any(each.lists for each in self.parts)

    def indices(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows and columns of the entries, sorted and without duplicates. `data` has the numbers.

        For a block that `is_dynamic`, these are all possible entries; `to_bcoo` and `to_scipy` hold only the actual
        ones.
        """
        return self.sparsity.rows, self.sparsity.columns

    @property
    def data(self) -> jax.Array:
        """The numbers at `indices`."""
        numbers, entries = self.numbers(), self.sparsity
        if entries.groups is not None:
            return summed_in_groups(numbers, 0, entries.groups, entries.nnz)
        return jnp.concatenate(numbers) if numbers else jnp.zeros(0, self.dtype)

    def numbers(self) -> list[jax.Array]:
        """The numbers of each term, with repetitions, as one array per term."""
        self._check_values()
        known = [part.recast(each, known_entries(each.structure)) if each.lists else each for each in self._nonzero]
        return [each.data(self.dtype) for each in known]

    def to_bcoo(self) -> Any:
        """The Jacobian as a `jax.experimental.sparse.BCOO` array of ``shape``.

        It is sorted and has no duplicates, unless the block `is_dynamic`.
        """
        return block_formats.bcoo(self)

    def to_bcsr(self) -> Any:
        """The flattened matrix as a `jax.experimental.sparse.BCSR`."""
        return block_formats.bcsr(self)

    def to_scipy(self, form: str = "csr") -> Any:
        """The flattened matrix as a SciPy sparse array: ``"csr"``, ``"csc"``, ``"coo"`` or ``"dia"``."""
        return block_formats.scipy_array(self, form)

    def diagonals(self) -> tuple[np.ndarray, jax.Array]:
        """The offsets (column minus row) and the numbers of the diagonals of the flattened matrix that have entries.

        The numbers have one row per diagonal, indexed by column, as in `scipy.sparse.dia_array`.
        """
        return block_formats.diagonals(self)

    def as_linear_operator(self) -> Any:
        """The flattened matrix as a lineax operator of the simplest possible kind.

        A diagonal or tridiagonal square matrix keeps its structure, so `lineax.linear_solve` needs no dense matrix. Any
        other matrix becomes a `FunctionLinearOperator`.
        """
        return block_formats.linear_operator(self)

    def apply(self, tangent: ArrayLike) -> jax.Array:
        """``block @ tangent``: the Jacobian times a tangent of the input, without making the Jacobian dense.

        Axes of the tangent after those of the input are batch axes: each column is multiplied by the Jacobian.
        """
        tangent, count = jnp.asarray(tangent), len(self.inp_shape)
        if tangent.shape[:count] != self.inp_shape or tangent.ndim < count:
            raise ValueError(f"the tangent has shape {tangent.shape}, but the input has {self.inp_shape}")
        return _product(self, _matrix(tangent, count), whole=True).todense()

    def apply_transposed(self, cotangent: ArrayLike) -> jax.Array:
        """``cotangent @ block``: a cotangent of the output times the Jacobian, without making the Jacobian dense.

        Axes of the cotangent before those of the output are batch axes: each row is multiplied by the Jacobian.
        """
        cotangent = jnp.asarray(cotangent)
        count = cotangent.ndim - len(self.out_shape)
        if count < 0 or cotangent.shape[count:] != self.out_shape:
            raise ValueError(f"the cotangent has shape {cotangent.shape}, but the output has {self.out_shape}")
        return _product(_matrix(cotangent, count), self, whole=True).todense()

    def transpose(self) -> "JacobianBlock":
        """The block with output and input exchanged."""
        return JacobianBlock(tuple(each.transpose() for each in self.parts), self.given_dtype)

    @property
    def T(self) -> "JacobianBlock":
        """The transpose, like `transpose`."""
        return self.transpose()

    def after(self, other: "JacobianBlock") -> "JacobianBlock":
        """``block @ other``: the chain rule, as a block without structural zeros."""
        if self.inp_shape != other.out_shape:
            raise ValueError(
                f"a block by an input of shape {self.inp_shape} does not multiply one of an output of shape "
                f"{other.out_shape}"
            )
        return _product(self, other, whole=False)

    def plus(self, other: "JacobianBlock") -> "JacobianBlock":
        """``block + other``, with the entries of both."""
        if (self.out_shape, self.inp_shape) != (other.out_shape, other.inp_shape):
            raise ValueError(
                f"a block from {self.inp_shape} to {self.out_shape} cannot be added to one from {other.inp_shape} to "
                f"{other.out_shape}"
            )
        left, right = _operands(self, other)
        parts = left.parts or right.parts or self.parts
        total = add(left, right, whole=False) if left.parts and right.parts else JacobianBlock(parts)
        return JacobianBlock(settled(total).parts, _dtype_of(self, other))

    def scaled(self, factor: ArrayLike) -> "JacobianBlock":
        """``factor * block``, for a number or an array without axes."""
        self._check_values()
        return self.mapped(lambda each: part.scaled(each, factor), jnp.result_type(self.dtype, factor))

    def has_same_pattern(self, other: "JacobianBlock") -> bool:
        """Whether two blocks have the same shapes and can differ from zero at the same places."""
        if (self.out_shape, self.inp_shape) != (other.out_shape, other.inp_shape):
            return False
        if self.is_dynamic or other.is_dynamic:
            return self.structure == other.structure
        pairs = zip(self.indices(), other.indices(), strict=True)
        return self.structure == other.structure or all(np.array_equal(ours, theirs) for ours, theirs in pairs)

    def mapped(self, change: Callable[[Part], Part], dtype: Any = None) -> "JacobianBlock":
        """The block with ``change`` applied to every part."""
        return JacobianBlock(tuple(map(change, self.parts)), self.given_dtype if dtype is None else dtype)

    def renamed(self, prefix: Hashable) -> "JacobianBlock":
        """The block with ``prefix`` added to the names of its lists, so that they differ from those of other blocks."""
        return self.mapped(lambda each: each.renamed(prefix)) if any(each.lists for each in self.parts) else self

    def __str__(self):
        return f"JacobianBlock({self.structure}, shape={self.shape}, stores={self.structure.stored})"

    def __repr__(self):
        small = prod(self.out_shape) <= _DRAWN_ROWS and prod(self.inp_shape) <= _DRAWN_COLUMNS
        return "\n".join([str(self), *(self.sparsity.picture() if small and not self.is_dynamic else [])])

    def entries_when_run(self, flat: bool) -> tuple[jax.Array, list[jax.Array]]:
        """The numbers of all terms and their places. Some places are known only at run time and may coincide."""
        self._check_values()
        numbers = jnp.concatenate([each.data(self.dtype) for each in self._nonzero])
        places = zip(*(each.positions(flat) for each in self._nonzero), strict=True)
        return numbers, [jnp.concatenate(place) for place in places]

    @property
    def _nonzero(self) -> tuple[Part, ...]:
        return tuple(each for each in self.parts if each.structure.scale != 0.0)

    def _check_values(self) -> None:
        for each in self.parts:
            each.check_values()


def _dtype_of(*blocks: JacobianBlock) -> Any:
    """The dtype of a block, or of the sum or product of several. Known numbers alone do not determine it."""
    known = [block.given_dtype for block in blocks if block.given_dtype is not None]
    rest = [each for block in blocks if block.given_dtype is None for each in block.parts]
    known += [each.number_type() for each in rest if each.values is not None or each.dtype is not None]
    return jnp.result_type(*known or [float])


def _matrix(array: jax.Array, rows: int) -> JacobianBlock:
    """An array as a block whose output axes are the first ``rows`` axes of the array."""
    return JacobianBlock((part.matrix(array, rows),), array.dtype)


def _product(left: JacobianBlock, right: JacobianBlock, whole: bool) -> JacobianBlock:
    """The product of two blocks; a block without entries if it vanishes."""
    dtype, out_shape, inp_shape = _dtype_of(left, right), left.out_shape, right.inp_shape
    left, right = _operands(left, right)
    product = compose(left, right, whole) if left.parts and right.parts else None
    if product is None:
        return JacobianBlock.of(zero(out_shape, inp_shape), None, dtype)
    return JacobianBlock(settled(product).parts, dtype)


def _operands(left: JacobianBlock, right: JacobianBlock) -> tuple[JacobianBlock, JacobianBlock]:
    """Two blocks without their zero terms, and with different names for different lists."""
    left._check_values()
    right._check_values()
    left, right = (JacobianBlock(block._nonzero, block.given_dtype) for block in (left, right))
    known = {name: array for each in left.parts for name, array in each.lists.items()}
    while any(known.get(name, array) is not array for each in right.parts for name, array in each.lists.items()):
        right = right.renamed("right")
    return left, right


def _worth_scattering(structure: AnyStructure) -> bool:
    """Whether to write several terms into one large array of zeros, instead of adding one array per term.

    XLA adds a few terms of one number each while it writes the array, without reading anything.
    """
    several = terms_of(structure)
    if len(several) <= _FEW_TERMS and not any(term.values for term in several):
        return False
    size = prod(structure.out_shape) * prod(structure.inp_shape)
    added = (len(several) - 1) * size
    return added > _LARGE and _SCATTERED_SHARE * sum(prod(t.sizes) for t in several) <= size


def compose(left: JacobianBlock, right: JacobianBlock, whole: bool = True) -> JacobianBlock | None:
    """The chain rule: ``left`` after ``right``; None if the product has no entries."""
    product = terms.compose(left.structure, right.structure, whole)
    return None if product is None else perform(product, left, right)


def add(left: JacobianBlock, right: JacobianBlock, whole: bool = True) -> JacobianBlock:
    """The sum of two blocks, for two parallel paths."""
    return perform(terms.add(left.structure, right.structure, whole), left, right)


def perform(operation: Product | Sum | Union | Recipe, left: JacobianBlock, right: JacobianBlock) -> JacobianBlock:
    """Carry out a product or a sum that the algebra has worked out."""
    values = [*left.parts, *right.parts]
    if not isinstance(operation, Recipe):
        return JacobianBlock((part.perform(operation, *values),))
    for step in operation.code:
        values.append(part.perform(step.operation, values[step.left], values[step.right]))
    return JacobianBlock(tuple(values[number] for number in operation.outputs))


def settled(block: JacobianBlock) -> JacobianBlock:
    """The same block with its masks applied and with numbers for its values."""
    return block.mapped(part.settled)


def mirrored(block: JacobianBlock) -> JacobianBlock:
    """A block that equals its transpose up to rounding, made exactly equal where its structure is symmetric.

    Of two terms that are each other's transpose, the first one counts. So does the first of two mirrored entries of a
    term that is its own transpose.
    """
    parts: list[Part] = []
    seen: dict[Structure, Part] = {}
    for each in block.parts:
        first = seen.get(each.structure.transposed)
        parts.append(part.mirrored(each) if first is None else first.transpose())
        seen[each.structure] = parts[-1]
    return JacobianBlock(tuple(parts), block.given_dtype)


def as_pattern(block: JacobianBlock) -> JacobianBlock:
    """The same labels, with unknown values that vary along all of them. All terms share one structure."""
    return JacobianBlock.of(pattern_of(block.structure))
