"""Elementwise functions and small compositions at special points, through every backend."""

import numpy as np

from .case import Case
from .law import Tolerance
from .points import special_points

POINTS = 1024
# The derivative of a jump hides a result on the wrong side of it, so jumps are multiplied by something that shows it.
SHOWN = ("({jump}) * x", "x - ({jump}) * y", "({jump}) * x + x / y", "jnp.where(({jump}) > 1, x * x, x / y)")
QUOTIENTS = ("x / y", "x / y", "(x + 1) / y", "x * x / y", "1 / y", "2 * x / y", "jnp.sin(x) / y")
LINKS = ("jnp.abs({q})", "2 * {q}", "jnp.sqrt(jnp.abs({q}))", "{q} - 1", "-{q}", "jnp.maximum({q}, 0.5)", "{q} + 1")
LINKS += ("{q} * {q}", "jnp.minimum({q}, 7)", "0.5 * {q}", "{q}", "lax.optimization_barrier({q})")
JUMPS = ("jnp.floor({q})", "jnp.ceil({q})", "jnp.round({q})", "jnp.sign({q})", "({q}).astype(int).astype(x.dtype)")
JUMPS += ("({q} >= 0).astype(x.dtype)", "jnp.where({q} > 1, 2.0, 3.0)", "jnp.where({q} == 1, 2.0, 3.0)")
JUMPS += ("jnp.trunc({q})", "jnp.mod({q}, 1)", "({q}).astype(jnp.int8).astype(x.dtype)", "jnp.fmod({q}, 2)")
JUMPS += ("jnp.searchsorted(jnp.arange(4.0), {q}).astype(x.dtype)", "jnp.floor_divide({q}, 1)")
BESIDE = ("x / y", "1 / y", "(x - 1) / y", "x * x / y", "jnp.sin(x / y)", "y * x", "jnp.mod(x, y)", "jnp.floor(x / y)")

MASKED = (
    "jnp.where(x > 0, jnp.sqrt(x), 0.0)",
    "jnp.where(x > 0, jnp.sqrt(x), 0.0) * y",
    "jnp.where(x > 0, x * jnp.log(x), 0.0)",
    "jnp.where(x != 0, jnp.sin(x) / x, 1.0)",
    "jnp.where(x > y, jnp.log(x - y), x)",
    "jnp.where(y == 0, x, x / y)",
    "jnp.where(x < 1, jnp.arcsin(x), y)",
    "special.entr(x)",
    "special.xlogy(x, y)",
    "special.xlog1py(x, y)",
    "special.rel_entr(x, y)",
    "jnp.nan_to_num(x / y)",
    "jnp.where(jnp.isfinite(x / y), x / y, x)",
    "jax.nn.relu(x) * y",
    "jax.nn.softplus(x)",
    "jax.nn.log_sigmoid(x)",
    "jax.nn.silu(x)",
    "jnp.linalg.norm(jnp.stack([x, y]))",
    "lax.select(x >= 0, jnp.exp(-x), jnp.exp(x))",
)
BINARY = (
    *("x + y", "x - y", "x * y", "x / y", "x ** y", "jnp.maximum(x, y)", "jnp.minimum(x, y)", "jnp.mod(x, y)"),
    *("jnp.fmod(x, y)", "jnp.arctan2(x, y)", "jnp.hypot(x, y)", "jnp.logaddexp(x, y)", "jnp.floor_divide(x, y)"),
    *("jnp.copysign(x, y)", "jnp.clip(x, -1.0, y)", "lax.rem(x, y)", "jnp.remainder(x, y) + x / y", "x % y * y"),
    *("jnp.divmod(x, y)[0] * x + jnp.divmod(x, y)[1]", "jnp.power(jnp.abs(x), y)", "jnp.heaviside(x, y)"),
    *("jnp.float_power(x, y)", "jnp.nextafter(x, y) * x", "jnp.where(x >= y, x, y) * x", "special.betaln(x, y)"),
)
UNARY = (
    *("abs", "sign", "floor", "ceil", "round", "trunc", "sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log1p", "log2"),
    *("log10", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh"),
    *("arctanh", "square", "reciprocal", "negative", "sinc", "deg2rad", "isnan", "signbit", "rint", "fix", "i0"),
)
SPECIAL = ("erf", "erfc", "erf_inv", "gammaln", "digamma", "expit", "logit", "log_ndtr", "ndtr", "i0e", "i1e")
POWERS = ("x ** 2", "x ** 3", "x ** -1", "x ** -2", "x ** 0.5", "x ** 0", "x ** 1.5", "2.0 ** x", "x ** -0.5")
POWERS += ("jnp.abs(x) ** 3", "lax.integer_pow(x, -3)", "lax.rsqrt(x)", "lax.cbrt(x)", "0.0 ** x", "(-x) ** x")
WHOLE = (
    "x * x.astype(jnp.int32).astype(x.dtype)",
    "x * x.astype(jnp.int8).astype(x.dtype)",
    "x * x.astype(jnp.uint8).astype(x.dtype)",
    "x * x.astype(jnp.uint32).astype(x.dtype)",
    "x * x.astype(jnp.int64).astype(x.dtype)",
    "x * x.astype(bool)",
    "x * (x.astype(jnp.int32) // 3)",
    "x * (x.astype(jnp.int32) % 3)",
    "x * (x.astype(jnp.int32) >> 1)",
    "x * jnp.left_shift(x.astype(jnp.int32), 3)",
    "x * jnp.bitwise_xor(x.astype(jnp.int32), 5)",
    "x * jnp.right_shift(x.astype(jnp.int32), 40)",
    "x * jnp.abs(x.astype(jnp.int32))",
    "x * (x.astype(jnp.int32) * 70000)",
    "x * lax.div(x.astype(jnp.int32), y.astype(jnp.int32))",
    "x * lax.rem(x.astype(jnp.int32), y.astype(jnp.int32))",
    "x * lax.population_count(x.astype(jnp.int32))",
    "x * lax.clz(x.astype(jnp.int32))",
    "x * jnp.max(jnp.stack([x.astype(int), y.astype(int)]))",
    "x * jnp.max(jnp.zeros((0,), int), initial=3)",
    "x * lax.reduce_max(jnp.zeros((0, 2), int), (0,)).sum()",
    "x * lax.reduce_min(jnp.zeros((0, 2), jnp.int8), (0,)).sum()",
    "x * jnp.sum(jnp.zeros((0,), int)) + x * jnp.prod(jnp.zeros((0,), int))",
    "x * jnp.argmax(jnp.stack([x, y, 1 - x]))",
    "x * jnp.argmin(jnp.stack([x, y, 1 - x]))",
    "x * jnp.sum(jnp.stack([x, y]) > 0)",
    "x * jnp.any(jnp.stack([x, y]) > 1) + y * jnp.all(jnp.stack([x, y]) > 1)",
    *(f"x * jnp.asarray({v}).astype(jnp.{t})" for v in ("3e9", "-3e9", "jnp.nan") for t in ("int32", "int8", "uint8")),
    "lax.fori_loop(0, 4, lambda i, c: c + x * (i * 1e9).astype(jnp.int32), x)",
    "lax.scan(lambda c, t: (c + x * (2 * t).astype(jnp.int32), None), x, jnp.array([3e9, -3e9, jnp.nan]))[0]",
    "x * lax.bitcast_convert_type(x, jnp.int32 if x.dtype == jnp.float32 else jnp.int64).astype(x.dtype)",
)
WAYS = (
    ("jax.jit(jax.vmap(jac(f, argnums=(0, 1))))(*args)", 'backend="auto"'),
    ("jax.jit(jax.vmap(jac(f, argnums=(0, 1))))(*args)", 'backend="native"'),
    ("jax.jit(jax.vmap(jac(f, argnums=(0, 1))))(*args)", 'backend="xla"'),
    ("jax.vmap(jac(f, argnums=(0, 1)))(*args)", 'backend="xla"'),
    ("jax.vmap(jac(f, argnums=(0, 1)))(*args)", ""),
)
THEIRS = "jax.vmap(jac(f, argnums=(0, 1)))(*args)"
EAGER = "jax.tree.map(lambda *v: jnp.stack(v), *[jac(f, argnums=(0, 1))(x, y) for x, y in zip(*args)])"
LISTED = (
    *MASKED,
    *BINARY,
    *(f"jnp.{name}(x) * y" for name in UNARY),
    *(f"special.{name}(x)" for name in SPECIAL),
    *POWERS,
    *WHOLE,
)


def attempts(seed: int, number: int) -> list[Case]:
    """One function at a thousand points, in several ways."""
    rng = np.random.default_rng((seed, number, 1))
    jumpy = number % 2 == 1
    lines, result = _jumpy(rng) if jumpy else _composed(rng, number // 2)
    dtype = np.float32 if rng.random() < 0.6 else np.float64
    points = [special_points(rng, POINTS, dtype) for _ in range(2)]
    if rng.random() < 0.4:
        # Whole divisors make quotients that are whole, or nearly so.
        points[1] = rng.integers(1, 100, POINTS).astype(dtype)
    if jumpy:
        # At whole multiples of the divisor, a slightly wrong quotient falls on the other side of a jump.
        whole = rng.random(POINTS) < 0.7
        divisors = rng.integers(1, 2001, POINTS) / rng.choice([1.0, 1.0, 10.0], POINTS)
        multiples = divisors * rng.integers(1, 60, POINTS) - rng.choice([0.0, 0.0, 1.0], POINTS)
        points = [np.where(whole, v, p).astype(dtype) for v, p in zip((multiples, divisors), points, strict=True)]
    tolerance = Tolerance(pointwise=True, slack=0.0 if jumpy else 20.0)

    def case(way: str, theirs: str | None, options: str, count: int) -> Case:
        args = tuple(p[:count] for p in points)
        return Case(("x", "y"), lines, result, args, way, options, theirs, batched=True, tolerance=tolerance)

    chosen = [WAYS[n] for n in rng.choice(len(WAYS), 3, replace=False)]
    found = [case(way, THEIRS, options, POINTS) for way, options in chosen]
    return [*found, case(EAGER, None, "", 4)] if number % 8 == 0 else found


def _composed(rng: np.random.Generator, number: int) -> tuple[tuple[str, ...], str]:
    """A listed function; after the first round, composed with another one."""
    text = LISTED[number % len(LISTED)]
    if number < len(LISTED):
        return (f"z = {text}",), "z"
    outer = LISTED[rng.integers(len(LISTED))]
    if rng.random() < 0.5:
        return (f"w = {text}", f"z = {outer}"), "z * w"
    return (f"x = {text}", "x = x * 1.0", f"z = {outer}"), "z"


def _jumpy(rng: np.random.Generator) -> tuple[tuple[str, ...], str]:
    """A jump that depends on a quotient through a chain of operations, beside other quotients by the same divisor."""
    lines = [
        f"q = {rng.choice(QUOTIENTS)}",
        *(f"q = {rng.choice(LINKS).format(q='q')}" for _ in range(rng.integers(3))),
    ]
    lines.append(f"j = {rng.choice(JUMPS).format(q='q')}")
    lines.append(f"z = {rng.choice(SHOWN).format(jump='j')}")
    lines.extend(f"z = z + {rng.choice(BESIDE)}" for _ in range(rng.integers(1, 3)))
    return tuple(lines), "z"
