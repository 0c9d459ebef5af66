"""Random programs of loops, branches and solves, nested and with closures."""

from dataclasses import replace

import numpy as np

from .case import Case
from .expressions import CONSTANTS, random_body, random_expression, random_shape
from .random_programs import NAMES, random_case, varied

LOOPS = (
    "lax.fori_loop(0, 3, lambda i, c: {body}, {a})",
    "lax.fori_loop(0, 2, lambda i, c: ({body}) * (i + 1), {a})",
    "lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, (lambda c: {body})(c[1])), (0, {a}))[1]",
    "lax.while_loop(lambda c: jnp.sum(jnp.abs(c[0])) + c[1] < 3, "
    "lambda c: ((lambda c: {body})(c[0]), c[1] + 1), ({a}, 0))[0]",
    "lax.scan(lambda c, t: ({body}, c), {a}, None, length=3)[0]",
    "lax.scan(lambda c, t: ({body}, c * 2), {a}, None, length=2)[1]",
    "lax.scan(lambda c, t: (({body}) * t, c + t), {a}, jnp.array([0.5, 1.5]), reverse=True)[0]",
    "lax.scan(lambda c, t: (({body}) + jnp.sum(t), t), {a}, {b})[0]",
    "lax.scan(lambda c, t: (c + jnp.sum(t), jnp.sin(t) * c), jnp.sum({a}), {b})[1]",
    "lax.scan(lambda c, t: ({body}, c), {a}, None, length=4, unroll=2)[1]",
    "lax.scan(lambda c, t: ({body}, c), {a}, None, length=0)[0]",
    "lax.scan(jax.checkpoint(lambda c, t: ({body}, c[..., None])), {a}, None, length=2)[1]",
    "lax.associative_scan(lambda p, q: p * q + p, {a})",
    "lax.map(lambda c: {body}, {a})",
    "lax.map(lambda c: {body}, {a}, batch_size=2)",
    "jax.vmap(lambda c: {body})({a})",
)
BRANCHES = (
    "lax.cond(jnp.sum({a}) > 0, lambda c: {body}, lambda c: -c, {a})",
    "lax.cond(jnp.sum({b}) > 0.1, lambda: jnp.sin({a}), lambda: {a} * jnp.sum({b}))",
    "lax.cond(True, lambda c: {body}, lambda c: c, {a})",
    "lax.switch(jnp.argmax({b}.ravel()) % 3, [lambda c: {body}, jnp.cos, lambda c: jnp.zeros_like(c)], {a})",
    "lax.switch(1, [lambda c: c, lambda c: {body}], {a})",
    "lax.cond(jnp.any({a} > 0.5), lambda c: lax.fori_loop(0, 2, lambda i, c: {body}, c), lambda c: c, {a})",
)
SOLVES = (
    "lax.custom_linear_solve(lambda v: 2 * v + jnp.sum({b}) * v, {a}, "
    "lambda g, v: v / (2 + jnp.sum({b})), symmetric=True)",
    "lax.custom_root(lambda z: z**3 + z - {a}, jnp.zeros_like({a}), "
    "lambda g, z: lax.fori_loop(0, 30, lambda i, z: z - g(z) / (3 * z**2 + 1), z), "
    "lambda g, y: y / g(jnp.ones_like(y)))",
    "jnp.linalg.solve(jnp.eye(2) * 3 + jnp.outer({a}, {a})[:2, :2], jnp.ones(2))",
    "jax.scipy.linalg.solve_triangular(jnp.tril(jnp.outer({a}, {a})) + 2 * jnp.eye({a}.size), {a}.ravel(), lower=True)",
    "jnp.linalg.cholesky(jnp.outer({a}, {a}) + 2 * jnp.eye({a}.size))",
    "jnp.linalg.inv(jnp.outer({a}, {b}) + 3 * jnp.eye({a}.size, {b}.size)) if {a}.size == {b}.size else {a}",
    "jnp.linalg.qr(jnp.outer({a}, {b}) + 2 * jnp.eye({a}.size, {b}.size))[1]",
    "jnp.linalg.slogdet(jnp.outer({a}, {a}) + 2 * jnp.eye({a}.size))[1] * {a}",
    "jax.scipy.linalg.lu_solve(jax.scipy.linalg.lu_factor(jnp.outer({a}, {a}) + 2 * jnp.eye({a}.size)), {a}.ravel())",
    "jax.scipy.linalg.solve(jnp.outer({a}, {a}) + 2 * jnp.eye({a}.size), {a}.ravel(), assume_a='pos')",
    "lax.linalg.tridiagonal_solve({a}.ravel(), {a}.ravel() ** 2 + 2, {a}.ravel(), {a}.reshape(-1, 1))",
    "jnp.linalg.eigh(jnp.outer({a}, {a}) + jnp.diag(jnp.arange(1.0, {a}.size + 1)))[0]",
)
CUSTOM = (
    "SIN({a})",
    "CUBE({a})",
    "jax.checkpoint(lambda c: {body})({a})",
    "jax.jit(lambda c: {body})({a})",
    "jax.linearize(jnp.sin, {a})[1]({a})",
    "jax.grad(lambda c: jnp.sum({body}))({a})",
    "jax.jvp(lambda c: {body}, ({a},), ({a},))[1]",
    "jax.vjp(jnp.tanh, {a})[1]({a})[0]",
)
DEFINED = (
    *CONSTANTS,
    "SIN = jax.custom_jvp(jnp.sin)",
    "SIN.defjvps(lambda t, out, x: t * jnp.cos(x))",
    "CUBE = jax.custom_vjp(lambda x: x**3)",
    "CUBE.defvjp(lambda x: (x**3, x), lambda x, t: (3 * x**2 * t,))",
)


def attempts(seed: int, number: int) -> list[Case]:
    """A program that runs compiled, mapped, as a kernel or eagerly."""
    rng = np.random.default_rng((seed, number, 5))
    shapes = {name: random_shape(rng) for name in NAMES[: int(rng.integers(1, 3))]}
    body = random_body(rng, shapes, int(rng.integers(1, 5)), flow_expression, DEFINED)
    case = replace(random_case(rng, 0, body), before=DEFINED)
    return [varied(case, number)]


def flow_expression(rng: np.random.Generator, shapes: dict[str, tuple[int, ...]], depth: int = 0) -> str:
    """Source text of a loop or branch whose body is another expression, or occasionally of a plain operation."""
    if rng.random() < (0.25 if depth == 0 else 0.75):
        return random_expression(rng, shapes)
    templates = [LOOPS, LOOPS, BRANCHES, SOLVES, CUSTOM][rng.integers(5)]
    a, b = (str(name) for name in rng.choice(list(shapes), 2))
    inner = {**shapes, "c": shapes[a]}
    body = flow_expression(rng, inner, depth + 1)
    if rng.random() < 0.6:
        body = f"jnp.tanh(c) * 0.9 + 0.1 * jnp.sum({body})"
    return str(templates[rng.integers(len(templates))]).format(a=a, b=b, body=body)
