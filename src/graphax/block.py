"""Jacobian blocks: sums of terms, each a structure with the values it speaks of."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import part, terms
from .axes import Axis, Digit
from .entries import Sparsity, known_entries, sparsity_of
from .labelled import NONE, Lists, reshaped, summed_in_groups, transposed
from .part import Part
from .products import Product
from .structure import Structure, canonical, zero
from .sums import Sum, Union
from .terms import AnyStructure, Recipe, Terms, pattern_of, terms_of

# Terms are scattered into a dense array if adding one array for each would take more additions than this.
_LARGE = 1 << 14
# They are if they have at most one in so many of its entries.
_SCATTERED_SHARE = 8


@partial(jax.tree_util.register_dataclass, data_fields=["parts"], meta_fields=["dtype"])
@dataclass(frozen=True, eq=False)
class JacobianBlock:
    """The derivative of one array by another, stored without its structural zeros and repetitions.

    Attributes:
        parts: its terms, each with its values; what is at one place in several of them adds up.
        dtype: the dtype of the Jacobian.
    """

    parts: tuple[Part, ...]
    dtype: Any = None

    @staticmethod
    def of(structure: AnyStructure, values: Any = None, dtype: Any = None) -> "JacobianBlock":
        """The block of a structure; without values, they are not computed yet, unless the structure knows them."""
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

        ``out`` and ``inp`` give each axis a label (a letter, say), or a tuple of `Digit`s for an axis that is more
        than one label running from end to end. The same label twice is a Kronecker delta. ``values`` are the
        numbers and ``on`` their labels; without values the block is ``scale`` times its deltas. ``lists`` has the
        positions of digits that are `Dynamic`, by name.

        For y = A @ x the block by x is ``labelled("i", "j", y.shape, x.shape, A, "ij")``; for y = c * x, an
        elementwise product, it is ``labelled("i", "i", y.shape, x.shape, c, "i")``.
        """
        given = (
            ("out", out, out_shape),
            ("inp", inp, inp_shape),
            *([] if values is None else [("on", on, values.shape)]),
        )
        for side, labels, lengths in given:
            if len(labels) != len(lengths):
                raise ValueError(f"{side} has {len(labels)} labels, {list(labels)}, for an array of shape {lengths}")
        numbers: dict[Hashable, int] = {}
        sizes: list[int] = []

        def axis(name: Any, size: int) -> Axis:
            digits = name if isinstance(name, tuple) and all(isinstance(d, Digit) for d in name) else None
            if digits is None:
                digits = () if size == 1 else (Digit(name, range(size), size),)
            return tuple(d if d.label is None else d._replace(label=number(d.label, len(d.at))) for d in digits)

        def number(name: Hashable, size: int) -> int:
            if name not in numbers:
                numbers[name] = len(sizes)
                sizes.append(size)
            if sizes[numbers[name]] != size:
                raise ValueError(f"label {name!r} has size {sizes[numbers[name]]} on one axis and {size} on another")
            return numbers[name]

        out_axes = [axis(*pair) for pair in zip(out, out_shape, strict=True)]
        inp_axes = [axis(*pair) for pair in zip(inp, inp_shape, strict=True)]
        if values is None:
            structure = canonical(out_axes, inp_axes, sizes, (), scale, renaming)[0]
            return JacobianBlock((Part(structure, None, lists=lists),))
        for name, size in zip(on, values.shape, strict=True):
            if size != 1 and (name not in numbers or sizes[numbers[name]] != size):
                raise ValueError(f"the values have size {size} along label {name!r}, which no axis of the block has")
        # Values of size 1 along an axis are repeated along it, as everywhere in NumPy.
        here = [numbers[name] for name, n in zip(on, values.shape, strict=True) if n != 1]
        values = reshaped(values, [n for n in values.shape if n != 1])
        result, old = canonical(out_axes, inp_axes, sizes, here, None)
        order = [here.index(old[label]) for label in result.values]
        return JacobianBlock((Part(result, transposed(values, order), lists=lists),))

    @property
    def structure(self) -> AnyStructure:
        """Which entries there are and how they are labelled: a `Structure`, or `Terms` if there are several."""
        structures = tuple(each.structure for each in self.parts)
        return structures[0] if len(structures) == 1 else Terms(structures)

    @property
    def values(self) -> Any:
        """The numbers, one axis a label of ``structure.values``, None where the structure knows its coefficient.

        A tuple with those of each term if there are several.
        """
        values = tuple(each.values for each in self.parts)
        return values[0] if len(values) == 1 else values

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the dense Jacobian: the output's, then the input's."""
        return self.parts[0].structure.out_shape + self.parts[0].structure.inp_shape

    @property
    def is_pattern(self) -> bool:
        """True while the values of some term are not computed yet."""
        return any(each.is_pattern for each in self.parts)

    def todense(self) -> jax.Array:
        """The Jacobian as an ordinary array of ``shape``."""
        self._check_values()
        if self.is_dynamic and _worth_scattering(self.structure):
            numbers, found = self._found(flat=True)
            sides = tuple(map(prod, _sides(self)))
            return jnp.zeros(sides, self._dtype()).at[tuple(found)].add(numbers).reshape(self.shape)
        if _worth_scattering(self.structure):
            places = tuple(side.astype(np.int32) for side in self.indices())
            matrix = jnp.zeros(self.sparsity.shape, self._dtype()).at[places]
            return matrix.set(self.data, unique_indices=True, indices_are_sorted=True).reshape(self.shape)
        # Terms that are each other's transpose go first together: so a symmetric block stays so, to the last bit.
        sums: dict[Structure, jax.Array] = {}
        for each in self.parts:
            dense, turned = each.todense(self._dtype()), each.structure.transposed
            key = turned if turned in sums else each.structure
            sums[key] = lax.add(sums[key], dense) if key in sums else dense
        return reduce(lax.add, sums.values())

    @property
    def sparsity(self) -> Sparsity:
        """Where the entries are that can differ from zero: rows and columns of the flattened matrix."""
        return sparsity_of(self.structure)

    @property
    def is_dynamic(self) -> bool:
        """True if it is known only when run where some entries are: they are picked by indices that are arguments."""
        return any(each.lists for each in self.parts)

    def indices(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the entries, sorted, each once; `data` has their numbers.

        Of a block that `is_dynamic`, all that could be entries; `to_bcoo` and `to_scipy` have only those that are.
        """
        return self.sparsity.rows, self.sparsity.columns

    @property
    def data(self) -> jax.Array:
        """The numbers at `indices`."""
        numbers, entries = self._numbers(), self.sparsity
        if entries.groups is not None:
            return summed_in_groups(numbers, 0, entries.groups, entries.nnz)
        return jnp.concatenate(numbers) if numbers else jnp.zeros(0, self._dtype())

    def _numbers(self) -> list[jax.Array]:
        """The numbers that each term holds or repeats, one after the other."""
        self._check_values()
        known = [part.recast(each, known_entries(each.structure)) if each.lists else each for each in self._nonzero]
        return [each.data(self._dtype()) for each in known]

    def to_bcoo(self):
        """The Jacobian as a `jax.experimental.sparse.BCOO` array of ``shape``, sorted and without duplicates, unless it
        `is_dynamic`."""
        from jax.experimental import sparse

        if self.is_dynamic:
            numbers, places = self._found(flat=False)
            return sparse.BCOO((numbers, jnp.stack(places, 1).astype(np.int32)), shape=self.shape)
        entries = self.sparsity
        sides = (entries.rows, entries.out_shape), (entries.columns, entries.inp_shape)
        axes = [place for flat, shape in sides if shape for place in np.unravel_index(flat, shape)]
        indices = np.stack(axes, 1) if axes else np.zeros((entries.nnz, 0))
        known = {"indices_sorted": True, "unique_indices": True}
        return sparse.BCOO((self.data, jnp.asarray(indices.astype(np.int32))), shape=self.shape, **known)

    def to_bcsr(self):
        """The flattened matrix as a `jax.experimental.sparse.BCSR`."""
        from jax.experimental import sparse

        entries = self.sparsity
        places = jnp.asarray(entries.columns.astype(np.int32)), jnp.asarray(entries.row_starts.astype(np.int32))
        known = {"indices_sorted": True, "unique_indices": True}
        return sparse.BCSR((self.data, *places), shape=entries.shape, **known)

    def to_scipy(self, form: str = "csr") -> Any:
        """The flattened matrix as a sparse array of SciPy: ``"csr"``, ``"csc"``, ``"coo"`` or ``"dia"``."""
        from scipy.sparse import coo_array

        structure = self.parts[0].structure
        shape = prod(structure.out_shape), prod(structure.inp_shape)
        numbers, places = self._found(flat=True) if self.is_dynamic else (self.data, self.indices())
        found = coo_array((np.asarray(numbers), tuple(map(np.asarray, places))), shape=shape)
        found.sum_duplicates()
        return found.asformat(form)

    def diagonals(self) -> tuple[np.ndarray, jax.Array]:
        """The diagonals of the flattened matrix that have entries: their offsets (column minus row), and for each a row
        of numbers, by column, as in `scipy.sparse.dia_array`."""
        entries = self.sparsity
        shape = len(entries.offsets), entries.shape[1]
        if entries.nnz == 0:
            return entries.offsets, jnp.zeros(shape, self._dtype())
        places = np.searchsorted(entries.offsets, entries.columns - entries.rows) * shape[1] + entries.columns
        # Numbers go to their places at once, without being brought into the order of the entries first.
        places = places if entries.groups is None else places[entries.groups]
        return entries.offsets, summed_in_groups(self._numbers(), 0, places, prod(shape)).reshape(shape)

    def as_linear_operator(self) -> Any:
        """The flattened square matrix as an operator of lineax, of the simplest kind that it is: diagonal or
        tridiagonal, so that `lineax.linear_solve` needs no dense matrix, or else one that is applied."""
        import lineax

        inp_shape = self.parts[0].structure.inp_shape
        columns = prod(inp_shape)
        rows = prod(self.shape) // max(1, columns)
        offsets = set() if self.is_dynamic else set(self.sparsity.offsets.tolist())
        if not self.is_dynamic and rows == columns and offsets <= {-1, 0, 1}:
            along, numbers = self.diagonals()
            found = dict(zip(along.tolist(), numbers, strict=True))
            main, lower, upper = (found.get(n, jnp.zeros(columns, self._dtype())) for n in (0, -1, 1))
            if offsets <= {0}:
                return lineax.DiagonalLinearOperator(main)
            return lineax.TridiagonalLinearOperator(main, lower[: rows - 1], upper[1:])

        def applied(vector: jax.Array) -> jax.Array:
            return jnp.ravel(self.apply(jnp.reshape(vector, inp_shape)))

        return lineax.FunctionLinearOperator(applied, jax.ShapeDtypeStruct((columns,), self._dtype()))

    def apply(self, tangent: jax.Array) -> jax.Array:
        """The Jacobian times a tangent of the input, without making the Jacobian dense."""
        self._check_values()
        tangent = jnp.asarray(tangent)
        out_shape, inp_shape = self.parts[0].structure.out_shape, self.parts[0].structure.inp_shape
        if tangent.shape != inp_shape:
            raise ValueError(f"the tangent has shape {tangent.shape}, but the input has {inp_shape}")
        nonzero = JacobianBlock(self._nonzero, self._dtype())
        product = compose(nonzero, JacobianBlock((part.column(tangent),))) if nonzero.parts else None
        return jnp.zeros(out_shape, self._dtype()) if product is None else product.todense()

    def transpose(self) -> "JacobianBlock":
        """The block with output and input exchanged."""
        return JacobianBlock(tuple(each.transpose() for each in self.parts), self.dtype)

    @property
    def T(self) -> "JacobianBlock":
        """Like `transpose`."""
        return self.transpose()

    def __matmul__(self, other: Any) -> Any:
        """The product with another block, which is a block without structural zeros again, or with a tangent."""
        if not isinstance(other, JacobianBlock):
            return self.apply(other)
        (out_shape, middle), (shape, inp_shape) = (_sides(block) for block in (self, other))
        if middle != shape:
            raise ValueError(
                f"a block by an input of shape {middle} does not multiply one of an output of shape {shape}"
            )
        left, right = (JacobianBlock(block._nonzero, block._dtype()) for block in (self, other))
        dtype = jnp.result_type(left._dtype(), right._dtype())
        product = compose(left, right, whole=False) if left.parts and right.parts else None
        if product is None:
            return JacobianBlock.of(zero(out_shape, inp_shape), None, dtype)
        return settled(product).mapped(lambda each: each, dtype)

    def mapped(self, change: Callable[[Part], Part], dtype: Any = None) -> "JacobianBlock":
        """The block with every part changed."""
        return JacobianBlock(tuple(map(change, self.parts)), self.dtype if dtype is None else dtype)

    def renamed(self, prefix: Hashable) -> "JacobianBlock":
        """The block with longer names for its lists, that those of other blocks do not have."""
        return self.mapped(lambda each: each.renamed(prefix)) if any(each.lists for each in self.parts) else self

    def __repr__(self):
        return f"JacobianBlock({self.structure}, shape={self.shape}, stores={self.structure.stored})"

    def _found(self, flat: bool) -> tuple[jax.Array, list[jax.Array]]:
        """The numbers of all terms and their places, some of which are known only when run and may be the same."""
        self._check_values()
        numbers = jnp.concatenate([each.data(self._dtype()) for each in self._nonzero])
        places = zip(*(each.positions(flat) for each in self._nonzero), strict=True)
        return numbers, [jnp.concatenate(place) for place in places]

    @property
    def _nonzero(self) -> tuple[Part, ...]:
        return tuple(each for each in self.parts if each.structure.scale != 0.0)

    def _dtype(self):
        if self.dtype is not None:
            return self.dtype
        known = [each.number_type() for each in self.parts if each.values is not None or each.dtype is not None]
        return jnp.result_type(*known or [float])

    def _check_values(self) -> None:
        for each in self.parts:
            each.check_values()


def _sides(block: JacobianBlock) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shapes of the output and of the input."""
    return block.parts[0].structure.out_shape, block.parts[0].structure.inp_shape


def _worth_scattering(structure: AnyStructure) -> bool:
    """Whether several terms are written into a large array of zeros in one go, instead of one array for each added."""
    several = terms_of(structure)
    size = prod(structure.out_shape) * prod(structure.inp_shape)
    added = (len(several) - 1) * size
    return added > _LARGE and _SCATTERED_SHARE * sum(prod(t.sizes) for t in several) <= size


def compose(left: JacobianBlock, right: JacobianBlock, whole: bool = True) -> JacobianBlock | None:
    """The chain rule: ``left`` after ``right``; None where the product has no entries."""
    product = terms.compose(left.structure, right.structure, whole)
    return None if product is None else perform(product, left, right)


def add(left: JacobianBlock, right: JacobianBlock, whole: bool = True) -> JacobianBlock:
    """Two parallel paths as one block."""
    return perform(terms.add(left.structure, right.structure, whole), left, right)


def perform(operation: Product | Sum | Union | Recipe, left: JacobianBlock, right: JacobianBlock) -> JacobianBlock:
    """A product or a sum that the algebra has worked out."""
    values = [*left.parts, *right.parts]
    if not isinstance(operation, Recipe):
        return JacobianBlock((part.perform(operation, *values),))
    for step in operation.code:
        values.append(part.perform(step.operation, values[step.left], values[step.right]))
    return JacobianBlock(tuple(values[number] for number in operation.outputs))


def settled(block: JacobianBlock) -> JacobianBlock:
    """The same block with its masks applied, and numbers for its values."""
    return block.mapped(part.settled)


def mirrored(block: JacobianBlock) -> JacobianBlock:
    """A block that equals its transpose but for rounding, exactly equal to it wherever its structure is symmetric.

    Of two terms that are each other's transpose, and of two entries of a term that is its own, the first counts.
    """
    parts: list[Part] = []
    seen: dict[Structure, Part] = {}
    for each in block.parts:
        first = seen.get(each.structure.transposed)
        parts.append(part.mirrored(each) if first is None else first.transpose())
        seen[each.structure] = parts[-1]
    return JacobianBlock(tuple(parts), block.dtype)


def as_pattern(block: JacobianBlock) -> JacobianBlock:
    """The same labels, with values that vary along all of them and are not known yet; one structure for all terms."""
    return JacobianBlock.of(pattern_of(block.structure))
