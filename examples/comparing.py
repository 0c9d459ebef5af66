"""Runs one computation with Jacobians from several sources, and compares times and results."""

import statistics
import time
from functools import partial

import jax
import numpy as np

import graphax as gx
from graphax.table import table


def jacobians(function, argnums, has_aux=False):
    """The Jacobian by elimination and by both of JAX's modes."""
    return {
        "graphax.jacve": gx.jacve(function, argnums=argnums, has_aux=has_aux),
        "jax.jacfwd": jax.jacfwd(function, argnums, has_aux=has_aux),
        "jax.jacrev": jax.jacrev(function, argnums, has_aux=has_aux),
    }


def race(title, solve, ways, *args, repeat=7, tolerance=1e-6):
    """Run ``solve(jacobian, *args)`` with the Jacobians taking turns. Prints a table and returns the first result."""
    compiled = {name: jax.jit(partial(solve, jacobian)) for name, jacobian in ways.items()}
    results = {name: jax.block_until_ready(function(*args)) for name, function in compiled.items()}
    seconds = {name: [] for name in compiled}
    for _ in range(repeat):
        for name, function in compiled.items():
            start = time.perf_counter()
            jax.block_until_ready(function(*args))
            seconds[name].append(time.perf_counter() - start)
    reference = next(iter(results.values()))
    rows = []
    for name, times in seconds.items():
        difference = largest_difference(results[name], reference)
        rows.append([name, f"{1e3 * statistics.median(times):.3g} ms", f"{difference:.1e}"])
        if not difference < tolerance:
            raise SystemExit(f"{name} gives a different result")
    print(table(title, ["Jacobians by", "median time", "largest difference"], rows), flush=True)
    return reference


def largest_difference(one, other):
    """The largest difference, relative to the largest number of each array."""
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return max(float(np.max(np.abs(a - b)) / max(1.0, np.max(np.abs(b)))) for a, b in pairs)
