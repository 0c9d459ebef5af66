"""Entries of small arrays at indices known only at run time: all possible entries, and a choice between them."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from .. import _jax
from ..errors import NativeError
from ..indexing import OUTSIDE, leaves_out, places_of_scatter
from .emit import dtype_of, kind_of
from .known import Known
from .unroll import UNSIGNED, Numbers, Unrolling
from .unroll_rules import rule_of_numbers

# With more entries than this to choose from, XLA reads memory instead.
_MOST_CHOICES = 64
_COMBINED = {
    "scatter-add": "add",
    "scatter-sub": "sub",
    "scatter-mul": "mul",
    "scatter-min": "min",
    "scatter-max": "max",
}


def _places(eqn: Any) -> int:
    return prod(_jax.shape(eqn.outvars[0]))


@rule_of_numbers("gather", "dynamic_slice", "dynamic_update_slice", "scatter", count=_places)
def _indexed(u: Unrolling, eqn: Any, *operands: Numbers) -> Numbers:
    found = u.indexed(eqn, operands)
    if found is not None:
        return found
    match eqn.primitive.name:
        case "gather":
            return _gathered(u, eqn, *operands)
        case "dynamic_slice":
            return _sliced(u, eqn, *operands)
        case "dynamic_update_slice":
            return _updated(u, eqn, *operands)
    return _scattered(u, eqn, *operands)


@rule_of_numbers(*_COMBINED, count=_places)
def _combined(u: Unrolling, eqn: Any, x: Numbers, indices: Numbers, updates: Numbers) -> Numbers:
    """Combine numbers with entries, for example by adding, one after the other."""
    known = Known(u.builder, u.lengths)
    where = known.values(indices)
    if where is None or known.step is not None:
        return _combined_anywhere(u, eqn, x, indices, updates)
    result, operation = x.ravel().copy(), _COMBINED[eqn.primitive.name]
    places = places_of_scatter(eqn, x.shape, where[0], updates.shape)
    for number, place in zip(updates.ravel(), places.ravel(), strict=True):
        if place != OUTSIDE:
            result[place] = u.apply(operation, np.array(result[place]), np.array(number))
    return result.reshape(x.shape)


def _combined_anywhere(u: Unrolling, eqn: Any, x: Numbers, indices: Numbers, updates: Numbers) -> Numbers:
    """Like `_combined`, for run-time indices along one axis: each number is combined wherever it could go.

    A plain scatter replaces entries, and the last of several numbers for one entry stays, as on XLA's CPU.
    """
    numbers, operation = eqn.params["dimension_numbers"], _COMBINED.get(eqn.primitive.name)
    axes = numbers.scatter_dims_to_operand_dims
    if len(axes) != 1 and operation is None:
        raise NativeError("its indices are known only at run time, along several axes")
    if len(axes) != 1 or "CLIP" in str(eqn.params["mode"]).upper():
        raise NativeError("its indices are known only at run time")
    count = x.shape[axes[0]]
    _check_choices(count)
    if updates.size * count > _MOST_CHOICES**2:
        raise NativeError(f"its indices are known only at run time, for {updates.size:,} updates")
    result = x.ravel().copy()
    along = [n for n in range(updates.ndim) if n not in numbers.update_window_dims]
    for start in range(count):
        places = places_of_scatter(eqn, x.shape, np.full(indices.shape, start), updates.shape)
        for at, place in np.ndenumerate(places):
            if place != OUTSIDE:
                here = _equal(u, int(indices[(*(at[n] for n in along), 0)]), start)
                changed = np.array(updates[at])
                if operation is not None:
                    changed = u.apply(operation, np.array(result[place]), changed)
                result[place] = u.builder.apply("select", here, int(changed), int(result[place]))
    return result.reshape(x.shape)


def _gathered(u: Unrolling, eqn: Any, x: Numbers, indices: Numbers) -> Numbers:
    """A gather: for each row of indices, the window that begins there."""
    params, numbers = eqn.params, eqn.params["dimension_numbers"]
    axes, sizes = numbers.start_index_map, params["slice_sizes"]
    rows = indices.reshape(-1, len(axes)).tolist()
    windows = _permuted(u, x, indices, numbers)
    if windows is None:
        parts = [_part(x, numbers, at) for at in np.ndindex(*indices.shape[:-1])]
        windows = [_window(u, part, axes, sizes, row) for part, row in zip(parts, rows, strict=True)]
    if leaves_out(params["mode"]):
        filler = np.nan if params["fill_value"] is None else params["fill_value"]
        nothing = u.constants(filler, _jax.dtype(eqn.outvars[0]))
        limits = [x.shape[axis] - sizes[axis] for axis in axes]
        windows = [u.apply("select", _inside(u, row, limits), window, nothing)
                   for row, window in zip(rows, windows, strict=True)]  # fmt: skip
    kept = [n for n in range(x.ndim) if n not in (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)]
    windows = [window.reshape(tuple(sizes[n] for n in kept)) for window in windows]
    shape = _jax.shape(eqn.outvars[0])
    stacked = np.array(windows, np.int64).reshape((*indices.shape[:-1], *(sizes[n] for n in kept)))
    behind = [n for n in range(len(shape)) if n not in numbers.offset_dims]
    return np.moveaxis(stacked, range(len(shape)), [*behind, *numbers.offset_dims])


def _permuted(u: Unrolling, x: Numbers, indices: Numbers, numbers: Any) -> list[Numbers] | None:
    """The rows of each array of a stack in the order that a factorisation found; None if the indices are others."""
    count = len(numbers.start_indices_batching_dims)
    if len(numbers.start_index_map) > 1 or tuple(numbers.start_indices_batching_dims) != tuple(range(count)):
        return None
    axis, windows = numbers.start_index_map[0], []
    for at in np.ndindex(*indices.shape[:count]):
        permuted = u.factors.permuted(u, np.moveaxis(_part(x, numbers, at), axis, 0), indices[at])
        if permuted is None:
            return None
        windows += [np.moveaxis(row[None], 0, axis) for row in permuted]
    return windows


def _part(x: Numbers, numbers: Any, at: Sequence[int]) -> Numbers:
    """The part of the operand that a row of indices can pick from. Along batching axes this is its own entry."""
    for axis, along in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True):
        x = np.take(x, [at[along]], axis)
    return x


def _sliced(u: Unrolling, eqn: Any, x: Numbers, *starts: Numbers) -> Numbers:
    """A dynamic slice."""
    return _window(u, x, range(x.ndim), eqn.params["slice_sizes"], [int(start.ravel()[0]) for start in starts])


def _updated(u: Unrolling, eqn: Any, x: Numbers, update: Numbers, *starts: Numbers) -> Numbers:
    """A dynamic update of a slice: a choice at each place where it could be."""
    limits = [size - part for size, part in zip(x.shape, update.shape, strict=True)]
    _check_choices(int(np.prod([limit + 1 for limit in limits])))
    at = [_clamped(u, int(start.ravel()[0]), limit) for start, limit in zip(starts, limits, strict=True)]
    result = x.copy()
    for start in np.ndindex(*(limit + 1 for limit in limits)):
        here = _all(
            u, [_equal(u, number, value) for number, value, limit in zip(at, start, limits, strict=True) if limit]
        )
        window = tuple(slice(s, s + n) for s, n in zip(start, update.shape, strict=True))
        result[window] = update if here is None else u.apply("select", np.array(here), update, result[window])
    return result


def _scattered(u: Unrolling, eqn: Any, x: Numbers, indices: Numbers, updates: Numbers) -> Numbers:
    """A scatter of one window: a choice at each place where it could be."""
    numbers = eqn.params["dimension_numbers"]
    axes = numbers.scatter_dims_to_operand_dims
    if indices.size != len(axes):
        return _combined_anywhere(u, eqn, x, indices, updates)
    kept = [n for n in range(x.ndim) if n not in numbers.inserted_window_dims]
    sizes = dict(zip(kept, (updates.shape[n] for n in numbers.update_window_dims), strict=True))
    limits = [x.shape[axis] - sizes.get(axis, 1) for axis in axes]
    _check_choices(prod(limit + 1 for limit in limits))
    at = [int(number) for number in indices.ravel()]
    if not leaves_out(eqn.params["mode"]):
        at = [_clamped(u, number, limit) for number, limit in zip(at, limits, strict=True)]
    result = x.ravel().copy()
    for start in np.ndindex(*(limit + 1 for limit in limits)):
        here = _all(u, [_equal(u, number, value) for number, value in zip(at, start, strict=True)])
        places = places_of_scatter(eqn, x.shape, np.array(start).reshape(indices.shape), updates.shape)
        for number, place in zip(updates.ravel(), places.ravel(), strict=True):
            chosen = u.apply("select", np.array(here), np.array(number), np.array(result[place]))
            result[place] = int(chosen)
    return result.reshape(x.shape)


def _window(u: Unrolling, x: Numbers, axes: Sequence[int], sizes: Sequence[int], starts: Sequence[int]) -> Numbers:
    """The window of given sizes that begins at ``starts`` along ``axes``, moved inside the array if necessary."""
    for axis, start in zip(axes, starts, strict=True):
        limit = x.shape[axis] - sizes[axis]
        _check_choices(limit + 1)
        at = _clamped(u, int(start), limit)
        parts = [np.take(x, range(s, s + sizes[axis]), axis) for s in range(limit + 1)]
        chosen = parts[-1]
        for value in range(limit - 1, -1, -1):
            chosen = u.apply("select", np.array(_equal(u, at, value)), parts[value], chosen)
        x = chosen
    return x[tuple(slice(0, size) for size in sizes)]


def _check_choices(count: int) -> None:
    if count > _MOST_CHOICES:
        raise NativeError(f"its indices are known only at run time, and choose among {count:,} places")


def _dtype(u: Unrolling, number: int) -> Any:
    return dtype_of(u.builder.statements[number].kind)


def _clamped(u: Unrolling, number: int, limit: int) -> int:
    if u.builder.statements[number].kind in UNSIGNED:
        number = u.builder.convert(number, np.int64)
    low, high = (u.builder.constant(value, _dtype(u, number)) for value in (0, limit))
    return u.builder.apply("min", u.builder.apply("max", number, low), high)


def _equal(u: Unrolling, number: int, value: int) -> int:
    return u.builder.apply("eq", number, u.builder.constant(value, _dtype(u, number)))


def _all(u: Unrolling, flags: Sequence[int]) -> int | None:
    result = None
    for flag in flags:
        result = flag if result is None else u.builder.apply("and", result, flag)
    return result


def _inside(u: Unrolling, row: Sequence[int], limits: Sequence[int]) -> Numbers:
    flags = []
    for number, limit in zip(row, limits, strict=True):
        low, high = (u.builder.constant(value, _dtype(u, int(number))) for value in (0, limit))
        flags += [u.builder.apply("ge", int(number), low), u.builder.apply("le", int(number), high)]
    return np.array(_all(u, flags))


@rule_of_numbers("sort", count=lambda eqn: _jax.shape(eqn.invars[0])[eqn.params["dimension"]] * _places(eqn))
def _sort(u: Unrolling, eqn: Any, *operands: Numbers) -> list[Numbers]:
    """Sort by exchanging neighbours, which is stable. NaN comes last."""
    axis = eqn.params["dimension"]
    columns = [list(np.moveaxis(operand, axis, 0)) for operand in operands]
    kinds = [kind_of(_jax.dtype(atom)) for atom in eqn.invars[: eqn.params["num_keys"]]]
    before = [_before(u, kind in ("f32", "f64")) for kind in kinds]
    for end in range(len(columns[0]) - 1, 0, -1):
        for n in range(end):
            _exchange(u, columns, n, _later(u, columns, n, before))
    results = [np.array(column, np.int64).reshape(len(column), *column[0].shape) for column in columns]
    _note_inverses(u, [np.moveaxis(operand, axis, 0) for operand in operands], results)
    return [np.moveaxis(result, 0, axis) for result in results]


def _later(u: Unrolling, columns: Sequence[list[Numbers]], n: int, before: Sequence[Callable]) -> Numbers:
    """Whether entry n belongs after its successor: by the first key, or by the next one where keys are equal."""
    later = None
    for column, is_before in reversed(list(zip(columns, before, strict=False))):
        first, second = column[n], column[n + 1]
        now = is_before(second, first)
        if later is not None:
            now = u.apply("or", now, u.apply("and", later, u.apply("not", is_before(first, second))))
        later = now
    assert later is not None, "a sort has a key"
    return later


def _exchange(u: Unrolling, columns: Sequence[list[Numbers]], n: int, where: Numbers) -> None:
    """Exchange entry n of all columns with its successor where a condition holds."""
    for column in columns:
        first, second = column[n], column[n + 1]
        column[n] = u.apply("select", where, second, first)
        column[n + 1] = u.apply("select", where, first, second)


@rule_of_numbers("top_k", count=lambda eqn: _jax.shape(eqn.invars[0])[eqn.params["axis"]] * _places(eqn))
def _top_k(u: Unrolling, eqn: Any, x: Numbers) -> list[Numbers]:
    """The largest entries, found one after the other by exchanging neighbours."""
    axis, count = eqn.params["axis"], eqn.params["k"]
    rows = np.moveaxis(x, axis, 0)
    numbers = u.constants(np.arange(len(rows)), _jax.dtype(eqn.outvars[1])).reshape(-1, *[1] * (x.ndim - 1))
    keys = _keys(u, rows, kind_of(_jax.dtype(eqn.invars[0])))
    columns = [list(keys), list(rows), list(np.broadcast_to(numbers, rows.shape))]
    for start in range(count):
        for n in range(len(rows) - 2, start - 1, -1):
            _exchange(u, columns, n, u.apply("lt", columns[0][n], columns[0][n + 1]))
    shape = (count, *rows.shape[1:])
    return [np.moveaxis(np.array(column[:count], np.int64).reshape(shape), 0, axis) for column in columns[1:]]


def _keys(u: Unrolling, x: Numbers, kind: str | None) -> Numbers:
    """Whole numbers in the total order of floating-point numbers: NaN at both ends, by sign, and -0 before 0."""
    if kind not in ("f32", "f64"):
        return x
    whole = np.int32 if kind == "f32" else np.int64
    bits = u.elements(lambda n: u.builder.bitcast(n, whole), x)
    last, rest = (u.constants(value, whole) for value in (8 * np.dtype(whole).itemsize - 1, np.iinfo(whole).max))
    # The bits of negative numbers are in reverse order, apart from the sign.
    return u.apply("xor", bits, u.apply("and", u.apply("shift_right_arithmetic", bits, last), rest))


def _note_inverses(u: Unrolling, operands: Sequence[Numbers], results: Sequence[Numbers]) -> None:
    """Record inverses: a permutation that is sorted together with the numbers of its places gives its inverse."""
    places = u.constants(np.arange(len(operands[0])), np.int32)
    for at in np.ndindex(*operands[0].shape[1:]):
        column = (slice(None), *at)
        if len(operands) == 2 and np.array_equal(operands[1][column], places):
            u.factors.note_inverse(operands[0][column], results[1][column])


def _before(u: Unrolling, floating: bool) -> Callable[[Numbers, Numbers], Numbers]:
    def before(a: Numbers, b: Numbers) -> Numbers:
        if not floating:
            return u.apply("lt", a, b)
        alone = u.apply("and", u.apply("ne", b, b), u.apply("eq", a, a))
        return u.apply("or", u.apply("lt", a, b), alone)

    return before
