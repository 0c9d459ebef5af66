"""The law that defines when an entry of a Jacobian is right, with `jax.jacfwd` as the oracle.

An entry is right if it is close to that of `jax.jacfwd`, or to a finite entry of `jax.jacrev`. Either may be eager or
compiled, since XLA's own results differ at exact jumps. If neither mode is finite, every value is right, because jacve
leaves out products 0 * infinity. If `jax.jacrev` overflows in single precision but not in double precision, jacve may
overflow as well. Trees, shapes, dtypes and weak types must be those of `jax.jacfwd`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

Thunk = Callable[[], Any]
ROUNDINGS = 16


@dataclass(frozen=True)
class Tolerance:
    """The allowed error of an entry.

    Attributes:
        double, single: relative errors, by the precision of the result.
        pointwise: whether errors are relative to the entry itself instead of the largest one, because entries belong to
            unrelated points.
        slack: the allowed multiple of the difference between JAX's own results; 0 where results may jump.
        weak_types: whether to compare `weak_type`.
        sizes: for each point, the size of the terms that may cancel, in units of one rounding.
    """

    double: float = 1e-9
    single: float = 3e-4
    pointwise: bool = False
    slack: float = 20.0
    weak_types: bool = True
    sizes: np.ndarray | None = None


@dataclass(frozen=True)
class References:
    """JAX's Jacobians, computed when they are needed. Each may raise what JAX raises.

    Attributes:
        forward, reverse: the Jacobians by `jax.jacfwd` and `jax.jacrev`, the cheapest one first.
        wide, wide_reverse: the same in double precision, for functions in single precision.
        nudged: the Jacobian by `jax.jacfwd` at arguments a few roundings away. Differences from it are not errors,
            except at jumps.
    """

    forward: Sequence[Thunk]
    reverse: Sequence[Thunk]
    wide: Thunk | None = None
    nudged: Thunk | None = None
    wide_reverse: Thunk | None = None


@dataclass(frozen=True)
class Verdict:
    """The number of compared numbers, the problem if there is one, and its place: (leaf, flat index)."""

    numbers: int
    problem: str | None = None
    where: tuple[int, int] | None = None


def judge(got: Any, references: References, tolerance: Tolerance) -> Verdict:
    """Judge a tree of arrays. Raises what JAX raises if neither of its modes has a result."""
    oracle = oracle_of(references)
    leaves, wanted = jax.tree.leaves(got), jax.tree.leaves(oracle)
    problem = form_problem(got, oracle, tolerance.weak_types)
    if problem and any(form_problem(got, other, tolerance.weak_types) for other in _results(references.forward)):
        return Verdict(0, problem)
    numbers = sum(int(np.size(leaf)) for leaf in wanted if _is_number(leaf))
    if all(_close(_plain(a), _plain(b), tolerance).all() for a, b in zip(leaves, wanted, strict=True) if _is_number(b)):
        return Verdict(numbers)
    modes = [_results(references.forward), _results(references.reverse)]
    wide, nudged, wide_reverse = (
        (_results([thunk]) or [None])[0] if thunk is not None else None
        for thunk in (references.wide, references.nudged, references.wide_reverse)
    )
    for number, leaf in enumerate(leaves):
        if not _is_number(wanted[number]):
            continue
        column = [[_plain(jax.tree.leaves(tree)[number]) for tree in mode] for mode in modes]
        exact, exact_reverse = (
            None if tree is None else _plain(jax.tree.leaves(tree)[number]) for tree in (wide, wide_reverse)
        )
        moved = [] if nudged is None else [_plain(jax.tree.leaves(nudged)[number])]
        wrong = ~right(_plain(leaf), *column, exact, tolerance, moved, exact_reverse)
        if wrong.any():
            where = int(np.flatnonzero(wrong)[0])
            return Verdict(numbers, _described(_plain(leaf), column, number, where, int(wrong.sum())), (number, where))
    return Verdict(numbers)


def right(
    got: np.ndarray,
    forward: Sequence[np.ndarray],
    reverse: Sequence[np.ndarray],
    wide: np.ndarray | None,
    tolerance: Tolerance,
    nudged: Sequence[np.ndarray] = (),
    wide_reverse: np.ndarray | None = None,
) -> np.ndarray:
    """Which entries of one array are right."""
    slack = _slack([*forward, *reverse], [*([] if wide is None else [wide]), *nudged], tolerance)
    accepted = np.zeros(got.shape, bool)
    for want in forward:
        accepted |= _close(got, want, tolerance, slack) | (~np.isfinite(got) & ~np.isfinite(want))
    for want in reverse:
        accepted |= np.isfinite(want) & _close(got, want, tolerance, slack)
        if wide_reverse is not None:
            accepted |= ~np.isfinite(got) & ~np.isfinite(want) & np.isfinite(wide_reverse)
    if wide is not None and tolerance.slack:
        # A result in single precision that is closer to the truth than JAX's is right.
        accepted |= np.isfinite(wide) & _close(got, wide.astype(got.dtype), tolerance, slack)
    if forward and reverse:
        singular = [np.any([~np.isfinite(want) for want in mode], axis=0) for mode in (forward, reverse)]
        accepted |= singular[0] & singular[1]
    elif forward or reverse:
        accepted |= np.any([~np.isfinite(want) for want in (*forward, *reverse)], axis=0)
    return accepted


def oracle_of(references: References) -> Any:
    """The first available result. `jax.jacfwd` does not support every function, and not all can be compiled."""
    thunks = [*references.forward, *references.reverse]
    for thunk in thunks[:-1]:
        try:
            return thunk()
        except Exception:  # noqa: BLE001  JAX refuses in many ways
            continue
    return thunks[-1]()


def _results(thunks: Sequence[Thunk]) -> list[Any]:
    found = []
    for thunk in thunks:
        try:
            found.append(thunk())
        except Exception:  # noqa: BLE001  a mode that JAX lacks for this function accepts nothing
            continue
    return found


def form_problem(got: Any, want: Any, weak_types: bool) -> str | None:
    """A difference other than in the values, or None."""
    if jax.tree.structure(got) != jax.tree.structure(want):
        return f"tree {jax.tree.structure(got)} instead of {jax.tree.structure(want)}"
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        if np.shape(a) != np.shape(b):
            return f"shape {np.shape(a)} instead of {np.shape(b)}"
        x, y = jax.typeof(a), jax.typeof(b)
        if x.dtype != y.dtype:
            return f"dtype {x.dtype} instead of {y.dtype}"
        if weak_types and getattr(x, "weak_type", False) != getattr(y, "weak_type", False):
            return f"weak_type {x.weak_type} instead of {y.weak_type}"
    return None


def _is_number(leaf: Any) -> bool:
    dtype = jax.typeof(leaf).dtype
    return dtype != jax.dtypes.float0 and not jax.dtypes.issubdtype(dtype, jax.dtypes.extended)


def _plain(leaf: Any) -> np.ndarray:
    array = np.asarray(leaf)
    return array.astype(np.float32) if array.dtype.itemsize == 2 and array.dtype.kind not in "iub" else array


def _relative(dtype: np.dtype, tolerance: Tolerance) -> float:
    return tolerance.double if np.finfo(dtype).eps < 1e-10 else tolerance.single


def _close(got: np.ndarray, want: np.ndarray, tolerance: Tolerance, slack: Any = 0.0) -> np.ndarray:
    if got.dtype.kind not in "fc":
        return got == want
    relative = _relative(got.dtype, tolerance)
    with np.errstate(all="ignore"):
        size = np.abs(want)
        largest = np.max(size, initial=0.0, where=np.isfinite(size))
        # If everything cancels, compare with the size of the arguments, which is about one.
        scale, floor = (size, 1.0) if tolerance.pointwise else (largest, min(1.0, largest or 1.0))
        # A sum that cancels to a millionth of its terms is compared absolutely.
        allowed = relative * scale + 1e-3 * relative * floor + 4 * float(np.finfo(got.dtype).tiny) + slack
        if tolerance.sizes is not None and tolerance.sizes.shape == got.shape:
            allowed = allowed + ROUNDINGS * float(np.finfo(got.dtype).eps) * tolerance.sizes
        near = np.isfinite(got) & np.isfinite(want) & (np.abs(got - want) <= allowed)
        return near | (got == want) | (np.isnan(got) & np.isnan(want))


def _slack(found: Sequence[np.ndarray], others: Sequence[np.ndarray], tolerance: Tolerance) -> Any:
    """The visible part of JAX's own error: the difference of its modes by roundings, and from results nearby."""
    if not tolerance.slack or found[0].dtype.kind not in "fc":
        return 0.0
    first = found[0]
    with np.errstate(all="ignore"):
        scale = np.abs(first) if tolerance.pointwise else np.max(np.abs(first), initial=0.0, where=np.isfinite(first))
        most = scale * (1e-3 if _relative(first.dtype, tolerance) == tolerance.double else 3e-2)
        apart = [np.where(np.abs(want - first) <= most, np.abs(want - first), 0.0) for want in found]
        apart += [np.abs(want - first) for want in others]
        return tolerance.slack * np.max([np.where(np.isfinite(a), a, 0.0) for a in apart], axis=0)


def _described(got: np.ndarray, column: list[list[np.ndarray]], leaf: int, where: int, count: int) -> str:
    index = tuple(int(n) for n in np.unravel_index(where, got.shape))
    values = ["/".join(f"{want.ravel()[where]:.9g}" for want in mode) or "none" for mode in column]
    return (
        f"{count} of {got.size} entries of leaf {leaf} are wrong: {got.ravel()[where]:.9g} at {index}, "
        f"jacfwd {values[0]}, jacrev {values[1]}"
    )
