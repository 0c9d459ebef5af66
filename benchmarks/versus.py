"""One derivative by JAX's modes and by graphax: first calls, times of alternating calls, and whether the numbers agree.

`cutest.py` and `middle.py` share this.
"""

import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

ROUNDS = 15
SECONDS_A_TURN = 0.002
MOST_SECONDS, VERY_LONG = 6.0, 5.0
OURS = "graphax"


@dataclass(frozen=True)
class Comparison:
    """The measurements of one derivative, in seconds.

    Attributes:
        first: the first call of each way: tracing, compiling and running once.
        times: the median call of each way.
        error: the largest error against JAX's modes, relative to the largest entry of an array.
        wrong: what is wrong with the numbers, or empty.
        calls, results: the compiled call of each way, and what it returned first.
    """

    first: Mapping[str, float]
    times: Mapping[str, float]
    error: float
    wrong: str
    calls: Mapping[str, Callable[[], Any]]
    results: Mapping[str, Any]

    @property
    def better(self) -> str:
        """The faster of JAX's modes."""
        return min((name for name in self.times if name != OURS), key=self.times.__getitem__)

    @property
    def ratio(self) -> float:
        """How many times as fast as the better of JAX's modes ours is."""
        return self.times[self.better] / self.times[OURS]

    @property
    def first_ratio(self) -> float:
        """How many times as long our first call takes as that of the better of JAX's modes."""
        return self.first[OURS] / self.first[self.better]

    def as_dict(self) -> dict[str, Any]:
        names = ("first", "times", "error", "wrong", "ratio", "first_ratio")
        return {name: getattr(self, name) for name in names}

    def timed_again(self, note: Callable[[str], None] | None = None, rounds: int = ROUNDS) -> "Comparison":
        return replace(self, times=in_turns(self.calls, rounds, note=note))


def first_call(function: Callable, args: Sequence[Any]) -> tuple[float, Any, Any]:
    """The seconds of the first call of a function, the compiled function, and its results."""
    start = time.perf_counter()
    compiled = jax.jit(function)
    results = jax.block_until_ready(compiled(*args))
    return time.perf_counter() - start, compiled, results


def in_a_loop(function: Callable, count: int, together: int = 1) -> Callable:
    """A program that makes ``count`` calls one after another, as a solver does, and returns the last results.

    Each step of its loop makes ``together`` calls. On a GPU, a step alone takes 10 µs. Each call depends on the one
    before it, and all results are kept. Otherwise XLA would leave out all but the last call of a step.
    """

    def repeated(*args: Any) -> Any:
        def step(_: int, state: tuple[Any, Any]) -> tuple[Any, Any]:
            args, results = state[0], []
            for _ in range(together):
                results.append(function(*args))
                args = _after(results[-1], args)
            return args, results

        empty = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(function, *args))
        return jax.lax.fori_loop(0, count // together, step, (args, [empty] * together))[1][-1]

    return repeated


def _after(result: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same arguments, which XLA takes for ones that depend on a result."""
    number = jax.tree.leaves(result)[0].ravel()[0]
    return args[0] + 0 * number.astype(args[0].dtype), *args[1:]


def _seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    jax.block_until_ready(call())
    return time.perf_counter() - start


def in_turns(
    calls: Mapping[str, Callable[[], Any]],
    rounds: int = ROUNDS,
    seconds: float = MOST_SECONDS,
    note: Callable[[str], None] | None = None,
) -> dict[str, float]:
    """The median seconds of each call. Short calls are repeated within a turn, in rounds of random order.

    ``note`` is called with the name of each call. There are at least three rounds, or one if calls are very long.
    """
    rng = np.random.default_rng(0)
    often = {}
    for name, call in calls.items():
        if note:
            note(name)
        # The first of these calls waits until the results of another way are freed.
        taken = [_seconds(call) for _ in range(2)]
        often[name] = max(1, int(SECONDS_A_TURN / min(taken)))
    found: dict[str, list[float]] = {name: [] for name in calls}
    begin = time.perf_counter()
    for done in range(rounds):
        if time.perf_counter() - begin > (seconds if done >= 3 else VERY_LONG * seconds):
            break
        for name in rng.permutation(list(calls)):
            if note and often[name] == 1:
                note(name)
            # This way should not pay for caches that another way has filled, or for memory that it frees late.
            result = calls[name]() if often[name] > 1 else None
            jax.block_until_ready(result)
            start = time.perf_counter()
            for _ in range(often[name]):
                result = calls[name]()
            jax.block_until_ready(result)
            found[name].append((time.perf_counter() - start) / often[name])
            del result
    return {name: float(np.median(times)) for name, times in found.items()}


def compare(
    ways: Mapping[str, Callable],
    args: Sequence[Any],
    tolerance: float,
    rounds: int = ROUNDS,
    note: Callable[[str], None] | None = None,
) -> Comparison:
    """Measure JAX's ways and ours, which is called `OURS`. If JAX fails in one of its ways, the others count.

    ``note`` is called with the name of each way, so that callers can stop ways that take too long.
    """
    return prepare(ways, args, tolerance, note).timed_again(note, rounds)


def prepare(
    ways: Mapping[str, Callable],
    args: Sequence[Any],
    tolerance: float,
    note: Callable[[str], None] | None = None,
) -> Comparison:
    """Like `compare`, but without the times."""
    first, compiled, results = {}, {}, {}
    for name, way in ways.items():
        if note:
            note(name)
        try:
            first[name], compiled[name], results[name] = first_call(way, args)
        except Exception:
            if name == OURS or (name == list(ways)[-2] and not compiled):
                raise
    error, wrong = disagreement(results, tolerance)
    if wrong:
        error, wrong = disagreement(results, tolerance, rounding(ways, results, args))
    calls = {name: lambda f=f: f(*args) for name, f in compiled.items()}
    return Comparison(first, {}, error, wrong, calls, results)


def rounding(ways: Mapping[str, Callable], results: Mapping[str, Any], args: Sequence[Any]) -> list[np.ndarray]:
    """The difference between JAX's compiled and uncompiled results, for each entry of each array.

    It is the largest difference of JAX's modes, relative to the largest entry of the array. Where numbers cancel, both
    results are as good as float64 allows, so other results cannot be expected to be better.
    """
    modes = []
    for name, result in results.items():
        if name != OURS:
            leaves = zip(jax.tree.leaves(result), jax.tree.leaves(ways[name](*args)), strict=True)
            modes.append([_errors(np.asarray(apart), [np.asarray(compiled)])[0] for compiled, apart in leaves])
    return [np.fmax.reduce(errors) for errors in zip(*modes, strict=True)]


def forget() -> None:
    """Clear all caches of traced and compiled functions, so that first calls can be measured again.

    Kernels on disk are hidden as well. JAX keeps no compiled functions on disk by default.
    """
    jax.clear_caches()
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == OURS:
            for value in list(vars(module).values()):
                if callable(getattr(value, "cache_clear", None)):
                    value.cache_clear()
    gc.collect()
    os.environ["GRAPHAX_CACHE"] = tempfile.mkdtemp(dir=_kernel_folder())


@cache
def _kernel_folder() -> str:
    """The original folder for kernels of this process."""
    return os.environ.get("GRAPHAX_CACHE") or tempfile.mkdtemp()


def mean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return float(np.exp(np.mean(np.log(values)))) if len(values) else float("nan")


def disagreement(results: Mapping[str, Any], tolerance: float, allowed: Sequence[np.ndarray] = ()) -> tuple[float, str]:
    """Our largest error against the nearer of JAX's modes, and what is wrong, if anything.

    NaN is right where all of JAX's modes have NaN, and allowed where one of them has. ``allowed`` holds a limit for
    each entry of each array, which replaces the tolerance if it is larger.
    """
    worst, wrong = 0.0, ""
    theirs = [jax.tree.leaves(result) for name, result in results.items() if name != OURS]
    for number, got in enumerate(map(np.asarray, jax.tree.leaves(results[OURS]))):
        wanted = [np.asarray(leaves[number]) for leaves in theirs]
        if any(got.shape != want.shape or got.dtype != want.dtype for want in wanted):
            return float("inf"), f"array {number} has shape {got.shape} and dtype {got.dtype}"
        errors, unlike = _errors(got, wanted)
        worst = max(worst, float(np.max(errors, initial=0.0)))
        limit = np.fmax(tolerance, allowed[number]) if allowed else tolerance
        if not wrong and (unlike | (errors > limit)).any():
            place = np.argwhere(unlike | (errors > limit))[0].tolist()
            seen = [float(want[tuple(place)]) for want in wanted]
            wrong = f"array {number} at {place}: {float(got[tuple(place)])}, JAX {seen}"
            wrong += "" if unlike[tuple(place)] else f", an error of {errors[tuple(place)]:.1e}"
    return worst, wrong


def _errors(got: np.ndarray, wanted: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Per entry, the error against the nearest of several arrays, relative to their largest entry.

    Also returns where an array has NaN or an infinity that it should not have, or lacks one. The error is 0 there.
    """
    scale = max((float(np.max(np.abs(w[np.isfinite(w)]), initial=0.0)) for w in wanted), default=0.0) or 1.0
    with np.errstate(invalid="ignore"):
        errors = [np.where(got == want, 0.0, np.abs(got - want) / scale) for want in wanted]
    errors = [np.where(np.isnan(got) & np.isnan(want), 0.0, e) for e, want in zip(errors, wanted, strict=True)]
    least = np.fmin.reduce(errors)
    unlike = np.isnan(least) | (np.isnan(got) & ~np.any([np.isnan(w) for w in wanted], axis=0))
    return np.where(unlike, 0.0, least), unlike
