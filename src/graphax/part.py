"""One term of a Jacobian block with its values.

Three operations on value arrays carry everything. `view` reads an array by labels. `place` is its inverse: it writes
labelled values into a larger array of zeros. `contract` multiplies and sums. The first two do no arithmetic, so the
executed multiplications and additions are those that `graphax.structure` counts.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .axes import Axis, axis_size, flat_positions, labels_of, whole
from .labelled import (
    Lists,
    arranged,
    common_dtype,
    contract,
    like,
    nothing_like,
    of_dtype,
    place,
    positions_of,
    reshaped,
    spread,
    sum_out,
    summed_in_groups,
    transposed,
    view,
)
from .positions import highest, lowest
from .products import Product
from .structure import Recast, Structure, dense, freed, renamed, turned
from .sums import Refinement, Sum, Union

# XLA takes several times as long to read entries by position as to choose between two arrays.
# Columns of at least this many entries, and at most this many columns, are put side by side by choices.
_LONG_COLUMN, _MOST_COLUMNS = 64, 16
_LONG_TO_GATHER = 1 << 16


@partial(jax.tree_util.register_dataclass, data_fields=["where"], meta_fields=["labels"])
@dataclass(frozen=True, eq=False)
class Mask:
    """Truth values along some labels of a block. Entries where they are false are zero, whatever the values hold."""

    where: Any
    labels: tuple[int, ...]


@partial(jax.tree_util.register_dataclass, data_fields=["values", "masks", "lists"], meta_fields=["structure", "dtype"])
@dataclass(frozen=True, eq=False)
class Part:
    """A structure with its values.

    Attributes:
        structure: the entries and their labels.
        values: the numbers, with one axis per label of ``structure.values``; None if the structure knows its
            coefficient. None without a known coefficient means that the values are not computed yet.
        dtype: the dtype of the numbers, if the values do not determine it.
        masks: the masks that are still to be applied to the values.
        lists: the positions known only at run time, by the names in the structure.
    """

    structure: Structure
    values: Any
    dtype: Any = None
    masks: tuple[Mask, ...] = ()
    lists: Lists = field(default_factory=dict)

    @property
    def is_pattern(self) -> bool:
        """True while only the structure is known."""
        return self.values is None and self.structure.scale is None

    def coefficient(self) -> Any:
        """The values, or the known number that stands for all of them."""
        return self.values if self.structure.scale is None else np.asarray(self.structure.scale, self.number_type())

    def number_type(self) -> Any:
        if self.dtype is not None:
            return self.dtype
        return jnp.result_type(float) if self.values is None or self.values.dtype == bool else self.values.dtype

    def placed(self, axes: Sequence[Axis]) -> jax.Array:
        return place(settled(self).coefficient(), self.structure.values, axes, self.lists)

    def todense(self, dtype: Any) -> jax.Array:
        if self.structure.scale == 0.0:
            return jnp.zeros(self.structure.out_shape + self.structure.inp_shape, dtype)
        return lax.convert_element_type(self.placed(self.structure.out + self.structure.inp), dtype)

    def positions(self, flat: bool) -> list[Any]:
        """The position of each number in `data` along each axis, or in the flattened output and input with ``flat``."""
        sizes, find = self.structure.sizes, partial(positions_of, lists=self.lists)
        out, inp = self.structure.out, self.structure.inp
        sides = [out, inp] if flat else [(axis,) for axis in out + inp]
        return [flat_positions(side, range(len(sizes)), sizes, find) for side in sides]

    def data(self, dtype: Any) -> jax.Array:
        """One number per combination of label values: the stored numbers, with repetitions."""
        sizes = self.structure.sizes
        numbers = lax.broadcast_in_dim(settled(self).coefficient(), sizes, self.structure.values)
        return lax.convert_element_type(reshaped(numbers, (prod(sizes),)), dtype)

    def transpose(self) -> "Part":
        structure, order = turned(self.structure)
        if self.values is None:
            return Part(structure, None, self.dtype, lists=self.lists)
        return Part(structure, transposed(settled(self).values, order), self.dtype, lists=self.lists)

    def renamed(self, prefix: Hashable) -> "Part":
        lists: Lists = {(prefix, name): array for name, array in self.lists.items()}
        return replace(self, structure=renamed(self.structure, prefix), lists=lists)

    def check_values(self) -> None:
        if self.values is not None and np.shape(self.values) != self.structure.value_shape:
            raise ValueError(
                f"the values have shape {np.shape(self.values)}, but the structure {self.structure} has "
                f"{self.structure.value_shape}. A block that comes out of jax.vmap is a batch of blocks: work on it "
                f"inside jax.vmap, too."
            )


def mirrored(block: Part) -> Part:
    """A part whose values equal those of its transpose, if the transpose has the same structure."""
    structure, order = turned(block.structure)
    if block.values is None or block.structure != structure:
        return block
    places = np.arange(prod(structure.value_shape)).reshape(structure.value_shape)
    others = places.transpose(order)
    if np.array_equal(places, others):
        return block
    values = settled(block).values
    if places.size > _LONG_TO_GATHER:
        values = chosen_halves(values, order)
    else:
        # For a choice between two halves, XLA may compute both and round them differently.
        values = jnp.take(jnp.ravel(values), np.minimum(places, others), mode="clip")
    return replace(block, values=values, masks=())


def chosen_halves(values: jax.Array, order: Sequence[int]) -> jax.Array:
    """An array in which the first of two entries that ``order`` exchanges stands for both, up to rounding."""
    places = lax.iota(np.int32, values.size).reshape(values.shape)
    return lax.select(places <= lax.transpose(places, order), values, lax.transpose(values, order))


def matrix(array: jax.Array, rows: int) -> Part:
    """A dense array as a block whose output axes are the first ``rows`` axes of the array."""
    structure = dense(array.shape[:rows], array.shape[rows:])
    return Part(structure, reshaped(array, structure.value_shape))


def scaled(block: Part, factor: Any) -> Part:
    """A part times a number or an array without axes. A known coefficient times a known number stays known."""
    known = block.structure.scale
    if known == 0.0:
        return block
    if known is not None and isinstance(factor, int | float):
        return replace(block, structure=replace(block.structure, scale=known * factor, renaming=False))
    block = settled(block)
    structure = replace(block.structure, scale=None, renaming=False)
    values = jnp.multiply(block.coefficient(), factor)
    return replace(block, structure=structure, values=values, dtype=None)


def perform(operation: Product | Sum | Union, left: Part, right: Part) -> Part:
    """Carry out a product or a sum that the algebra has worked out."""
    if isinstance(operation, Product):
        return multiply(operation, left, right)
    return accumulate(operation, left, right) if isinstance(operation, Sum) else _united(operation, left, right)


def multiply(product: Product, left: Part, right: Part) -> Part:
    """Carry out a composition that `structure.compose` has worked out."""
    lists = {**left.lists, **right.lists}
    if product.structure.scale is not None or left.is_pattern or right.is_pattern:
        return Part(product.structure, None, lists=_named(product.structure, lists))
    if product.free:
        left = recast(left, freed(left.structure, (), product.free))
        right = recast(right, freed(right.structure, product.free, ()))
    out, shape = product.structure.values, _shape_before(product)
    sides = [(block, axes) for block, axes in ((left, product.left), (right, product.right)) if axes is not None]
    factors = [view(block.values, axes, lists) for block, axes in sides]
    factors += [_guard(axis, lists) for axis in product.guards]
    masks: list[Mask] = []
    if product.guards or any(selects(block) for block, _ in sides):
        dtype = next((block.dtype for block, _ in sides if block.dtype is not None), jnp.result_type(float))
        factors, masks = _numbers_and_masks(factors, out, product.factor == 1.0, dtype)
        masks += [_viewed(mask, block, axes, lists) for block, axes in sides for mask in block.masks]
        if not factors:
            where = _together(masks, out, shape)
            if not product.compactions:
                return Part(product.structure, where, dtype, lists=_named(product.structure, lists))
            factors = [(lax.convert_element_type(where, dtype), list(out))]
        # A mask along a summed label selects before the sum, in both factors if both have its labels.
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
        where = _together(late, out, shape) if late else None
        return _compacted(product, [_selected(values, out, late)], None if where is None else [where], lists)
    return Part(product.structure, values, masks=late, lists=_named(product.structure, lists))


def _named(structure: Structure, lists: Lists) -> Lists:
    """The lists that a structure names."""
    return {name: lists[name] for name in sorted(structure.names, key=repr)}


def _guard(axis: Axis, lists: Lists) -> tuple[Any, list[int]]:
    """The truth values of a guard, along its label."""
    (digit,) = axis
    where = positions_of(digit.at, lists) == 1
    return (where[0], []) if digit.label is None else (where, [digit.label])


def _compacted(operation: Product | Union, values: Sequence[Any], wheres: Sequence[Any] | None, lists: Lists) -> Part:
    """A part made of pieces of values, in which values of the same entry are summed.

    An entry is masked if all of its values are masked, according to the truth values ``wheres``.
    """
    labels = operation.structure.values
    masks = () if wheres is None else (Mask(_in_groups(operation, wheres), labels),)
    values = _in_groups(operation, values)
    return Part(operation.structure, values, masks=masks, lists=_named(operation.structure, lists))


def _in_groups(operation: Product | Union, pieces: Sequence[Any]) -> Any:
    """Pieces as one array, in which values of the same entry are summed."""
    labels, steps = operation.structure.values, operation.compactions
    if isinstance(operation, Union) and (not steps or steps[0].label != operation.label):
        pieces = [lax.concatenate(pieces, labels.index(operation.label))]
    for step in steps:
        pieces = [summed_in_groups(pieces, labels.index(step.label), step.groups.array, step.count)]
    (values,) = pieces
    return values


def _shape_before(product: Product) -> tuple[int, ...]:
    """The shape of the values of a product before values of the same entry are summed."""
    lengths = {step.label: len(step.groups) for step in product.compactions}
    structure = product.structure
    return tuple(lengths.get(label, structure.sizes[label]) for label in structure.values)


def selects(block: Part) -> bool:
    """True if a block has masks, or if its values are truth values."""
    return bool(block.masks) or (block.values is not None and block.values.dtype == bool)


def _numbers_and_masks(
    factors: Sequence[tuple[Any, list[int]]], out: Sequence[int], unscaled: bool, dtype: Any
) -> tuple[list[tuple[Any, list[int]]], list[Mask]]:
    """Split factors into numbers and masks.

    Truth values become numbers of type ``dtype`` in two cases. One is that they are summed by themselves, along labels
    that the product lacks and along which no factor of numbers could be selected. The other is that they are the only
    factors and a scale has to be applied.
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


def _viewed(mask: Mask, block: Part, axes: Sequence[Axis], lists: Lists) -> Mask:
    where, labels = view(mask.where, [axes[block.structure.values.index(label)] for label in mask.labels], lists)
    return Mask(where, tuple(labels))


def _together(masks: Sequence[Mask], labels: Sequence[int], shape: Sequence[int]) -> Any:
    """True where all masks let values through."""
    wheres = [spread(mask.where, list(mask.labels), labels, shape) for mask in masks]
    result = wheres[0]
    for where in wheres[1:]:
        result = lax.bitwise_and(result, where)
    return result


def _selected(values: Any, labels: Sequence[int], masks: Sequence[Mask]) -> Any:
    """Values with zeros where a mask is false. Masks with labels that the values lack are ignored."""
    masks = [mask for mask in masks if set(mask.labels) <= set(labels)]
    if not masks:
        return values
    return lax.select(_together(masks, labels, values.shape), values, lax.full_like(values, 0))


def settled(block: Part) -> Part:
    """The same block with its masks applied and with numbers for its values."""
    if not selects(block):
        return block
    values = block.values
    if values.dtype == bool:
        values = lax.convert_element_type(values, block.number_type())
    return replace(block, values=_selected(values, block.structure.values, block.masks), masks=())


def _united(union: Union, left: Part, right: Part) -> Part:
    """The values of two blocks one after the other, in which values of the same entry are summed."""
    lists = {**left.lists, **right.lists}
    if left.is_pattern or right.is_pattern:
        return Part(union.structure, None, lists=_named(union.structure, lists))
    labels = union.structure.values
    shapes = [tuple(block.structure.sizes[label] for label in labels) for block in (left, right)]

    def spreads(pieces: Sequence[Any]) -> list[Any]:
        return [
            spread(values, list(block.structure.values) if np.ndim(values) else [], labels, shape)
            for values, block, shape in zip(pieces, (left, right), shapes, strict=True)
        ]

    wheres = None
    if selects(left) or selects(right):
        wheres = spreads([shown(block) for block in (left, right)])
        left, right = settled(left), settled(right)
    dtype = common_dtype(*[block.values for block in (left, right) if block.values is not None])
    return _compacted(union, spreads([of_dtype(block.coefficient(), dtype) for block in (left, right)]), wheres, lists)


def accumulate(total: Sum, left: Part, right: Part) -> Part:
    """Carry out a sum that `structure.add` has worked out."""
    lists = _named(total.structure, {**left.lists, **right.lists})
    if total.structure.scale is not None or left.is_pattern or right.is_pattern:
        return Part(total.structure, None, lists=lists)
    left, right = recast(left, total.left_first), recast(right, total.right_first)
    masks: tuple[Mask, ...] = ()
    summands = (left, total.left), (right, total.right)
    if any(selects(block) for block, _ in summands) and all(
        selects(block) or not _covers(axes) for block, axes in summands
    ):
        # An entry is masked if it is masked on every path that has it.
        where = _summed(total, (shown(left), left), (shown(right), right), lax.bitwise_or)
        masks = (Mask(where, total.structure.values),)
    left, right = settled(left), settled(right)
    dtype = common_dtype(*[block.values for block in (left, right) if block.values is not None])
    a, b = (of_dtype(block.coefficient(), dtype) for block in (left, right))
    return Part(total.structure, _summed(total, (a, left), (b, right), lax.add), masks=masks, lists=lists)


def shown(block: Part) -> Any:
    """Truth values in the shape of the values of a block: False where a mask hides a value."""
    if not selects(block):
        return np.ones(block.structure.value_shape, bool)
    if block.values.dtype == bool:
        return block.values
    return _together(block.masks, block.structure.values, block.structure.value_shape)


def _summed(
    total: Sum,
    left: tuple[Any, Part],
    right: tuple[Any, Part],
    plus: Callable[[Any, Any], Any],
) -> Any:
    """The values of two blocks, each moved to its place in the sum and combined."""
    if total.beside is not None:
        return _laid_beside(total, *((values, block.structure.values) for values, block in (left, right)))
    placed = [
        value if block.structure.scale is not None and _covers(axes) else place(value, block.structure.values, axes)
        for (value, block), axes in ((left, total.left), (right, total.right))
    ]
    return plus(*_same_shape(*placed))


def recast(block: Part, how: Recast | Refinement | None) -> Part:
    """The same block in another structure."""
    if how is None:
        return block
    lists = _named(how.structure, block.lists)
    if block.values is None and isinstance(how, Refinement):
        return Part(how.structure, None, block.dtype, lists=lists)

    def moved(values: Any) -> Any:
        if isinstance(how, Recast):
            return place(values, block.structure.values, how.axes, block.lists)
        return arranged(*view(values, how.axes, block.lists), how.structure.values)

    masks = (Mask(moved(shown(block)), how.structure.values),) if block.masks else ()
    values = moved(settled(block).values if masks else block.coefficient())
    return Part(how.structure, values, block.dtype, masks, lists)


def seeds(structure: Structure) -> tuple[jax.Array, tuple[int, ...]]:
    """Input tangents that reveal every value of a block: one per index of the labels that only the input has.

    Returns the tangents, stacked along the leading axis, and these labels.
    """
    own = tuple(label for label in labels_of(structure.inp) if label not in labels_of(structure.out))
    axes = tuple((whole(label, structure.sizes[label]),) for label in own) + structure.inp
    tangents = place(np.ones((), np.float32), (), axes)
    return reshaped(tangents, (prod(structure.sizes[n] for n in own), *structure.inp_shape)), own


def read_values(structure: Structure, tangents: jax.Array, own: tuple[int, ...]) -> jax.Array:
    """The values of a block, read from the output tangents that result from `seeds`."""
    axes = tuple((whole(label, structure.sizes[label]),) for label in own) + structure.out
    values, labels = view(reshaped(tangents, [axis_size(axis) for axis in axes]), axes)
    # The block repeats its values along labels that they lack.
    for label in [label for label in labels if label not in structure.values]:
        values = lax.index_in_dim(values, 0, labels.index(label), keepdims=False)
        labels.remove(label)
    return arranged(values, labels, structure.values)


def _laid_beside(total: Sum, left: tuple[Any, tuple], right: tuple[Any, tuple]) -> jax.Array:
    """Two summands that do not overlap along one axis, with zeros between them."""
    axis = total.beside
    assert axis is not None
    pieces = []
    for (values, labels), axes in ((left, total.left), (right, total.right)):
        (digit,) = axes[axis]
        compact = (digit._replace(at=range(len(digit.at)), size=len(digit.at)),)
        pieces.append((digit.at, place(values, labels, (*axes[:axis], compact, *axes[axis + 1 :]))))
    (near_at, near), (far_at, far) = sorted(pieces, key=lambda piece: lowest(piece[0]))
    gap = lowest(far_at) - highest(near_at) - 1
    if _are_columns(near, far, gap, axis):
        return _columns_beside(near, far, axis)
    if gap:
        margins = [(0, gap if n == axis else 0, 0) for n in range(near.ndim)]
        near = lax.pad(near, nothing_like(near), margins)
    return lax.concatenate([near, far], axis)


def _are_columns(near: Any, far: Any, gap: int, axis: int) -> bool:
    """True if two arrays are short along an axis and long otherwise."""
    short = near.shape[axis] + far.shape[axis]
    return not gap and far.shape[axis] == 1 and short <= _MOST_COLUMNS and near.size >= _LONG_COLUMN * short


def _columns_beside(near: Any, far: Any, axis: int) -> Any:
    """Long columns side by side, by choices between broadcast columns.

    XLA turns concatenated columns into one loop in which every entry recomputes everything that its column needs,
    including elementary functions. Broadcast values are computed once.
    """
    count = near.shape[axis]
    shape = tuple(count + 1 if n == axis else size for n, size in enumerate(near.shape))
    where = lax.broadcasted_iota(np.int32, shape, axis) == count
    if count > 1:
        near = lax.pad(near, nothing_like(near), [(0, int(n == axis), 0) for n in range(near.ndim)])
    return lax.select(where, *(jnp.broadcast_to(values, shape) for values in (far, near)))


def _covers(axes: Sequence[Axis]) -> bool:
    """True if a known coefficient fills the whole sum, so that it can be added as a scalar."""
    labels = [d.label for axis in axes for d in axis if d.label is not None]
    return all(len(d.at) == d.size for axis in axes for d in axis) and len(set(labels)) == len(labels)


def _same_shape(a: Any, b: Any) -> tuple[Any, Any]:
    shape = a.shape or b.shape
    return tuple(x if x.shape == shape else lax.broadcast_in_dim(x, shape, ()) for x in (a, b))  # type: ignore[return-value]
