"""Compare jacve with JAX on JAX's own primitive test cases, and print how many agree.

    python benchmarks/primitive_harness.py [--group NAME] [--every N] [--verbose]

For every case that `jax.jacfwd` or `jax.jacrev` differentiates with respect to its float inputs (up to 150 input and
600 output elements), `jacve` must give the same values, shapes and tree structure.
"""

import argparse
import sys
import time
import traceback
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np

import graphax as gx

# At a singular point, JAX adds up 0 * infinity = NaN from tangents that are zero. jacve does not compute these
# products. Such cases are reported, but do not count as agreement: jacve must then equal JAX's derivative with respect
# to each argument alone, or have a zero where that derivative is still NaN.
ZERO_TIMES_INFINITY = "JAX has NaN from 0 * infinity at a singular point"

MAX_INPUTS, MAX_OUTPUTS = 150, 600


def harnesses():
    from jax._src.internal_test_util import test_harnesses

    return list(test_harnesses.all_harnesses)


def case_of(harness):
    """(function of its float arguments, those arguments), or None if the case is out of scope."""
    try:
        args = harness.dyn_args_maker(np.random.RandomState(0))
    except Exception:  # noqa: BLE001  any exception is out of scope, or a failure to report
        return None
    floats = [n for n, arg in enumerate(args) if _is_float(arg)]
    if not floats or sum(np.size(args[n]) for n in floats) > MAX_INPUTS:
        return None
    return harness.dyn_fun, args, tuple(floats)


def _is_float(arg):
    return (
        hasattr(arg, "dtype") and jax.dtypes.issubdtype(arg.dtype, np.floating) and not isinstance(arg, jax.core.Tracer)
    )


def reference(function, args, floats):
    """JAX's Jacobian by forward mode, or else by reverse mode; None if JAX has neither."""
    try:
        outputs = jax.eval_shape(function, *args)
    except Exception:  # noqa: BLE001  any exception is out of scope, or a failure to report
        return None
    if sum(np.prod(leaf.shape) for leaf in jax.tree.leaves(outputs)) > MAX_OUTPUTS:
        return None
    for mode in (jax.jacfwd, jax.jacrev):
        try:
            return mode(function, argnums=floats)(*args)
        except Exception:  # noqa: BLE001  any exception is out of scope, or a failure to report
            continue
    return None


def differs(got, want, zero_for_nan=False):
    """What is wrong with a Jacobian, or None."""
    if jax.tree.structure(got) != jax.tree.structure(want):
        return f"tree {jax.tree.structure(got)} instead of {jax.tree.structure(want)}"
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        if a.shape != b.shape:
            return f"shape {a.shape} instead of {b.shape}"
        if a.dtype == jax.dtypes.float0 or b.dtype == jax.dtypes.float0:
            continue
        eps = float(jnp.finfo(a.dtype).eps) if jnp.issubdtype(a.dtype, jnp.inexact) else 0.0
        wide = np.complex128 if jnp.iscomplexobj(a) else np.float64
        x, y = np.asarray(a).astype(wide), np.asarray(b).astype(wide)
        if zero_for_nan:
            y = np.where(np.isnan(y) & (x == 0), 0, y)
        finite = np.abs(y[np.isfinite(y)])
        scale = float(finite.max()) if finite.size else 1.0
        if not np.allclose(x, y, rtol=300 * eps, atol=100 * eps * max(scale, 1e-30), equal_nan=True):
            return f"values differ by {np.nanmax(np.abs(x - y))} (scale {scale})"
    return None


def check(harness):
    """(outcome, detail) for one case; outcome is "agrees", "zero for NaN", "differs", "fails" or "out of scope"."""
    case = case_of(harness)
    want = None if case is None else reference(*case)
    if case is None or want is None:
        return "out of scope", ""
    function, args, floats = case
    try:
        got = gx.jacve(function, argnums=floats)(*args)
    except Exception:  # noqa: BLE001  any exception is out of scope, or a failure to report
        return "fails", traceback.format_exc()
    problem = differs(got, want)
    if problem and any(
        np.isnan(leaf).any() for leaf in jax.tree.leaves(want) if jnp.isdtype(leaf.dtype, "real floating")
    ):
        alone = [reference(function, args, (n,)) for n in floats]
        parts = [gx.jacve(function, argnums=(n,))(*args) for n in floats]
        if not any(differs(a, b, zero_for_nan=True) for a, b in zip(parts, alone, strict=True)):
            return "zero for NaN", ZERO_TIMES_INFINITY
    return ("agrees", "") if problem is None else ("differs", problem)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--group", help="only this group of primitives")
    parser.add_argument("--every", type=int, default=1, help="only every N-th case")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--verbose", action="store_true", help="print the traceback of failures")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    cases = [h for h in harnesses() if options.group in (None, h.group_name)][options.first :: options.every]
    counts, groups, start = Counter(), set(), time.monotonic()
    for number, harness in enumerate(cases):
        outcome, detail = check(harness)
        counts[outcome] += 1
        if outcome == "agrees":
            groups.add(harness.group_name)
        if outcome in ("differs", "fails", "zero for NaN"):
            print(f"{outcome}: {harness.fullname}: {detail if options.verbose else detail.strip().splitlines()[-1]}")
        if number % 100 == 99:
            print(f"... {number + 1} of {len(cases)}, {time.monotonic() - start:.0f} s", file=sys.stderr)
    scope = len(cases) - counts["out of scope"]
    print(
        f"{counts['agrees']} of {scope} cases in {len(groups)} groups agree with JAX {jax.__version__} "
        f"({counts['zero for NaN']} have zeros for JAX's NaN at singular points, {counts['differs']} differ, "
        f"{counts['fails']} fail; {counts['out of scope']} out of scope; "
        f"{time.monotonic() - start:.0f} s)"
    )
    return 1 if counts["differs"] or counts["fails"] else 0


if __name__ == "__main__":
    sys.exit(main())
