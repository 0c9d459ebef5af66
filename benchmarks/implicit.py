"""A Newton step for a tridiagonal system: its Jacobian, and the solution of a linear system with this Jacobian.

    python benchmarks/implicit.py [--size 1e5] [--dense-size 2000] [--repeat 15]

The system is nonlinear diffusion by the method of lines, with one implicit step in float64. With graphax, the step is
`value_and_jacve(sparse=True)` and `lineax.linear_solve` in one jitted function. With asdex, it is a jitted Jacobian and
then `scipy.sparse.linalg.spsolve`. The dense step, at a smaller size, is `jax.jacfwd` and `jnp.linalg.solve` in one
jitted function. Compared steps take turns.
"""

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import graphax as gx


def residual(new: Any, old: Any) -> Any:
    """The residual of a state as the next state."""
    flux = (1 + new[1:] ** 2 + new[:-1] ** 2) * (new[1:] - new[:-1])
    return new - old - 0.1 * jnp.diff(flux, prepend=0.0, append=0.0)


def by_graphax(old: Any) -> Callable[[], Any]:
    import lineax

    @jax.jit
    def step(old):
        value, jacobian = gx.value_and_jacve(residual, sparse=True)(old, old)
        return old - lineax.linear_solve(jacobian.as_linear_operator(), value).value

    return lambda: jax.block_until_ready(step(old))


def by_asdex(old: Any) -> Callable[[], Any]:
    import asdex
    from scipy.sparse import csr_array
    from scipy.sparse.linalg import spsolve

    value = jax.jit(residual)
    jacobian = jax.jit(asdex.jacobian(lambda new: residual(new, old), old))

    def step():
        matrix = jacobian(old)
        rows, columns = np.asarray(matrix.indices).T
        return old - spsolve(csr_array((np.asarray(matrix.data), (rows, columns))), np.asarray(value(old, old)))

    return step


def by_dense(old: Any) -> Callable[[], Any]:
    @jax.jit
    def step(old):
        return old - jnp.linalg.solve(jax.jacfwd(residual)(old, old), residual(old, old))

    return lambda: jax.block_until_ready(step(old))


def report(size: int, name: str, other: Callable, repeat: int) -> None:
    old = np.random.default_rng(0).random(size)
    ways = {"graphax": by_graphax(old), name: other(old)}
    want, got = (np.asarray(way()) for way in ways.values())
    np.testing.assert_allclose(want, got, rtol=1e-9, atol=1e-9)
    times: dict[str, list[float]] = {key: [] for key in ways}
    for _ in range(repeat):
        for key, way in ways.items():
            start = time.perf_counter()
            way()
            times[key].append(time.perf_counter() - start)
    ours, theirs = (1e3 * float(np.median(found)) for found in times.values())
    print(f"| {size:,} | {ours:.3f} | {name} | {theirs:.3f} | {theirs / ours:.1f} |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=float, default=1e5)
    parser.add_argument("--dense-size", type=float, default=2000)
    parser.add_argument("--repeat", type=int, default=15)
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print("| unknowns | step [ms] | against | step [ms] | ratio |\n|--:|--:|---|--:|--:|")
    report(int(arguments.size), "asdex and scipy", by_asdex, arguments.repeat)
    report(int(arguments.dense_size), "dense", by_dense, arguments.repeat)
    return 0


if __name__ == "__main__":
    sys.exit(main())
