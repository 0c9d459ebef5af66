"""Jacobian blocks: a structure and the values it speaks of.

Three operations on value arrays carry everything: `_view` reads an array by labels, `_place` is its inverse and
writes labelled values into a larger array of zeros, `_contract` multiplies and sums. None of the first two does
arithmetic, so the multiplications and additions executed are those that `graphax.structure` counts.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import structure as algebra
from .axes import Axis, Digit, axis_size, labels_of, whole
from .structure import Recast, Refinement, Structure


@partial(jax.tree_util.register_dataclass, data_fields=["values"], meta_fields=["structure", "dtype"])
@dataclass(frozen=True, eq=False)
class JacobianBlock:
    """The derivative of one array by another, stored without its structural zeros and repetitions.

    Attributes:
        structure: which entries there are and how they are labelled.
        values: the numbers, one axis a label of ``structure.values``; None if the structure knows its coefficient.
            (Inside graphax, None without a known coefficient means "pattern known, values not computed yet".)
        dtype: the dtype of the Jacobian.
    """

    structure: Structure
    values: Any
    dtype: Any = None

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
        values = _reshaped(values, [n for n in values.shape if n != 1])
        result, old = algebra.canonical(out_axes, inp_axes, sizes, here, None)
        order = [here.index(old[label]) for label in result.values]
        return JacobianBlock(result, _transposed(values, order))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the dense Jacobian: the output's, then the input's."""
        return self.structure.out_shape + self.structure.inp_shape

    @property
    def is_pattern(self) -> bool:
        """True while only the structure is known."""
        return self.values is None and self.structure.scale is None

    def todense(self) -> jax.Array:
        """The Jacobian as an ordinary array of ``shape``."""
        self._check_values()
        dtype = self._dtype()
        if self.structure.scale == 0.0:
            return jnp.zeros(self.shape, dtype)
        return lax.convert_element_type(self._placed(self.structure.out + self.structure.inp), dtype)

    def to_bcoo(self):
        """The Jacobian as a `jax.experimental.sparse.BCOO` matrix with an entry for every stored position."""
        from jax.experimental import sparse

        self._check_values()
        axes, sizes = self.structure.out + self.structure.inp, self.structure.sizes
        if self.structure.scale == 0.0:
            return sparse.BCOO((jnp.zeros(0, self._dtype()), jnp.zeros((0, len(axes)), np.int32)), shape=self.shape)
        grid = np.indices(sizes, sparse=True) if sizes else ()
        indices = np.empty((prod(sizes), len(axes)), np.int32)
        for column, axis in enumerate(axes):
            position = np.zeros((), np.int32)
            for label, at, size in axis:
                position = position * size + (at.start if label is None else at.start + at.step * grid[label])
            indices[:, column] = np.broadcast_to(position, sizes).ravel()
        data = lax.broadcast_in_dim(self._coefficient(), sizes, self.structure.values)
        data = lax.convert_element_type(_reshaped(data, (prod(sizes),)), self._dtype())
        return sparse.BCOO((data, jnp.asarray(indices)), shape=self.shape)

    def apply(self, tangent: jax.Array) -> jax.Array:
        """The Jacobian times a tangent of the input, without making the Jacobian dense."""
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
            _reshaped(tangent, [n for n in tangent.shape if n != 1]),
        )
        product = compose(self, column)
        if product is None or self.structure.scale == 0.0:
            return jnp.zeros(self.structure.out_shape, self._dtype())
        return product.todense()

    def transpose(self) -> "JacobianBlock":
        """The block with output and input exchanged."""
        structure, old = algebra.canonical(
            self.structure.inp, self.structure.out, self.structure.sizes, self.structure.values,
            self.structure.scale, self.structure.renaming,
        )  # fmt: skip
        if self.values is None:
            return JacobianBlock(structure, None, self.dtype)
        order = [self.structure.values.index(old[label]) for label in structure.values]
        return JacobianBlock(structure, _transposed(self.values, order), self.dtype)

    def __repr__(self):
        return f"JacobianBlock({self.structure}, shape={self.shape}, stores={self.structure.stored})"

    def _dtype(self):
        if self.dtype is not None:
            return self.dtype
        return jnp.result_type(float) if self.values is None else self.values.dtype

    def _coefficient(self):
        return self.values if self.structure.scale is None else np.asarray(self.structure.scale, self._dtype())

    def _placed(self, axes: Sequence[Axis]) -> jax.Array:
        return _place(self._coefficient(), self.structure.values, axes)

    def _check_values(self) -> None:
        if self.values is not None and np.shape(self.values) != self.structure.value_shape:
            raise ValueError(
                f"the values have shape {np.shape(self.values)}, but the structure {self.structure} has "
                f"{self.structure.value_shape}. A block that comes out of jax.vmap is a batch of blocks: work on it "
                f"inside jax.vmap, too."
            )


def compose(left: JacobianBlock, right: JacobianBlock) -> JacobianBlock | None:
    """The chain rule: ``left`` after ``right``; None where the product has no entries."""
    product = algebra.compose(left.structure, right.structure)
    if product is None:
        return None
    return JacobianBlock(product.structure, multiply(product, left, right))


def multiply(product: algebra.Product, left: JacobianBlock, right: JacobianBlock) -> Any:
    """The values of a composition that `structure.compose` has worked out."""
    if product.structure.scale is not None or left.is_pattern or right.is_pattern:
        return None
    if product.free:
        left = recast(left, algebra.freed(left.structure, (), product.free))
        right = recast(right, algebra.freed(right.structure, product.free, ()))
    out = product.structure.values
    if product.left is None or product.right is None:
        viewed = (
            _view(left.values, product.left) if product.left is not None else _view(right.values, product.right or ())
        )
        values = _arranged(*_sum_out(*viewed, keep=set(out)), out)
    else:
        values = _contract(_view(left.values, product.left), _view(right.values, product.right), out)
    if product.factor == -1.0:
        return lax.neg(values)
    return values if product.factor == 1.0 else lax.mul(values, _like(values, product.factor))


def add(left: JacobianBlock, right: JacobianBlock) -> JacobianBlock:
    """Two parallel paths as one block."""
    total = algebra.add(left.structure, right.structure)
    return JacobianBlock(total.structure, accumulate(total, left, right))


def accumulate(total: algebra.Sum, left: JacobianBlock, right: JacobianBlock) -> Any:
    """The values of a sum that `structure.add` has worked out."""
    if total.structure.scale is not None or left.is_pattern or right.is_pattern:
        return None
    left, right = recast(left, total.left_first), recast(right, total.right_first)
    dtype = _common_dtype(*[block.values for block in (left, right) if block.values is not None])
    a, b = (lax.convert_element_type(block._coefficient(), dtype) for block in (left, right))
    if total.beside is not None:
        return _laid_beside(total, (a, left.structure.values), (b, right.structure.values))
    placed = [
        value if block.structure.scale is not None and _covers(axes) else _place(value, block.structure.values, axes)
        for value, block, axes in ((a, left, total.left), (b, right, total.right))
    ]
    return lax.add(*_same_shape(*placed))


def recast(block: JacobianBlock, how: Recast | Refinement | None) -> JacobianBlock:
    """The same block under another structure."""
    if how is None:
        return block
    if isinstance(how, Recast):
        return JacobianBlock(how.structure, block._placed(how.axes), block.dtype)
    if block.values is None:
        return JacobianBlock(how.structure, None, block.dtype)
    values, labels = _view(block.values, how.axes)
    return JacobianBlock(how.structure, _arranged(values, labels, how.structure.values), block.dtype)


def seeds(structure: Structure) -> tuple[jax.Array, tuple[int, ...]]:
    """Input tangents that reveal every value of a block: one for each index of the labels only the input has.

    Returns the tangents, stacked along the leading axis, and those labels.
    """
    own = tuple(label for label in labels_of(structure.inp) if label not in labels_of(structure.out))
    axes = tuple((whole(label, structure.sizes[label]),) for label in own) + structure.inp
    tangents = _place(np.ones((), np.float32), (), axes)
    return _reshaped(tangents, (prod(structure.sizes[n] for n in own), *structure.inp_shape)), own


def read_values(structure: Structure, tangents: jax.Array, own: tuple[int, ...]) -> jax.Array:
    """The values of a block from the output tangents that `seeds` gave rise to."""
    axes = tuple((whole(label, structure.sizes[label]),) for label in own) + structure.out
    values, labels = _view(_reshaped(tangents, [axis_size(axis) for axis in axes]), axes)
    return _arranged(values, labels, structure.values)


def _view(values: Any, axes: Sequence[Axis]) -> tuple[Any, list[int]]:
    """Read an array whose axes are ``axes`` by label: cut out windows and points, take diagonals of repeated labels."""
    digits = [digit for axis in axes for digit in axis]
    if len(digits) != len(values.shape):
        values = _reshaped(values, [d.size for d in digits])
    if any(d.at != range(d.size) for d in digits):
        low, high = [min(d.at) for d in digits], [max(d.at) + 1 for d in digits]
        values = lax.slice(values, low, high, [abs(d.at.step) if len(d.at) > 1 else 1 for d in digits])
        values = lax.rev(values, [n for n, d in enumerate(digits) if len(d.at) > 1 and d.at.step < 0])
        values = _reshaped(values, [len(d.at) for d in digits if d.label is not None])
    labels = [d.label for d in digits if d.label is not None]
    while len(set(labels)) < len(labels):
        first = next(n for n, label in enumerate(labels) if label in labels[n + 1 :])
        second = labels.index(labels[first], first + 1)
        rest = [n for n in range(len(labels)) if n not in (first, second)]
        size = values.shape[first]
        values = lax.transpose(values, [*rest, first, second])
        values = _reshaped(values, (*values.shape[:-2], size * size))
        values = values[..., :: size + 1]
        labels = [labels[n] for n in rest] + [labels[first]]
    return values, labels


def _place(values: Any, labels: Sequence[int], axes: Sequence[Axis]) -> jax.Array:
    """Write values with ``labels`` into an array whose axes are ``axes``, zero wherever no label points."""
    digits = [digit for axis in axes for digit in axis]
    first: dict[int | None, int] = {}
    for slot, digit in enumerate(digits):
        first.setdefault(digit.label, slot)
    shape = [len(d.at) for d in digits]
    slots = [first[label] for label in labels]
    order = sorted(range(len(slots)), key=slots.__getitem__)
    values = lax.broadcast_in_dim(_transposed(values, order), shape, [slots[n] for n in order])
    tied = [(first[d.label], slot) for slot, d in enumerate(digits) if d.label is not None and first[d.label] != slot]
    if tied:
        position = partial(lax.broadcasted_iota, np.int32, shape)
        where = [lax.eq(position(dimension=a), position(dimension=b)) for a, b in tied]
        mask = where[0]
        for other in where[1:]:
            mask = lax.bitwise_and(mask, other)
        values = lax.select(mask, values, lax.full_like(values, 0))
    backward = [n for n, d in enumerate(digits) if len(d.at) > 1 and d.at.step < 0]
    if backward:
        values = lax.rev(values, backward)
    if any(len(d.at) < d.size for d in digits):
        margins = [(min(d.at), d.size - 1 - max(d.at), abs(d.at.step) - 1 if len(d.at) > 1 else 0) for d in digits]
        values = lax.pad(values, _like(values, 0), margins)
    target = [axis_size(axis) for axis in axes]
    return _reshaped(values, target)


def _contract(left: tuple[Any, list[int]], right: tuple[Any, list[int]], out: Sequence[int]) -> jax.Array:
    """Multiply two labelled arrays and sum over the labels that ``out`` lacks."""
    kept = set(out)
    a, a_labels = _sum_out(*left, keep=kept | set(right[1]))
    b, b_labels = _sum_out(*right, keep=kept | set(left[1]))
    dtype = _common_dtype(a, b)
    a, b = lax.convert_element_type(a, dtype), lax.convert_element_type(b, dtype)
    shared = [label for label in a_labels if label in b_labels]
    summed = [label for label in shared if label not in kept]
    if not summed:
        sizes = dict(zip(a_labels, a.shape, strict=True)) | dict(zip(b_labels, b.shape, strict=True))
        shape = [sizes[label] for label in out]
        return lax.mul(*(_spread(values, labels, out, shape) for values, labels in ((a, a_labels), (b, b_labels))))
    batch = [label for label in shared if label in kept]
    numbers = tuple(
        ([labels.index(n) for n in summed], [labels.index(n) for n in batch]) for labels in (a_labels, b_labels)
    )
    product = lax.dot_general(a, b, ((numbers[0][0], numbers[1][0]), (numbers[0][1], numbers[1][1])))
    labels = batch + [n for n in a_labels if n not in shared] + [n for n in b_labels if n not in shared]
    return _arranged(product, labels, out)


def _common_dtype(*arrays: Any) -> Any:
    """The dtype of a sum or product, whatever promotion the user allows in their own code."""
    with jax.numpy_dtype_promotion("standard"):
        return jnp.result_type(*arrays or [float])


def _sum_out(values: Any, labels: list[int], keep: set[int]) -> tuple[Any, list[int]]:
    axes = [n for n, label in enumerate(labels) if label not in keep]
    if not axes:
        return values, labels
    return lax.reduce_sum(values, axes), [label for label in labels if label in keep]


def _laid_beside(total: algebra.Sum, left: tuple[Any, tuple], right: tuple[Any, tuple]) -> jax.Array:
    """Two summands that do not overlap along one axis, with zeros between them."""
    axis = total.beside
    assert axis is not None
    pieces = []
    for (values, labels), axes in ((left, total.left), (right, total.right)):
        (digit,) = axes[axis]
        compact = (digit._replace(at=range(len(digit.at)), size=len(digit.at)),)
        pieces.append((digit.at, _place(values, labels, (*axes[:axis], compact, *axes[axis + 1 :]))))
    (near_at, near), (far_at, far) = sorted(pieces, key=lambda piece: piece[0].start)
    gap = far_at[0] - near_at[-1] - 1
    if gap:
        margins = [(0, gap if n == axis else 0, 0) for n in range(near.ndim)]
        near = lax.pad(near, _like(near, 0), margins)
    return lax.concatenate([near, far], axis)


def _covers(axes: Sequence[Axis]) -> bool:
    """True if a known coefficient fills the whole sum, so that it can be added as a scalar."""
    labels = [d.label for axis in axes for d in axis if d.label is not None]
    return all(len(d.at) == d.size for axis in axes for d in axis) and len(set(labels)) == len(labels)


def _same_shape(a: Any, b: Any) -> tuple[Any, Any]:
    shape = a.shape or b.shape
    return tuple(x if x.shape == shape else lax.broadcast_in_dim(x, shape, ()) for x in (a, b))  # type: ignore[return-value]


def _spread(values: Any, labels: list[int], out: Sequence[int], shape: Sequence[int]) -> jax.Array:
    """Values laid out along the labels ``out``, repeated along those they lack."""
    order = sorted(range(len(labels)), key=lambda n: out.index(labels[n]))
    values = _transposed(values, order)
    if values.shape == tuple(shape):
        return values
    return lax.broadcast_in_dim(values, tuple(shape), [out.index(labels[n]) for n in order])


def _arranged(values: Any, labels: Sequence[int], out: Sequence[int]) -> Any:
    return _transposed(values, [list(labels).index(label) for label in out])


def _reshaped(values: Any, shape: Sequence[int]) -> Any:
    return values if np.shape(values) == tuple(shape) else lax.reshape(values, shape)


def _transposed(values: Any, order: Sequence[int]) -> Any:
    return values if list(order) == list(range(len(order))) else lax.transpose(values, order)


def _like(values: Any, number: float) -> np.ndarray:
    return np.asarray(number, values.dtype)
