"""Every public function inside every transformation of JAX, and transformations inside differentiated functions."""

from dataclasses import replace

import numpy as np

from .case import Case
from .law import Tolerance

HELPERS = (
    "def without_jit(call):",
    "    with jax.disable_jit():",
    "        return call()",
    "",
    "def watching_nans(call):",
    "    with jax.debug_nans(True):",
    "        return call()",
    "",
    "def exported(g, *args):",
    "    return export.deserialize(export.export(jax.jit(g))(*args).serialize()).call(*args)",
    "",
    "def sharded(g, xs, **options):",
    "    mesh = Mesh(np.array(jax.devices()[: len(xs)]), ('i',))",
    "    return jax.shard_map(g, mesh=mesh, in_specs=P('i'), out_specs=P('i'), **options)(xs)",
    "",
)
# Functions of a vector of three numbers, which also accept the shapes that transformations pass to them.
VECTOR = (
    "jnp.sin(x) * x[::-1]",
    "jnp.sum(x * x) * x",
    "x / (1 + x[0] ** 2)",
    "jnp.stack([x[0] * x[1], jnp.exp(x[2]), x[0]])",
    "jnp.outer(x, x)",
    "jnp.cumsum(x) ** 2",
    "{'a': x * 2, 'b': (jnp.prod(x),)}",
    "jax.nn.softmax(x)",
    "jnp.where(x > 0.4, x * x, -x)",
    "x * jax.random.uniform(jax.random.key(3), (3,))",
    "x * jax.random.normal(jax.random.fold_in(jax.random.key(3), 1), x.shape)",
    "jnp.dot(x[0], x[1])",
    "lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) * x, x)",
    "lax.cond(x[0] > 0, jnp.sin, jnp.cos, x)",
    "x * x.astype(jnp.int32)",
    "jnp.linalg.norm(x)",
)
SCALAR = ("jnp.sum(jnp.sin(x) * x)", "jnp.prod(x)", "x[0] * x[1] / (2 + x[2])", "jnp.sum(jax.nn.softmax(x) * x)")
VECTOR_WAYS = (
    "jac(f)(x)",
    "jax.jit(jac(f))(x)",
    "value_and_jac(f)(x)",
    "jax.jit(value_and_jac(f))(x)",
    "jax.vmap(jac(f))(xs)",
    "jax.vmap(value_and_jac(f))(xs)",
    "jax.jit(jax.vmap(jac(f)))(xs)",
    "jax.vmap(jac(f), in_axes=1, out_axes=1)(xs.T)",
    "jax.vmap(jac(f), axis_name='i')(xs)",
    "jax.vmap(jax.vmap(jac(f)))(xs[None])",
    "jax.jit(jax.vmap(jax.jit(jax.vmap(jac(f)))))(xs[None])",
    "jax.pmap(jac(f), axis_name='i')(xs)",
    "sharded(jax.vmap(jac(f)), xs)",
    "sharded(jax.vmap(jac(f)), xs, check_vma=False)",
    "jax.jacfwd(jac(f))(x)",
    "jax.jacrev(jac(f))(x)",
    "jax.jit(jax.jacrev(jac(f)))(x)",
    "jac(jac(f))(x)",
    "jax.vmap(jac(jac(f)))(xs)",
    "jax.jvp(jac(f), (x,), (x[::-1],))",
    "jax.jvp(jax.jit(jac(f)), (x,), (x[::-1],))",
    "jax.linearize(jac(f), x)[1](x)",
    "jax.checkpoint(jac(f))(x)",
    "jax.grad(jax.checkpoint(lambda x: sum(jnp.sum(j) for j in jax.tree.leaves(jac(f)(x)))))(x)",
    "jac(jax.checkpoint(f))(x)",
    "jac(jax.jit(f))(x)",
    "jax.jit(jac(jax.jit(f)))(x)",
    "jac(jax.vmap(f))(xs)",
    "lax.scan(lambda c, x: (c, jac(f)(x)), 0.0, xs)[1]",
    "lax.map(jac(f), xs)",
    "lax.map(jac(f), xs, batch_size=2)",
    "lax.cond(x[0] > 0, jac(f), lambda x: jax.tree.map(jnp.zeros_like, jac(f)(x)), x)",
    "lax.fori_loop(0, 2, lambda i, c: jax.tree.map(lambda a, b: a + b, c, jac(f)(xs[i])), jac(f)(x))",
    "lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, jac(f)(xs[c[0]])), (0, jac(f)(x)))[1]",
    "without_jit(lambda: jac(f)(x))",
    "without_jit(lambda: jax.vmap(jac(f))(xs))",
    "without_jit(lambda: jax.jit(jac(f))(x))",
    "without_jit(lambda: jax.jit(jax.vmap(jac(f)))(xs))",
    "watching_nans(lambda: jax.jit(jax.vmap(jac(f)))(xs))",
    "exported(jac(f), x)",
    "exported(jax.vmap(jac(f)), xs)",
    "jax.jit(jac(f), donate_argnums=0)(jnp.array(x))",
    "jax.jit(jax.vmap(jac(f)), donate_argnums=0)(jnp.array(xs))",
    "jax.eval_shape(jac(f), x) and jac(f)(x)",
    "jax.jit(jac(f)).lower(x).compile()(x)",
    "jax.vmap(jac(f))(xs[:0])",
    "jax.jit(jax.vmap(jac(f)))(xs[:1])",
    "jac(f)(np.asarray(x))",
    "jac(lambda x, k=2: f(x))(x, k=3)",
    "jax.vmap(lambda s: jac(lambda x: jax.tree.map(lambda r: r * s, f(x)))(x))(xs[:, 0])",
    "jax.jit(lambda s: jax.vmap(jac(lambda x: jax.tree.map(lambda r: r * s, f(x))))(xs))(2.0)",
    "jac(lambda x: jac(f)(x))(x)",
)
SCALAR_WAYS = (
    "hess(f)(x)",
    "jax.jit(hess(f))(x)",
    "jax.vmap(hess(f))(xs)",
    "jax.jit(jax.vmap(hess(f)))(xs)",
    "jac(jax.grad(f))(x)",
    "jax.grad(lambda x: jnp.sum(jac(f)(x) ** 2))(x)",
    "jax.jit(jax.grad(lambda x: jnp.sum(jac(f)(x) ** 2)))(x)",
    "jax.vjp(jac(f), x)[1](x)[0]",
    "jax.vmap(jax.grad(lambda x: jnp.sum(jac(f)(x) ** 2)))(xs)",
    "jax.hessian(lambda x: jnp.sum(jac(f)(x) ** 2))(x)",
    "sharded(jax.vmap(hess(f)), xs)",
    "without_jit(lambda: jax.vmap(hess(f))(xs))",
)
CALLED = (
    ("np.asarray(gx.check_jacobian(f, x) < 1e-6)", "np.asarray(True)"),
    ("np.asarray(len(str(gx.explain(f, x))) > 0)", "np.asarray(True)"),
    (
        "np.asarray(gx.build_graph(f, x).cost().multiplications >= gx.build_graph(f, x).lower_bound())",
        "np.asarray(True)",
    ),
    ("jax.jit(lambda x: gx.build_graph(f, x).cost().additions * x)(x)", "gx.build_graph(f, x).cost().additions * x"),
    ("jax.vmap(lambda x: x * gx.build_graph(f, x).numbered)(xs)", "xs * gx.build_graph(f, xs[0]).numbered"),
    ("np.asarray(gx.check_jacobian(lambda x: f(x), x, order='rev') < 1e-6)", "np.asarray(True)"),
)
COLLECTIVES = (
    "lax.psum(x * x, 'i') * x",
    "lax.pmean(jnp.sin(x), 'i') * x",
    "x * lax.pmax(lax.stop_gradient(x), 'i')",
    "lax.all_gather(x * x, 'i') * x",
    "lax.all_gather(jnp.sin(x), 'i', tiled=False).sum(0) * x",
    "lax.ppermute(x * x, 'i', [(0, 1), (1, 2), (2, 0)]) * x",
    "lax.psum_scatter(jnp.stack([x, 2 * x, x * x]), 'i') * x",
    "lax.all_to_all(jnp.stack([x, 2 * x, x * x]), 'i', 0, 0) * x",
    "x * x * lax.axis_index('i')",
    "jnp.sin(lax.psum(x, 'i')) + x",
    "lax.fori_loop(0, 2, lambda n, c: lax.psum(c, 'i') * x, x)",
    "x * lax.psum(1, 'i')",
    "lax.pshuffle(x * x, 'i', [2, 0, 1]) * x",
    "jax.random.uniform(jax.random.fold_in(jax.random.key(0), lax.axis_index('i'))) * x",
)
COLLECTIVE_WAYS = (
    "jax.vmap(jac(f), axis_name='i')(xs)",
    "jax.jit(jax.vmap(jac(f), axis_name='i'))(xs)",
    "jax.vmap(value_and_jac(f), axis_name='i')(xs)",
    "jax.pmap(jac(f), axis_name='i')(xs)",
    "sharded(lambda v: jac(f)(v[0])[None], xs)",
    "sharded(lambda v: jac(f)(v[0])[None], xs, check_vma=False)",
    "jax.jit(lambda xs: sharded(lambda v: jac(f)(v[0])[None], xs))(xs)",
    "jac(jax.vmap(f, axis_name='i'))(xs)",
    "jax.vmap(jax.vmap(jac(f)), axis_name='i')(jnp.stack([xs, xs * 2], 1))",
)
POSITIONAL = (
    "jac(f, (1, 2))(x, x + 1, x - 1)",
    "jac(f, 1)(x, x + 1, x - 1)",
    "jac(f, (1,))(x, x + 1, x - 1)",
    "jac(f, (2, 0))(x, x + 1, x - 1)",
    "jac(f, argnums=-1)(x, x + 1, x - 1)",
    "jac(f, argnums=(0, -1))(x, x + 1, x - 1)",
)
WEAK = ("x * x", "jnp.sin(x)", "2 * x", "x * np.float32(2)", "jnp.where(x > 0, x, 1.0)", "x", "x + jnp.ones(2)", "x**3")
WEAK += (
    "jnp.stack([x, 2.0 * x])",
    "x * 1j + x",
    "jnp.float32(3) / x",
    "jnp.sum(jnp.ones(3) * x)",
    "x / 2",
    "(x, 2 * x)",
)
WEAK_WAYS = (
    "jac(f)(*args)",
    "jax.tree.map(lambda j: j * jnp.float32(2), jac(f)(*args))",
    "jax.jit(jac(f))(*args)",
    "value_and_jac(f)(*args)",
    "hess(f)(*args)",
    "jax.vmap(jac(f))(jnp.ones(3) * args[0])",
)


def attempts(seed: int, number: int) -> list[Case]:
    """One function under one transformation."""
    rng = np.random.default_rng((seed, number, 4))
    # Try every pair once, then random ones, with small families as often as the large one.
    family = (_vector, _collective, _vector, _weak, _scalar, _vector, _called, _positional)[number % 8]
    return [family(rng, number // 8)]


def _case(text: str, way: str, **fields) -> Case:
    x = np.array([0.3, -0.7, 1.1])
    points = np.stack([x, x[::-1] * 0.5, x + 0.2])
    return Case(("x",), (), text, (x, points), _named(way), before=HELPERS, **fields)


def _named(way: str) -> str:
    """The expression with its points as names."""
    return f"(lambda x, xs: {way})(*map(jnp.asarray, args))"


def _vector(rng: np.random.Generator, number: int) -> Case:
    way = VECTOR_WAYS[number % len(VECTOR_WAYS)]
    text = VECTOR[(number // len(VECTOR_WAYS) + int(rng.integers(len(VECTOR)))) % len(VECTOR)]
    options = str(rng.choice(["", "", 'backend="native"', 'backend="xla"', 'order="rev"']))
    case = _case(text, way, options=options, x64=bool(rng.random() < 0.8))
    return case if case.x64 else replace(case, tolerance=Tolerance(single=1e-3))


def _scalar(rng: np.random.Generator, number: int) -> Case:
    return _case(str(rng.choice(SCALAR)), SCALAR_WAYS[number % len(SCALAR_WAYS)])


def _called(rng: np.random.Generator, number: int) -> Case:
    way, theirs = CALLED[number % len(CALLED)]
    return replace(_case(str(rng.choice(VECTOR)), way), theirs=_named(theirs))


def _collective(rng: np.random.Generator, number: int) -> Case:
    text = COLLECTIVES[number % len(COLLECTIVES)]
    way = COLLECTIVE_WAYS[(number // len(COLLECTIVES) + number) % len(COLLECTIVE_WAYS)]
    points = np.array([0.1, 0.5, 1.0])
    options = str(rng.choice(["", "", 'backend="xla"']))
    # In reverse mode, a collective also sums the cotangents of other points, which is a different derivative.
    return replace(_case(text, way, options=options), args=(points[0], points), modes=("forward",))


def _positional(rng: np.random.Generator, number: int) -> Case:
    case = _case("x * y + w * jnp.sin(y)", POSITIONAL[number % len(POSITIONAL)])
    return replace(case, params=("x", "y", "w"))


def _weak(rng: np.random.Generator, number: int) -> Case:
    """Python numbers as arguments. JAX decides their types."""
    text, way = WEAK[number % len(WEAK)], WEAK_WAYS[int(rng.integers(len(WEAK_WAYS)))]
    arg = str(rng.choice(["1.5", "jnp.float32(1.5)", "np.float64(1.5)", "jnp.asarray(1.5)", "2", "jnp.bfloat16(1.5)"]))
    single = "float32" in arg or "bfloat16" in arg
    tolerance = Tolerance(single=2e-2 if "bfloat16" in arg else 1e-3) if single else Tolerance()
    return Case(("x",), (), text, (arg,), way, x64=bool(rng.random() < 0.7), tolerance=tolerance)
