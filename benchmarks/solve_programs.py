"""Compare random programs with small linear systems, as kernels and through `jacve`, with JAX.

    python benchmarks/solve_programs.py [--programs 2000] [--seed 0]

The programs contain solves with one and several right-hand sides, inverses, determinants, factors (LU, Cholesky, QR),
triangular, tridiagonal and definite systems, and exponentials, in stacks, under inner `jax.vmap`, in loops and in
branches. Each is mapped over points as a kernel that must not fall back to XLA, and compared with the same program
under `jax.vmap`: values, `jacfwd` or `jacrev` in the kernel, `jacve` inside and outside of it, under two maps, and for
every fourth program second derivatives. One in four programs is in float32. Results may differ as much as JAX's own
results do when the arguments change in their last digits.
"""

import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jax import lax
from many_programs import check_many

import graphax as gx

Function = Callable[..., Any]
POINTS = 6


def random_program(seed: int) -> tuple[Function, tuple[np.ndarray, ...]]:
    """A function of a matrix and a vector, and points for it."""
    rng = np.random.default_rng(seed)
    size, salt = int(rng.choice((1, 2, 2, 3, 3, 4))), int(rng.integers(1 << 31))
    dtype = np.float32 if seed % 4 == 3 else np.float64
    points = (rng.normal(size=(POINTS, size, size)).astype(dtype), rng.normal(size=(POINTS, size)).astype(dtype))
    return lambda a, b: _program(np.random.default_rng(salt), a, b), points


def _program(rng: np.random.Generator, a: Any, b: Any) -> Any:
    matrices, vectors = [a], [b]
    for _ in range(int(rng.integers(1, 4))):
        matrix, vector = (pool[int(rng.integers(len(pool)))] for pool in (matrices, vectors))
        if rng.random() < 0.3:
            matrices.append(_matrix(rng, matrix))
        else:
            vectors.append(jnp.tanh(_vector(rng, matrix, vector)))
    return jnp.sin(vectors[-1]) + jnp.sum(matrices[-1]) * 0.1


def _pick(rng: np.random.Generator, *choices: Function) -> Any:
    return choices[int(rng.integers(len(choices)))]()


def _regular(rng: np.random.Generator, matrix: Any) -> Any:
    """A matrix that is not close to singular, with pivots anywhere."""
    size = len(matrix)
    return jnp.tanh(matrix) / size + 1.5 * np.eye(size, dtype=matrix.dtype)[rng.permutation(size)]


def _definite(matrix: Any) -> Any:
    bounded = jnp.tanh(matrix)
    return bounded @ bounded.T + 0.5 * jnp.eye(len(matrix), dtype=matrix.dtype)


def _matrix(rng: np.random.Generator, matrix: Any) -> Any:
    regular, definite = _regular(rng, matrix), _definite(matrix)
    return _pick(
        rng,
        lambda: jnp.linalg.inv(regular),
        lambda: jnp.linalg.cholesky(definite),
        lambda: jnp.linalg.qr(regular)[int(rng.integers(2))],
        # Larger systems take many thousands of statements, and their derivatives even more.
        lambda: jsl.expm(0.3 * regular) if len(matrix) < 3 else jnp.linalg.inv(definite),
        lambda: jsl.lu(regular)[int(rng.integers(1, 3))],
        lambda: jnp.linalg.solve(regular, matrix.T),
        lambda: jsl.solve_triangular(regular @ regular.T + 2 * jnp.eye(len(matrix), dtype=matrix.dtype), matrix),
        lambda: jnp.linalg.matrix_power(regular, -2),
    )


def _vector(rng: np.random.Generator, matrix: Any, vector: Any) -> Any:
    regular, definite = _regular(rng, matrix), _definite(matrix)
    lower, trans, unit = (bool(flag) for flag in rng.integers(0, 2, 3))
    triangular = jnp.tanh(matrix) + 2 * jnp.eye(len(matrix), dtype=matrix.dtype)
    return _pick(
        rng,
        lambda: jnp.linalg.solve(regular, vector),
        lambda: jnp.linalg.solve(regular.T, vector) - vector,
        lambda: jnp.linalg.solve(regular, jnp.stack([vector, vector**2, -vector], 1)).sum(1),
        lambda: jnp.linalg.solve(jnp.stack([regular, definite]), jnp.stack([vector, vector])[..., None])[..., 0].sum(0),
        lambda: jax.vmap(lambda v: jnp.linalg.solve(regular, v))(jnp.stack([vector, 2 * vector]))[0],
        lambda: jax.vmap(lambda s: jnp.linalg.solve(regular + s * definite * 0.1, vector))(vector)[0],
        lambda: vector * jnp.linalg.det(regular) + jnp.linalg.slogdet(definite)[1],
        lambda: vector * jnp.linalg.slogdet(regular)[0],
        lambda: jsl.cho_solve(jsl.cho_factor(definite, lower=lower), vector),
        lambda: jsl.solve(definite, vector, assume_a="pos"),
        lambda: jsl.solve_triangular(triangular, vector, lower=lower, trans=int(trans), unit_diagonal=unit),
        lambda: jsl.lu_solve(jsl.lu_factor(regular), vector, trans=int(trans)),
        lambda: lax.linalg.tridiagonal_solve(vector, vector**2 + 2, jnp.flip(vector), matrix)[:, 0],
        lambda: lax.fori_loop(0, 3, lambda _, v: jnp.tanh(jnp.linalg.solve(regular, v)), vector),
        lambda: lax.cond(vector[0] > 0, lambda v: jnp.linalg.solve(regular, v), lambda v: definite @ v, vector),
        lambda: _newton(regular, vector),
    )


def _newton(matrix: Any, start: Any) -> Any:
    """Some steps of Newton's method, with a Jacobian by `jacve`."""
    evaluate = gx.value_and_jacve(lambda x: matrix @ x + 0.1 * jnp.sin(x) - 1)

    def step(x, _):
        value, jacobian = evaluate(x)
        return x - jnp.linalg.solve(jacobian, value), None

    return lax.scan(step, start, None, length=3)[0]


def ways(function: Function, derivative: Function, twice: bool) -> tuple[Function, dict[str, Function]]:
    """The results of JAX for a program at all points, and our results that should equal them."""
    second = jax.jacfwd(jax.grad(lambda a, b: jnp.sum(function(a, b)), 1), 1)

    def plain(a: Any, b: Any) -> list[Any]:
        return [function(a, b), *derivative(function, (0, 1))(a, b), *([second(a, b)] if twice else [])]

    def ours(a: Any, b: Any) -> list[Any]:
        value, blocks = gx.value_and_jacve(function, (0, 1))(a, b)
        return [value, *blocks, *([gx.hessve(lambda v: jnp.sum(function(a, v)))(b)] if twice else [])]

    def kernel(f: Function) -> Function:
        return jax.vmap(gx.kernel(f, backend="native"))

    return jax.vmap(plain), {
        "kernel": kernel(plain),
        "jacve": jax.vmap(ours),
        "jacve in a kernel": kernel(ours),
        "kernel, mapped twice": lambda *args: jax.tree.map(
            lambda x: x.reshape(POINTS, *x.shape[2:]),
            jax.vmap(kernel(plain))(*(x.reshape(2, -1, *x.shape[1:]) for x in args)),
        ),
    }


def check(seed: int) -> None:
    """Compare one program; raises an `AssertionError` that says what differs."""
    function, points = random_program(seed)
    size = points[1].shape[1]
    plain, others = ways(function, (jax.jacfwd, jax.jacrev)[seed % 2], seed % 4 == 0 and size < 4)
    compiled = jax.jit(plain)
    want = compiled(*points)
    epsilon = np.finfo(points[0].dtype).eps
    moved = [compiled(*(x * (1 + change * epsilon) for x in points)) for change in (4, -7)]
    for name, way in list(others.items()) if size < 3 else [list(others.items())[seed // 4 % 4]]:
        try:
            got = jax.jit(way)(*points)
        except gx.NativeError as error:
            # Matrix exponentials take many statements, and their derivatives even more.
            if "statements" not in str(error):
                raise
            continue
        for place, (result, wanted) in enumerate(zip(got, want, strict=True)):
            spread = np.max([np.abs(other[place] - wanted) for other in moved], initial=0.0)
            room = 100 * spread + 1e4 * epsilon * (1 + np.max(np.abs(wanted), initial=0.0))
            np.testing.assert_allclose(result, wanted, rtol=0, atol=room, err_msg=f"{name}, result {place}")


if __name__ == "__main__":
    sys.exit(check_many(check, __doc__.splitlines()[0], 2_000))
