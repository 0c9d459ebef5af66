"""Rules for windows that slide along axes: convolutions, and sums and choices over windows.

One position within a window, a **tap**, reads a shifted diagonal. So the block of a convolution is a sum of terms, one
per tap of the kernel. Two kinds of axes need no sum: windows that lie side by side are blocks along the diagonal, and
the entries of long windows are listed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import terms
from .axes import Axis, axis_along
from .block import JacobianBlock
from .labelled import like, picked, reshaped
from .positions import Positions, as_array, listed, meet, progression
from .rule import LinearCall, dense_pattern, rules_for
from .simplify import uniform_value

# A long window is listed if at most one in this many entries along its axes can differ from zero.
_LISTED_SHARE = 4


@dataclass(frozen=True)
class Sliding:
    """A window that slides along an axis: tap k of window y reads position ``y * stride + k * dilation - low``.

    Entry n of the input is at position ``n * base``; elsewhere the window reads zeros.
    """

    size: int
    out_size: int
    window: int
    stride: int
    low: int
    base: int
    dilation: int

    @property
    def tiles(self) -> bool:
        """Whether the windows lie side by side and cover the axis."""
        apart = self.out_size == 1 or self.stride == self.window
        plain = self.base == self.dilation == 1 and self.low == 0
        return apart and plain and self.size == self.out_size * self.window

    def met(self, tap: int) -> tuple[Positions, Positions]:
        """The windows in which a tap reads an entry, and the entry that it reads in each."""
        reads = progression(tap * self.dilation - self.low, self.stride, self.out_size)
        return meet(reads, progression(0, self.base, self.size))

    def patches(self, values: Any, axis: int) -> jax.Array:
        """The entries that each window reads, with an axis of windows and an axis of taps in place of ``axis``."""
        shape = (*values.shape[:axis], self.out_size, self.window, *values.shape[axis + 1 :])
        if self.tiles:
            return reshaped(values, shape)
        reads = np.arange(self.out_size)[:, None] * self.stride + np.arange(self.window) * self.dilation - self.low
        entry, between = np.divmod(reads, self.base)
        # Append a zero after the last entry, for positions without an entry.
        entry = np.where((between == 0) & (entry >= 0) & (entry < self.size), entry, self.size)
        values = lax.pad(values, like(values, 0), [(0, int(n == axis), 0) for n in range(values.ndim)])
        return reshaped(_taken(values, entry.ravel(), axis), shape)


class Piece(NamedTuple):
    """Some taps of a window, and how they tie the axes of the output and the input.

    ``taps`` is one tap, an array of taps whose values follow the label ``on``, or None for all taps in turn.
    """

    taps: int | np.ndarray | None
    out: Axis
    inp: Axis
    on: Any = None


def _pieces(slides: Sequence[Sliding], taps: Sequence[Sequence[int]]) -> list[list[Piece]] | None:
    """Per axis, the pieces of its window for the given taps. A term consists of one piece per axis.

    Returns None if there would be too many terms and listing their entries would not save much.
    """
    pieces = [
        [_side_by_side(n, slide)] if slide.tiles else _shifts(n, slide, some)
        for n, (slide, some) in enumerate(zip(slides, taps, strict=True))
    ]
    if prod(map(len, pieces)) <= terms.MOST_TERMS:
        return pieces
    entries = prod(sum(_entries(piece) for piece in some) for some in pieces)
    if entries * _LISTED_SHARE > prod(slide.out_size * slide.size for slide in slides):
        return None
    longest = sorted(range(len(slides)), key=lambda n: len(pieces[n]))
    while prod(map(len, pieces)) > terms.MOST_TERMS:
        n = longest.pop()
        pieces[n] = [_listed(n, slides[n], taps[n])]
    return pieces


def _entries(piece: Piece) -> int:
    """The number of entries of a piece along its axes."""
    return prod({digit.label: len(digit.at) for digit in piece.out + piece.inp}.values())


def _whole(label: Any, size: int) -> Axis:
    return axis_along(label, range(size), size)


def _side_by_side(n: int, slide: Sliding) -> Piece:
    out = _whole(("window", n), slide.out_size)
    return Piece(None, out, out + _whole(("tap", n), slide.window), ("tap", n))


def _shifts(n: int, slide: Sliding, taps: Sequence[int]) -> list[Piece]:
    """One piece per tap that reads an entry in some window."""
    met = [(tap, *slide.met(tap)) for tap in taps]
    return [
        Piece(tap, axis_along(("window", n), i, slide.out_size), axis_along(("window", n), j, slide.size))
        for tap, i, j in met
        if len(i)
    ]


def _listed(n: int, slide: Sliding, taps: Sequence[int]) -> Piece:
    """One piece with all entries of all windows, listed one after another."""
    met = [[as_array(places) for places in slide.met(tap)] for tap in taps]
    out, inp = (listed(np.concatenate(places)) for places in zip(*met, strict=True))
    name, repeated = ("window", n), np.repeat(taps, [len(i) for i, _ in met])
    return Piece(repeated, axis_along(name, out, slide.out_size), axis_along(name, inp, slide.size), name)


def _taken(values: Any, taps: int | np.ndarray | None, axis: int) -> Any:
    """The values at one position of an axis, or at an array of positions. NumPy arrays stay NumPy arrays."""
    if taps is None:
        return values
    if isinstance(values, np.ndarray):
        return np.take(values, taps, axis)
    if np.array_equal(taps, np.arange(values.shape[axis])):
        return values
    if isinstance(taps, int):
        return lax.index_in_dim(values, taps, axis, keepdims=False)
    return jnp.moveaxis(picked(jnp.moveaxis(values, axis, -1), taps), -1, axis)


@rules_for("reduce_window_sum")
def _window_sum(call):
    slides = _window_slides(call, call.shape, call.out_shape)
    pieces = _pieces(slides, [range(slide.window) for slide in slides])
    if pieces is None:
        return call.linked(_untouched(slides))
    return call.sum(call.block([p.out for p in term], [p.inp for p in term]) for term in product(*pieces))


def _window_slides(call: LinearCall, shape: Sequence[int], out_shape: Sequence[int]) -> list[Sliding]:
    """How the windows of a reduction slide along each axis of an array."""
    ones = [1] * len(shape)
    names = "window_dimensions", "window_strides", "padding", "base_dilation", "window_dilation"
    given = zip(shape, out_shape, *(call.params.get(name, ones) for name in names), strict=True)
    return [Sliding(size, out, window, step, low, *rest) for size, out, window, step, (low, _), *rest in given]


def _untouched(slides: Sequence[Sliding]) -> list[tuple[int, int]]:
    """The axes along which the windows have a single entry."""
    return [(n, n) for n, slide in enumerate(slides) if slide.tiles and slide.window == 1]


@rules_for("select_and_gather_add", "select_and_scatter_add")
def _window_choice(call):
    """Windows that take the tangent at their largest or smallest entry, or that add their tangent there."""
    gathers = call.primitive == "select_and_gather_add"
    slides = _window_slides(call, *((call.shape, call.out_shape) if gathers else (call.out_shape, call.shape)))
    pieces = _pieces(slides, [range(slide.window) for slide in slides])
    if pieces is None or call.operands[1] is None:
        return call.linked(_untouched(slides))
    choices = [_Choice(slide, gathers) for slide in slides]
    found = _applied(call, choices)

    def term(windows: Sequence[Piece]) -> JacobianBlock:
        where, on = found, []
        shape: list[int] = []
        for n, piece in enumerate(windows):
            indices = choices[n].indices(piece)
            where = _taken(where, indices.ravel(), n)
            shape += indices.shape
            on += [("window", n)] if piece.taps is not None else [("window", n), ("tap", n)]
        outs, inps = [piece.out for piece in windows], [piece.inp for piece in windows]
        block = call.block(*((outs, inps) if gathers else (inps, outs)), reshaped(where, shape), on)
        return block.mapped(lambda part: replace(part, dtype=call.dtype))

    return call.sum(term(windows) for windows in product(*pieces))


@dataclass(frozen=True)
class _Choice:
    """The tap that each window along an axis chooses, found with tangents of several colours.

    If windows read, the entries of each window differ in colour. If windows write, the windows that reach an entry do.
    So the result of a tangent of one colour tells about one tap of every window.
    """

    slide: Sliding
    gathers: bool

    @property
    def colours(self) -> int:
        return self.slide.window if self.gathers else -(-self.slide.window // self.slide.stride)

    @property
    def seeds(self) -> np.ndarray:
        """The tangents of each colour, as truth values."""
        slide = self.slide
        if self.gathers:
            colour = (np.arange(slide.size) * slide.base + slide.low) // slide.dilation
        else:
            colour = np.arange(slide.out_size)
        return colour % self.colours == np.arange(self.colours)[:, None]

    def indices(self, piece: Piece) -> np.ndarray:
        """The indices among the results of all colours that tell whether windows choose the taps of a piece."""
        slide = self.slide
        if piece.taps is None:
            y, tap = np.indices((slide.out_size, slide.window))
        else:
            at = as_array(piece.out[0].at) if piece.out else np.zeros(1, np.int64)
            y, tap = np.broadcast_arrays(at, piece.taps)
        reads = y * slide.stride + tap * slide.dilation
        if self.gathers:
            return reads // slide.dilation % self.colours * slide.out_size + y
        return y % self.colours * slide.size + (reads - slide.low) // slide.base


def _applied(call: LinearCall, choices: Sequence[_Choice]) -> jax.Array:
    """Apply the primitive to tangents of all colours: which are chosen, along each axis by colour and position."""
    rank, seeds = len(choices), [choice.seeds for choice in choices]
    full = [seed.shape[n] for n in (0, 1) for seed in seeds]
    along = [lax.broadcast_in_dim(s, full, (n, rank + n)) for n, s in enumerate(seeds)]
    tangents = reduce(lax.bitwise_and, along, lax.full(full, True))
    tangents = lax.convert_element_type(reshaped(tangents, (prod(full[:rank]), *call.shape)), call.dtype)
    primitive = getattr(lax, f"{call.primitive}_p")
    results = jax.vmap(lambda tangent: primitive.bind(tangent, call.operands[1], **call.params))(tangents)
    chosen = reshaped(lax.ne(results, lax.full_like(results, 0)), (*full[:rank], *call.out_shape))
    beside = lax.transpose(chosen, [n + half for n in range(rank) for half in (0, rank)])
    return reshaped(beside, [full[n] * size for n, size in enumerate(call.out_shape)])


@rules_for("conv_general_dilated")
def _convolution(call):
    if 0 in call.out_shape:
        return None
    other = call.operands[1 - call.position]
    if call.moving[1 - call.position]:
        return dense_pattern(call)
    return _by_kernel(call, other) if call.position else _by_operand(call, other)


def _by_operand(call: LinearCall, kernel: Any) -> JacobianBlock | None:
    """The block of a convolution with respect to its left operand.

    It has a term per tap, with the kernel values at that tap.
    """
    lhs_spec, rhs_spec, out_spec = call.params["dimension_numbers"]
    slides, (lhs, _, out) = _slides(call), _channels(call)
    groups = call.params["feature_group_count"] * call.params["batch_group_count"]
    pieces = None
    if kernel is not None:
        kernel = (kernel if isinstance(kernel, jax.core.Tracer) else np.asarray(kernel)).transpose(rhs_spec)
        pieces = _pieces(slides, _taps(kernel))

    def axes(windows: Sequence[Piece]) -> tuple[list[Axis], list[Axis]]:
        outs, inps = [piece.out for piece in windows], [piece.inp for piece in windows]
        return _arranged((*out, *outs), out_spec), _arranged((*lhs, *inps), lhs_spec)

    def term(windows: Sequence[Piece]) -> JacobianBlock | None:
        values = kernel
        for n in reversed(range(len(windows))):
            values = _taken(values, windows[n].taps, n + 2)
        number = uniform_value(values)
        if number == 0.0:
            return None
        if number is not None:
            return call.block(*axes(windows), scale=number)
        on = ["group", "feature", "channel", *(piece.on for piece in windows if piece.on is not None)]
        return call.block(*axes(windows), values.reshape(groups, -1, *values.shape[1:]), on)

    if pieces is None:
        ends = [Piece(None, _whole(("out", n), s.out_size), _whole(("inp", n), s.size)) for n, s in enumerate(slides)]
        return call.pattern(*axes(ends))
    return call.sum(term(windows) for windows in product(*pieces))


def _taps(kernel: Any) -> list[Sequence[int]]:
    """Per axis of a kernel, the taps that can differ from zero."""
    axes = range(2, kernel.ndim)
    if not isinstance(kernel, np.ndarray):
        return [range(kernel.shape[axis]) for axis in axes]
    return [np.flatnonzero(kernel.any(tuple(n for n in range(kernel.ndim) if n != axis))).tolist() for axis in axes]


def _by_kernel(call: LinearCall, operand: Any) -> JacobianBlock:
    """The block of a convolution with respect to its kernel: the entries that each tap reads in each window.

    They are the same for all output features.
    """
    lhs_spec, rhs_spec, out_spec = call.params["dimension_numbers"]
    slides, (_, rhs, out) = _slides(call), _channels(call)
    windows = [_whole(("window", n), slide.out_size) for n, slide in enumerate(slides)]
    taps = [_whole(("tap", n), slide.window) for n, slide in enumerate(slides)]
    axes = _arranged((*out, *windows), out_spec), _arranged((*rhs, *taps), rhs_spec)
    if operand is None:
        return call.pattern(*axes)
    values = jnp.asarray(operand).transpose(lhs_spec)
    for n in reversed(range(len(slides))):
        values = slides[n].patches(values, n + 2)
    # Groups are of batches or of features, so one of the two group axes has size one.
    batches, features = call.params["batch_group_count"], call.params["feature_group_count"]
    shape = (batches, values.shape[0] // batches, features, values.shape[1] // features, *values.shape[2:])
    places = [(name, n) for n in range(len(slides)) for name in ("window", "tap")]
    return call.block(*axes, reshaped(values, shape), ["group", "item", "group", "channel", *places])


def _slides(call: LinearCall) -> list[Sliding]:
    """How the kernel of a convolution slides along each of its axes."""
    (lhs, rhs), out, specs = call.shapes, call.out_shape, call.params["dimension_numbers"]
    names = "window_strides", "padding", "lhs_dilation", "rhs_dilation"
    given = zip(*(spec[2:] for spec in specs), *(call.params[name] for name in names), strict=True)
    return [Sliding(lhs[i], out[o], rhs[k], stride, low, base, dilation)
            for i, k, o, stride, (low, _), base, dilation in given]  # fmt: skip


def _channels(call: LinearCall) -> tuple[tuple[Axis, Axis], tuple[Axis, Axis], tuple[Axis, Axis]]:
    """The axes of a convolution that no window slides along, for the operand, the kernel and the result."""
    specs, batch_groups = call.params["dimension_numbers"], call.params["batch_group_count"]
    groups = batch_groups * call.params["feature_group_count"]
    sizes = {
        "group": groups,
        "item": call.out_shape[specs.out_spec[0]],
        "feature": call.out_shape[specs.out_spec[1]] // groups,
        "channel": call.shapes[1][specs.rhs_spec[1]],
    }
    group, item, feature, channel = (_whole(name, size) for name, size in sizes.items())
    operand = (group + item, channel) if batch_groups > 1 else (item, group + channel)
    return operand, (group + feature, channel), (item, group + feature)


def _arranged(axes: Sequence[Axis], spec: Sequence[int]) -> list[Axis]:
    """Axes in the order of an array, where ``spec`` gives the place of each."""
    return [axes[spec.index(n)] for n in range(len(spec))]
