"""Random lines of source text, and the shapes of their values."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import jax
import numpy as np

from .case import namespace

MAX_ELEMENTS = 36
ELEMENTWISE = (
    *("jnp.sin({a})", "jnp.cos({a})", "jnp.tanh({a})", "jnp.exp(-{a} * {a})", "jnp.sqrt(1.0 + {a} * {a})", "-{a}"),
    *(
        "2.0 * {a}",
        "{a} / 3",
        "{a} + 0.5",
        "{a} ** 2",
        "{a} ** 3",
        "jnp.abs({a})",
        "jnp.where({a} > 0, {a}, 0.1 * {a})",
    ),
    *("jnp.log1p({a} * {a})", "jax.nn.sigmoid({a})", "lax.stop_gradient({a}) * {a}", "lax.clamp(-0.5, {a}, 0.5)"),
    *("jnp.arctan({a})", "1 / (2.0 + jnp.cos({a}))", "{a} * 0", "{a}.astype(jnp.float32).astype({a}.dtype) + {a}"),
    *("jnp.floor({a}) * {a}", "jax.nn.relu({a})", "jax.nn.gelu({a})", "special.erf({a})", "lax.rsqrt(1 + {a} * {a})"),
    *("jax.checkpoint(jnp.sin)({a})", "jax.jit(jnp.cos)({a})", "jnp.clip({a}, -0.3, 0.8)", "lax.integer_pow({a}, 3)"),
)
BINARY = (
    *("{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / (2.0 + jnp.sin({b}))", "jnp.maximum({a}, {b})"),
    *(
        "jnp.arctan2({a}, 3.0 + {b})",
        "jnp.where({a} > {b}, {a}, {b} * {b})",
        "jnp.dot({a}, {b})",
        "jnp.outer({a}, {b})",
    ),
    *("{a} @ {b}", "{a} @ {b}.T", "jnp.minimum({a}, {b})", "jnp.hypot({a} + 2, {b})", "jnp.logaddexp({a}, {b})"),
    *("jnp.kron({a}, {b})", "jnp.tensordot({a}, {b}, 1)", "jnp.tensordot({a}, {b}, 0)", "jnp.vdot({a}, {b})"),
    *("jnp.einsum('...i,...i->...', {a}, {b})", "jnp.concatenate([{a}, {b}], {k})", "jnp.stack([{a}, {b}], {k})"),
    *("jnp.einsum('i,j->ji', {a}, {b})", "jnp.convolve({a}, {b})", "{a} * jnp.sum({b})", "jnp.inner({a}, {b})"),
    *("jnp.matmul({a}, {b})", "lax.select({a} > 0, {a}, {b})", "lax.add_any({a}, {b})", "jnp.cross({a}, {b})"),
)
MOVES = (
    *("{a}.reshape({shape})", "{a}.T", "jnp.moveaxis({a}, 0, -1)", "jnp.flip({a}, {k})", "jnp.roll({a}, 1, {k})"),
    *("{a}[:1]", "{a}[1:]", "{a}[::2]", "{a}[..., 1:]", "{a}[::-1]", "{a}[None]", "{a}[..., None]", "{a}[-1]"),
    *("jnp.squeeze({a})", "jnp.broadcast_to({a}, (2, *{a}.shape))", "jnp.tile({a}, 2)", "jnp.repeat({a}, 2, {k})"),
    *("jnp.pad({a}, 1)", "lax.pad({a}, jnp.zeros((), {a}.dtype), [({lo}, {hi}, {k})] * {a}.ndim)", "{a}[:0]"),
    *("jnp.take({a}, jnp.array([0, 0, -1]), {k})", "{a}.at[0].set(0.0)", "{a}.at[0].add({a}[-1])", "{a}.ravel()"),
    *("{a}.at[:1].multiply({a}[:1])", "{a}.at[jnp.array([0, 0])].add(1.5 * {a}[:1])", "jnp.diag({a})", "jnp.tril({a})"),
    *("lax.dynamic_slice_in_dim({a}, jnp.argmax({a}.ravel()) % 2, 1, {k})", "jnp.array_split({a}, 2)[0]"),
    *("lax.dynamic_update_slice_in_dim({a}, 2 * {a}[:1], jnp.argmin({a}.ravel()) % 3, 0)", "jnp.swapaxes({a}, 0, {k})"),
    *("{a}[jnp.arange(2) % {a}.shape[0]]", "{a}[jnp.argsort({a}[:, 0])]", "jnp.atleast_2d({a})", "jnp.trace({a})"),
    *(
        "jnp.take_along_axis({a}, jnp.argsort({a}, {k}), {k})",
        "{a}.at[jnp.array([0, 9])].get(mode='fill', fill_value=0)",
    ),
    *("{a}.at[0].max(0.2)", "{a}.at[0].mul(3.0)", "jnp.rot90({a})", "lax.rev({a}, tuple(range({a}.ndim)))"),
    *("lax.broadcast_in_dim({a}, (2, *{a}.shape, 1), tuple(range(1, {a}.ndim + 1)))", "jnp.expand_dims({a}, {k})"),
    *("{a}[jnp.array([True, False])[:{a}.shape[0]].nonzero(size=1)[0]]", "jnp.unstack({a})[0]"),
)
REDUCTIONS = (
    *(
        "jnp.sum({a}, {k})",
        "jnp.sum({a})",
        "jnp.mean({a}, {k})",
        "jnp.max({a}, {k})",
        "jnp.min({a})",
        "jnp.prod({a}, {k})",
    ),
    *(
        "jnp.cumsum({a}, {k})",
        "jnp.cumprod({a}, {k})",
        "lax.cummax({a}, {k})",
        "jnp.sort({a}, {k})",
        "lax.cumsum({a}, {k}, reverse=True)",
    ),
    *("jax.nn.softmax({a}, {k})", "jax.nn.logsumexp({a}, {k})", "jnp.var({a}, {k})", "jnp.linalg.norm({a} + 1.5)"),
    *("lax.cumlogsumexp({a}, {k})", "lax.top_k({a}, 1)[0]", "jnp.max({a}, initial=-1.0)", "jnp.median({a})"),
    *("jnp.sum({a}, {k}, keepdims=True)", "jnp.max({a}, {k}, keepdims=True) * {a}", "lax.cummin({a}, {k})"),
    *("jnp.einsum('ij,kj->ik', {a}, {a})", "jnp.einsum('ij,ij->j', {a}, {a})", "jnp.einsum('ii->i', {a})"),
    *("jnp.linalg.solve({a} @ {a}.T + 3 * jnp.eye({a}.shape[0]), {a})", "jnp.linalg.det(jnp.eye(2) + {a})"),
    *(
        "jnp.linalg.inv({a} @ {a}.T + 2 * jnp.eye({a}.shape[0]))",
        "jnp.diff({a})",
        "jnp.ptp({a})",
        "jnp.std(1 + {a} * {a})",
    ),
    *("lax.reduce_window({a}, -jnp.inf, lax.max, (2,) * {a}.ndim, (1,) * {a}.ndim, 'valid')", "jnp.nansum({a})"),
    *("lax.conv_general_dilated({a}[None, None], {a}[None, None, :2], (1,), 'SAME')[0, 0]", "jnp.fft.fft({a}).real"),
    *("lax.sort((jnp.floor({a}), {a}), num_keys=2)[1]", "lax.top_k(-{a}, 2)[0]", "jnp.quantile({a}, 0.3)"),
    *("lax.reduce_window({a}, 0.0, lax.add, (2,) * {a}.ndim, (2,) * {a}.ndim, 'same')", "jnp.percentile({a}, 60)"),
    *("{a}.at[jnp.stack([jnp.argmax({a}.ravel()), 1]) % 2].set(2 * {a}[:1])", "lax.reduce_precision({a}, 8, 9)"),
    *("special.erf_inv(0.9 * jnp.tanh({a}))", "special.ndtri(0.5 + 0.4 * jnp.tanh({a}))"),
)
MIXED = (
    *("{a} * jax.random.uniform(jax.random.key(3), {a}.shape, {a}.dtype)", "{a} * jax.random.normal(KEY, {a}.shape)"),
    *("jnp.where(jax.random.bernoulli(jax.random.fold_in(KEY, 2), 0.5, {a}.shape), {a}, 0.0)", "{a} * CONST[0]"),
    *("{a} * jnp.argmax({a})", "{a} * ({a} > 0)", "{a} * jnp.sum({a} > 0.1)", "{a} * {a}.astype(int)", "CONST * {a}"),
    *(
        "{a} * jax.random.permutation(KEY, 3)[0]",
        "{a} + jnp.arange(3.0)",
        "{a} * jnp.int32(3)",
        "jnp.zeros((2,)) * {a}",
    ),
    *(
        "{a} * (jnp.round({a} * 4).astype(jnp.int8) & 3)",
        "jnp.where({a} > 0, 1, 0) * {a}",
        "jnp.abs({a} + 1j * {a}) + {a}",
    ),
    *(
        "jnp.real(({a} + 2j) * ({a} - 1j))",
        "{a} * jax.random.split(KEY)[0].shape[0]",
        "jnp.linspace(0.0, 1.0, 3) * {a}",
    ),
    *(
        "jnp.ones((0,)) * {a}",
        "lax.optimization_barrier({a})",
        "jax.named_call(jnp.sin, name='s')({a})",
        "np.float32(2) * {a}",
    ),
)
KINDS = ((ELEMENTWISE, 0.3), (BINARY, 0.25), (MOVES, 0.22), (REDUCTIONS, 0.15), (MIXED, 0.08))
CONSTANTS = ("KEY = jax.random.key(7)", "CONST = jnp.array([0.5, -1.5, 2.0])")


@dataclass(frozen=True)
class Body:
    """Statements, and the shapes of all float values by name."""

    lines: tuple[str, ...]
    shapes: dict[str, tuple[int, ...]]


def random_expression(rng: np.random.Generator, shapes: dict[str, tuple[int, ...]]) -> str:
    """Source text of one operation on some of the values; it may not fit their shapes."""
    templates = [kind for kind, _ in KINDS][rng.choice(len(KINDS), p=[share for _, share in KINDS])]
    names = list(shapes)
    # Later values are chosen more often, so that programs become deep.
    weights = np.arange(1, len(names) + 1) / (len(names) * (len(names) + 1) / 2)
    a, b = (str(name) for name in rng.choice(names, 2, p=weights))
    axis = int(rng.integers(max(1, len(shapes[a]))))
    low, high = (int(n) for n in rng.integers(-1, 3, 2))
    shape = random_factors(rng, prod(shapes[a]))
    return str(templates[rng.integers(len(templates))]).format(a=a, b=b, k=axis, shape=shape, lo=low, hi=high)


def random_factors(rng: np.random.Generator, size: int) -> tuple[int, ...]:
    """A shape with this many elements."""
    shape = []
    while size > 1 and len(shape) < 3:
        divisors = [n for n in range(1, size + 1) if size % n == 0]
        shape.append(int(rng.choice(divisors)))
        size //= shape[-1]
    return (*shape, size) if size != 1 or rng.random() < 0.3 else tuple(shape)


def random_shape(rng: np.random.Generator) -> tuple[int, ...]:
    sizes = rng.choice([1, 2, 3, 4, 0], int(rng.choice([0, 1, 1, 2, 2, 3])), p=[0.2, 0.35, 0.3, 0.12, 0.03])
    return tuple(int(n) for n in sizes) if prod(sizes) <= 12 else (3,)


def random_body(
    rng: np.random.Generator,
    shapes: dict[str, tuple[int, ...]],
    steps: int,
    expression: Callable[[np.random.Generator, dict[str, tuple[int, ...]]], str] = random_expression,
    before: Sequence[str] = CONSTANTS,
    most: int = MAX_ELEMENTS,
) -> Body:
    """Random valid statements. Each is traced with shapes, and left out if JAX refuses it."""
    space = namespace()
    exec("\n".join(before), space)
    lines, known = [], dict(shapes)
    for _ in range(3 * steps):
        if len(lines) == steps:
            break
        text = expression(rng, known)
        shape = shape_of(text, known, space)
        if shape is not None and prod(shape) <= most and len(shape) <= 4:
            name = f"v{len(lines)}"
            lines.append(f"{name} = {text}")
            known[name] = shape
    return Body(tuple(lines), known)


def shape_of(text: str, shapes: dict[str, tuple[int, ...]], space: dict[str, Any]) -> tuple[int, ...] | None:
    """The shape of an expression's value, or None if it is not one array of float64."""
    code = compile(text, "<attack>", "eval")

    def function(values: dict[str, Any]) -> Any:
        return eval(code, {**space, **values})

    try:
        result = jax.eval_shape(function, {name: jax.ShapeDtypeStruct(shapes[name], float) for name in shapes})
    except Exception:  # noqa: BLE001  shapes that do not fit, in whatever way JAX says so
        return None
    return tuple(result.shape) if getattr(result, "dtype", None) == np.float64 else None
