"""Jacobian blocks: a structure and the values it speaks of.

Three operations on value arrays carry everything: `view` reads an array by labels, `place` is its inverse and
writes labelled values into a larger array of zeros, `contract` multiplies and sums. None of the first two does
arithmetic, so the multiplications and additions executed are those that `graphax.structure` counts.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import structure as algebra
from . import terms
from .axes import Axis, Digit, axis_size, labels_of, whole
from .labelled import (
    arranged,
    common_dtype,
    contract,
    like,
    of_dtype,
    place,
    reshaped,
    spread,
    sum_out,
    summed_in_groups,
    transposed,
    view,
)
from .positions import as_array
from .structure import Recast, Refinement, Structure
from .terms import AnyStructure, Recipe, Terms


@partial(jax.tree_util.register_dataclass, data_fields=["where"], meta_fields=["labels"])
@dataclass(frozen=True, eq=False)
class Mask:
    """Truth values along some of a block's labels: entries where they are false are zero, whatever the values hold."""

    where: Any
    labels: tuple[int, ...]


@partial(jax.tree_util.register_dataclass, data_fields=["values", "masks"], meta_fields=["structure", "dtype"])
@dataclass(frozen=True, eq=False)
class JacobianBlock:
    """The derivative of one array by another, stored without its structural zeros and repetitions.

    Attributes:
        structure: which entries there are and how they are labelled.
        values: the numbers, one axis a label of ``structure.values``; None if the structure knows its coefficient.
            (Inside graphax, None without a known coefficient means "pattern known, values not computed yet".) If the
            structure is a sum of terms, a block for each of them.
        dtype: the dtype of the Jacobian.
        masks: what is still to be applied to the values; none in blocks that users get.
    """

    structure: AnyStructure
    values: Any
    dtype: Any = None
    masks: tuple[Mask, ...] = ()

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
    ) -> "JacobianBlock":
        """Write a block as an einsum term.

        ``out`` and ``inp`` give each axis a label (a letter, say), or a tuple of `Digit`s for an axis that is more
        than one label running from end to end. The same label twice is a Kronecker delta. ``values`` are the
        numbers and ``on`` their labels; without values the block is ``scale`` times its deltas.

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
            return JacobianBlock(algebra.canonical(out_axes, inp_axes, sizes, (), scale, renaming)[0], None)
        for name, size in zip(on, values.shape, strict=True):
            if size != 1 and (name not in numbers or sizes[numbers[name]] != size):
                raise ValueError(f"the values have size {size} along label {name!r}, which no axis of the block has")
        # Values of size 1 along an axis are repeated along it, as everywhere in NumPy.
        here = [numbers[name] for name, n in zip(on, values.shape, strict=True) if n != 1]
        values = reshaped(values, [n for n in values.shape if n != 1])
        result, old = algebra.canonical(out_axes, inp_axes, sizes, here, None)
        order = [here.index(old[label]) for label in result.values]
        return JacobianBlock(result, transposed(values, order))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the dense Jacobian: the output's, then the input's."""
        return self.structure.out_shape + self.structure.inp_shape

    @property
    def parts(self) -> "tuple[JacobianBlock, ...]":
        """The blocks of its terms."""
        return self.values if isinstance(self.structure, Terms) else (self,)

    @staticmethod
    def of_parts(structure: AnyStructure, parts: "Sequence[JacobianBlock]", dtype: Any = None) -> "JacobianBlock":
        return JacobianBlock(structure, tuple(parts), dtype) if isinstance(structure, Terms) else parts[0]

    @property
    def is_pattern(self) -> bool:
        """True while only the structure is known."""
        return any(part.values is None and part.structure.scale is None for part in self.parts)

    def todense(self) -> jax.Array:
        """The Jacobian as an ordinary array of ``shape``."""
        if isinstance(self.structure, Terms):
            dense = [replace(part, dtype=self._dtype()).todense() for part in self.parts]
            return reduce(lax.add, dense)
        self._check_values()
        dtype = self._dtype()
        if self.structure.scale == 0.0:
            return jnp.zeros(self.shape, dtype)
        return lax.convert_element_type(self._placed(self.structure.out + self.structure.inp), dtype)

    def to_bcoo(self):
        """The Jacobian as a `jax.experimental.sparse.BCOO` matrix with an entry for every stored position."""
        from jax.experimental import sparse

        if isinstance(self.structure, Terms):
            parts = [replace(part, dtype=self._dtype()).to_bcoo() for part in self.parts]
            data, indices = (jnp.concatenate([getattr(part, name) for part in parts]) for name in ("data", "indices"))
            return sparse.BCOO((data, indices), shape=self.shape)
        self._check_values()
        axes, sizes = self.structure.out + self.structure.inp, self.structure.sizes
        if self.structure.scale == 0.0:
            return sparse.BCOO((jnp.zeros(0, self._dtype()), jnp.zeros((0, len(axes)), np.int32)), shape=self.shape)
        grid = np.indices(sizes, sparse=True) if sizes else ()
        indices = np.empty((prod(sizes), len(axes)), np.int32)
        for column, axis in enumerate(axes):
            position = np.zeros((), np.int32)
            for label, at, size in axis:
                position = position * size + (at[0] if label is None else as_array(at)[grid[label]])
            indices[:, column] = np.broadcast_to(position, sizes).ravel()
        data = lax.broadcast_in_dim(self._coefficient(), sizes, self.structure.values)
        data = lax.convert_element_type(reshaped(data, (prod(sizes),)), self._dtype())
        return sparse.BCOO((data, jnp.asarray(indices)), shape=self.shape)

    def apply(self, tangent: jax.Array) -> jax.Array:
        """The Jacobian times a tangent of the input, without making the Jacobian dense."""
        if isinstance(self.structure, Terms):
            return reduce(jnp.add, [replace(part, dtype=self._dtype()).apply(tangent) for part in self.parts])
        self._check_values()
        tangent = jnp.asarray(tangent)
        if tangent.shape != self.structure.inp_shape:
            raise ValueError(f"the tangent has shape {tangent.shape}, but the input has {self.structure.inp_shape}")
        column = JacobianBlock(
            algebra.canonical(
                [() if n == 1 else (whole(i, n),) for i, n in enumerate(tangent.shape)],
                [],
                tangent.shape,
                [i for i, n in enumerate(tangent.shape) if n != 1],
                None,
            )[0],
            reshaped(tangent, [n for n in tangent.shape if n != 1]),
        )
        product = compose(self, column)
        if product is None or self.structure.scale == 0.0:
            return jnp.zeros(self.structure.out_shape, self._dtype())
        return product.todense()

    def transpose(self) -> "JacobianBlock":
        """The block with output and input exchanged."""
        if isinstance(self.structure, Terms):
            return JacobianBlock(self.structure.transposed, tuple(p.transpose() for p in self.parts), self.dtype)
        structure, old = algebra.canonical(
            self.structure.inp, self.structure.out, self.structure.sizes, self.structure.values,
            self.structure.scale, self.structure.renaming,
        )  # fmt: skip
        if self.values is None:
            return JacobianBlock(structure, None, self.dtype)
        block = settled(self)
        order = [self.structure.values.index(old[label]) for label in structure.values]
        return JacobianBlock(structure, transposed(block.values, order), self.dtype)

    def __repr__(self):
        return f"JacobianBlock({self.structure}, shape={self.shape}, stores={self.structure.stored})"

    def _dtype(self):
        if self.dtype is not None:
            return self.dtype
        if isinstance(self.structure, Terms):
            numbers = [part._dtype() for part in self.parts if part.values is not None or part.dtype is not None]
            return jnp.result_type(*numbers or [float])
        return jnp.result_type(float) if self.values is None or self.values.dtype == bool else self.values.dtype

    def _coefficient(self):
        return self.values if self.structure.scale is None else np.asarray(self.structure.scale, self._dtype())

    def _placed(self, axes: Sequence[Axis]) -> jax.Array:
        return place(self._coefficient(), self.structure.values, axes)

    def _check_values(self) -> None:
        if self.values is not None and np.shape(self.values) != self.structure.value_shape:
            raise ValueError(
                f"the values have shape {np.shape(self.values)}, but the structure {self.structure} has "
                f"{self.structure.value_shape}. A block that comes out of jax.vmap is a batch of blocks: work on it "
                f"inside jax.vmap, too."
            )


def compose(left: JacobianBlock, right: JacobianBlock) -> JacobianBlock | None:
    """The chain rule: ``left`` after ``right``; None where the product has no entries."""
    product = terms.compose(left.structure, right.structure)
    return None if product is None else perform(product, left, right)


def add(left: JacobianBlock, right: JacobianBlock) -> JacobianBlock:
    """Two parallel paths as one block."""
    return perform(terms.add(left.structure, right.structure), left, right)


def perform(
    operation: algebra.Product | algebra.Sum | algebra.Union | Recipe, left: JacobianBlock, right: JacobianBlock
) -> JacobianBlock:
    """A product or a sum that the algebra has worked out."""
    if isinstance(operation, algebra.Product):
        return multiply(operation, left, right)
    if isinstance(operation, algebra.Sum):
        return accumulate(operation, left, right)
    if isinstance(operation, algebra.Union):
        return _united(operation, left, right)
    values = [*left.parts, *right.parts]
    for step in operation.code:
        values.append(perform(step.operation, values[step.left], values[step.right]))
    return JacobianBlock.of_parts(operation.structure, [values[number] for number in operation.outputs])


def multiply(product: algebra.Product, left: JacobianBlock, right: JacobianBlock) -> JacobianBlock:
    """A composition that `structure.compose` has worked out."""
    if product.structure.scale is not None or left.is_pattern or right.is_pattern:
        return JacobianBlock(product.structure, None)
    if product.free:
        left = recast(left, algebra.freed(left.structure, (), product.free))
        right = recast(right, algebra.freed(right.structure, product.free, ()))
    out, shape = product.structure.values, _shape_before(product)
    sides = [(block, axes) for block, axes in ((left, product.left), (right, product.right)) if axes is not None]
    factors = [view(block.values, axes) for block, axes in sides]
    masks: list[Mask] = []
    if any(_selects(block) for block, _ in sides):
        dtype = next((block.dtype for block, _ in sides if block.dtype is not None), jnp.result_type(float))
        factors, masks = _numbers_and_masks(factors, out, product.factor == 1.0, dtype)
        masks += [_viewed(mask, block, axes) for block, axes in sides for mask in block.masks]
        if not factors:
            where = _together(masks, out, shape)
            if not product.compactions:
                return JacobianBlock(product.structure, where, dtype)
            factors, masks = [(lax.convert_element_type(where, dtype), list(out))], []
        # A mask along a label that is summed selects before the sum, on both sides where both have its labels.
        early = [mask for mask in masks if not set(mask.labels) <= set(out)]
        factors = [(_selected(values, labels, early), labels) for values, labels in factors]
    if len(factors) == 2:
        values = contract(factors[0], factors[1], out)
    else:
        values = spread(*sum_out(*factors[0], keep=set(out)), out, shape)
    if product.factor == -1.0:
        values = lax.neg(values)
    elif product.factor != 1.0:
        values = lax.mul(values, like(values, product.factor))
    late = tuple(mask for mask in masks if set(mask.labels) <= set(out))
    if product.compactions:
        values, late = _selected(values, out, late), ()
        for step in product.compactions:
            values = summed_in_groups(values, out.index(step.label), step.groups.array, step.count)
    return JacobianBlock(product.structure, values, masks=late)


def _shape_before(product: algebra.Product) -> tuple[int, ...]:
    """The shape of a product's values before those of the same entries are summed."""
    lengths = {step.label: len(step.groups) for step in product.compactions}
    structure = product.structure
    return tuple(lengths.get(label, structure.sizes[label]) for label in structure.values)


def _selects(block: JacobianBlock) -> bool:
    """True if masks are all or part of a block's values."""
    return bool(block.masks) or (block.values is not None and block.values.dtype == bool)


def _numbers_and_masks(
    factors: Sequence[tuple[Any, list[int]]], out: Sequence[int], unscaled: bool, dtype: Any
) -> tuple[list[tuple[Any, list[int]]], list[Mask]]:
    """Factors that are arithmetic, and those that only select.

    Truth values become numbers of type ``dtype`` where they are summed by themselves, along labels that the product
    lacks and that no factor of numbers could be selected along, and where they are all there is to scale.
    """
    numbers = [(values, labels) for values, labels in factors if values.dtype != bool]
    carried = set(numbers[0][1]) if numbers else set()
    masks = []
    for values, labels in factors:
        if values.dtype != bool:
            continue
        if set(labels) <= set(out) or set(labels) <= carried:
            masks.append(Mask(values, tuple(labels)))
        else:
            numbers.append((lax.convert_element_type(values, dtype), labels))
    if not numbers and not unscaled:
        numbers = [(lax.convert_element_type(masks[0].where, dtype), list(masks[0].labels))]
    return numbers, masks


def _viewed(mask: Mask, block: JacobianBlock, axes: Sequence[Axis]) -> Mask:
    where, labels = view(mask.where, [axes[block.structure.values.index(label)] for label in mask.labels])
    return Mask(where, tuple(labels))


def _together(masks: Sequence[Mask], labels: Sequence[int], shape: Sequence[int]) -> Any:
    """Where all masks let values through."""
    wheres = [spread(mask.where, list(mask.labels), labels, shape) for mask in masks]
    result = wheres[0]
    for where in wheres[1:]:
        result = lax.bitwise_and(result, where)
    return result


def _selected(values: Any, labels: Sequence[int], masks: Sequence[Mask]) -> Any:
    """Values that are zero where a mask with no other labels than theirs says so."""
    masks = [mask for mask in masks if set(mask.labels) <= set(labels)]
    if not masks:
        return values
    return lax.select(_together(masks, labels, values.shape), values, lax.full_like(values, 0))


def settled(block: JacobianBlock) -> JacobianBlock:
    """The same block with its masks applied, and numbers for its values."""
    if isinstance(block.structure, Terms):
        return replace(block, values=tuple(map(settled, block.parts)))
    if not _selects(block):
        return block
    values = block.values
    if values.dtype == bool:
        values = lax.convert_element_type(values, block._dtype())
    return replace(block, values=_selected(values, block.structure.values, block.masks), masks=())


def _united(union: algebra.Union, left: JacobianBlock, right: JacobianBlock) -> JacobianBlock:
    """The values of two blocks one after the other, those of the same entries summed."""
    if left.is_pattern or right.is_pattern:
        return JacobianBlock(union.structure, None)
    blocks = settled(left), settled(right)
    dtype = common_dtype(*[block.values for block in blocks if block.values is not None])
    labels = union.structure.values
    shapes = [tuple(block.structure.sizes[label] for label in labels) for block in blocks]
    parts = [
        spread(of_dtype(block._coefficient(), dtype), list(block.structure.values), labels, shape)
        for block, shape in zip(blocks, shapes, strict=True)
    ]
    values = lax.concatenate(parts, labels.index(union.label))
    for step in union.compactions:
        values = summed_in_groups(values, labels.index(step.label), step.groups.array, step.count)
    return JacobianBlock(union.structure, values)


def accumulate(total: algebra.Sum, left: JacobianBlock, right: JacobianBlock) -> JacobianBlock:
    """A sum that `structure.add` has worked out."""
    if total.structure.scale is not None or left.is_pattern or right.is_pattern:
        return JacobianBlock(total.structure, None)
    left, right = recast(left, total.left_first), recast(right, total.right_first)
    masks: tuple[Mask, ...] = ()
    if _selects(left) and _selects(right):
        # An entry that is masked on both paths is masked.
        where = _summed(total, (_where(left), left), (_where(right), right), lax.bitwise_or)
        masks = (Mask(where, total.structure.values),)
    left, right = settled(left), settled(right)
    dtype = common_dtype(*[block.values for block in (left, right) if block.values is not None])
    a, b = (of_dtype(block._coefficient(), dtype) for block in (left, right))
    return JacobianBlock(total.structure, _summed(total, (a, left), (b, right), lax.add), masks=masks)


def _where(block: JacobianBlock) -> Any:
    """Where a block that selects has values, as truth values like them."""
    if block.values.dtype == bool:
        return block.values
    return _together(block.masks, block.structure.values, block.structure.value_shape)


def _summed(
    total: algebra.Sum,
    left: tuple[Any, JacobianBlock],
    right: tuple[Any, JacobianBlock],
    plus: Callable[[Any, Any], Any],
) -> Any:
    """The values of two blocks, each put into its place in the sum."""
    if total.beside is not None:
        return _laid_beside(total, *((values, block.structure.values) for values, block in (left, right)))
    placed = [
        value if block.structure.scale is not None and _covers(axes) else place(value, block.structure.values, axes)
        for (value, block), axes in ((left, total.left), (right, total.right))
    ]
    return plus(*_same_shape(*placed))


def recast(block: JacobianBlock, how: Recast | Refinement | None) -> JacobianBlock:
    """The same block under another structure."""
    if how is None:
        return block
    block = settled(block)
    if isinstance(how, Recast):
        return JacobianBlock(how.structure, block._placed(how.axes), block.dtype)
    if block.values is None:
        return JacobianBlock(how.structure, None, block.dtype)
    values, labels = view(block.values, how.axes)
    return JacobianBlock(how.structure, arranged(values, labels, how.structure.values), block.dtype)


def seeds(structure: Structure) -> tuple[jax.Array, tuple[int, ...]]:
    """Input tangents that reveal every value of a block: one for each index of the labels only the input has.

    Returns the tangents, stacked along the leading axis, and those labels.
    """
    own = tuple(label for label in labels_of(structure.inp) if label not in labels_of(structure.out))
    axes = tuple((whole(label, structure.sizes[label]),) for label in own) + structure.inp
    tangents = place(np.ones((), np.float32), (), axes)
    return reshaped(tangents, (prod(structure.sizes[n] for n in own), *structure.inp_shape)), own


def read_values(structure: Structure, tangents: jax.Array, own: tuple[int, ...]) -> jax.Array:
    """The values of a block from the output tangents that `seeds` gave rise to."""
    axes = tuple((whole(label, structure.sizes[label]),) for label in own) + structure.out
    values, labels = view(reshaped(tangents, [axis_size(axis) for axis in axes]), axes)
    # Along labels that the values lack, the block repeats them.
    for label in [label for label in labels if label not in structure.values]:
        values = lax.index_in_dim(values, 0, labels.index(label), keepdims=False)
        labels.remove(label)
    return arranged(values, labels, structure.values)


def _laid_beside(total: algebra.Sum, left: tuple[Any, tuple], right: tuple[Any, tuple]) -> jax.Array:
    """Two summands that do not overlap along one axis, with zeros between them."""
    axis = total.beside
    assert axis is not None
    pieces = []
    for (values, labels), axes in ((left, total.left), (right, total.right)):
        (digit,) = axes[axis]
        compact = (digit._replace(at=range(len(digit.at)), size=len(digit.at)),)
        pieces.append((digit.at, place(values, labels, (*axes[:axis], compact, *axes[axis + 1 :]))))
    (near_at, near), (far_at, far) = sorted(pieces, key=lambda piece: piece[0].start)
    gap = far_at[0] - near_at[-1] - 1
    if gap:
        margins = [(0, gap if n == axis else 0, 0) for n in range(near.ndim)]
        near = lax.pad(near, like(near, 0), margins)
    return lax.concatenate([near, far], axis)


def _covers(axes: Sequence[Axis]) -> bool:
    """True if a known coefficient fills the whole sum, so that it can be added as a scalar."""
    labels = [d.label for axis in axes for d in axis if d.label is not None]
    return all(len(d.at) == d.size for axis in axes for d in axis) and len(set(labels)) == len(labels)


def _same_shape(a: Any, b: Any) -> tuple[Any, Any]:
    shape = a.shape or b.shape
    return tuple(x if x.shape == shape else lax.broadcast_in_dim(x, shape, ()) for x in (a, b))  # type: ignore[return-value]
