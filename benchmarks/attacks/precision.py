"""Single precision against double precision: results must not be less accurate than JAX's own derivatives."""

from typing import Any

import jax
import numpy as np

from .case import Case
from .law import References, Tolerance, Verdict

POINTS = 2048
ULPS, FACTOR = 16.0, 8.0
# The number of roundings by which the arguments of `References.nudged` differ.
NUDGES = 4.0
# Functions, and the range of powers of ten for their arguments. A leading sign stands for arguments of both signs.
RANGES = {
    "jnp.sin(x)": (-6, 8, True),
    "jnp.cos(x)": (-6, 8, True),
    "jnp.tan(x)": (-6, 6, True),
    "jnp.exp(x)": (-6, 1.9, True),
    "jnp.expm1(x)": (-8, 1.9, True),
    "jnp.exp2(x)": (-6, 2, True),
    "jnp.log(x)": (-37, 38, False),
    "jnp.log1p(x)": (-8, 38, False),
    "jnp.log2(x)": (-30, 30, False),
    "jnp.sqrt(x)": (-36, 36, False),
    "lax.rsqrt(x)": (-12, 12, False),
    "jnp.cbrt(x)": (-20, 20, True),
    "jnp.tanh(x)": (-8, 1, True),
    "jnp.sinh(x)": (-6, 1.9, True),
    "jnp.cosh(x)": (-6, 1.9, True),
    "jnp.arcsin(x)": (-6, -0.001, True),
    "jnp.arccos(x)": (-6, -0.001, True),
    "jnp.arctan(x)": (-8, 15, True),
    "jnp.arcsinh(x)": (-8, 15, True),
    "jnp.arccosh(1 + x)": (-3, 15, False),
    "jnp.arctanh(x)": (-8, -0.001, True),
    "special.erf(x)": (-8, 0.6, True),
    "special.erfc(x)": (-6, 0.8, True),
    "special.erf_inv(x)": (-6, -0.01, True),
    "special.gammaln(x)": (-3, 6, False),
    "special.digamma(x)": (-2, 6, False),
    "jax.nn.sigmoid(x)": (-6, 1.9, True),
    "jax.nn.softplus(x)": (-6, 1.9, True),
    "jax.nn.gelu(x)": (-6, 0.7, True),
    "x ** 2.5": (-10, 10, False),
    "x ** -3": (-6, 6, True),
    "1 / x": (-18, 18, True),
    "x / (1 + x * x)": (-9, 9, True),
    "jnp.arctan2(x, 2.0)": (-6, 15, True),
    "jnp.hypot(x, 3.0)": (-6, 15, True),
    "jnp.logaddexp(x, 1.0)": (-6, 1.9, True),
}
OUTER = ("{z}", "{z}", "jnp.sin({z})", "{z} * x", "1 / (1 + {z} ** 2)", "jnp.exp(-{z} * {z})", "{z} / x")
THEIRS = "jax.vmap(jac(f))(*args)"
WAYS = ('backend="native"', 'backend="auto"', 'backend="xla"')


def attempts(seed: int, number: int) -> list[Case]:
    """One function over its range, by a kernel and by another backend."""
    rng = np.random.default_rng((seed, number, 6))
    inner = list(RANGES)[number % len(RANGES)]
    low, high, signed = RANGES[inner]
    points = 10.0 ** rng.uniform(low, high, POINTS)
    points = np.sort(points * (rng.choice([-1, 1], POINTS) if signed else 1)).astype(np.float32)
    outer = "{z}" if number < len(RANGES) else str(rng.choice(OUTER))
    options = WAYS if number % 4 == 0 else WAYS[:1]
    way = "jax.jit(jax.vmap(jac(f)))(*args)"
    lines = (f"z = {inner}",)
    return [
        Case(("x",), lines, outer.format(z="z"), (points,), way, option, THEIRS, batched=True, judged=accurate)
        for option in options
    ]


def accurate(got: Any, references: References, tolerance: Tolerance) -> Verdict:
    """Whether errors are at most a small factor of JAX's own errors at nearby points, or of one rounding, of the result
    or of the argument."""
    compiled = References(references.forward[:1], references.reverse[:1], references.wide, references.nudged)
    verdict = _compared(got, compiled)
    # In a compiled program, JAX's derivative may avoid a cancellation that it has otherwise.
    return verdict if verdict.problem is None else _compared(got, references)


def _compared(got: Any, references: References) -> Verdict:
    assert references.wide is not None
    exact = np.asarray(references.wide(), float)
    modes = [np.asarray(thunk(), float) for thunk in (*references.forward, *references.reverse)]
    found = np.asarray(got, float)
    if jax.typeof(got).dtype != np.float32:
        return Verdict(0, f"dtype {jax.typeof(got).dtype} instead of float32")
    with np.errstate(all="ignore"):
        own = np.nan_to_num(np.max([np.abs(mode - exact) for mode in modes], axis=0), posinf=0.0)
        if references.nudged is not None:
            # A rounding of an intermediate value may change as much as a rounding of the argument.
            moved = np.abs(np.asarray(references.nudged(), float) - modes[0]) / NUDGES
            own = np.maximum(own, np.nan_to_num(moved, posinf=0.0))
        tiny = np.finfo(np.float32).tiny
        error = np.abs(found - exact)
        wrong = ~(error <= FACTOR * _nearby(own) + ULPS * 2.0**-24 * np.abs(exact) + 4 * tiny)
    # Overflow in single precision and jumps of JAX's own results are not questions of precision.
    wrong &= np.isfinite(exact) & (np.abs(exact) < 1e37) & np.all(np.isfinite(modes), axis=0)
    if not wrong.any():
        return Verdict(found.size)
    worst = int(np.argmax(np.where(wrong, error / np.abs(exact), 0)))
    text = f"{wrong.sum()} of {found.size} entries are inaccurate: {found[worst]:.9g} instead of {exact[worst]:.9g}"
    return Verdict(found.size, f"{text}; jacfwd {modes[0][worst]:.9g}, jacrev {modes[-1][worst]:.9g}", (0, worst))


def _nearby(errors: np.ndarray, reach: int = 16) -> np.ndarray:
    """The largest error among neighbours, because a single error may be small by chance."""
    padded = np.pad(errors, reach)
    return np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1).max(axis=1)
