"""Matrix products as loops in kernels, passes of modes in loops, and kernels of programs that are mapped later.

graphax uses these only for long code. Here limits are lowered, so that the smallest programs use them too.
"""

from dataclasses import replace

import numpy as np

from .case import Case
from .expressions import Body, random_body, random_expression
from .law import References, Tolerance, Verdict, judge

LOWERED = (
    "from graphax import backend, estimates, native, pipeline",
    "from graphax.native import contraction_rules, primitive",
    "",
    "def lowered(call, written_out, limit, passes, alone):",
    "    limits = 'LIMIT', 'LIMIT_UNASKED', 'LIMIT_UNASKED_MAPPED', 'LIMIT_ALONE'",
    "    changes = [(native, name, limit) for name in limits]",
    "    changes += [(native, 'STATEMENTS_OF_AN_EQUATION', 0), (native, 'STATEMENTS_OF_AN_EQUATION_ALONE', 0)]",
    "    changes += [(contraction_rules, '_WRITTEN_OUT', written_out), (estimates, '_LONG_CODE', 1)]",
    "    changes += [(primitive, '_LARGEST_ARRAY_ALONE', alone)]",
    "    if passes:",
    "        changes += [(pipeline, 'pays', lambda *_: True), (backend, '_is_taken', lambda *_: True)]",
    "    before = [getattr(module, name) for module, name, _ in changes]",
    "    for module, name, value in changes:",
    "        setattr(module, name, value)",
    "    try:",
    "        return jax.block_until_ready(call())",
    "    finally:",
    "        for (module, name, _), value in zip(changes, before):",
    "            setattr(module, name, value)",
    "",
)
CONSTANTS = (
    "KEY = jax.random.key(7)",
    "CONST = jnp.array([0.5, -1.5, 2.0])",
    "DENSE = np.cos(np.arange(64.0)).reshape(8, 8)",
    "BAND = np.tri(8, k=1) * np.tri(8, k=1).T * DENSE",
    "",
    "@jax.custom_jvp",
    "def own(x):",
    "    return jnp.sin(x)",
    "own.defjvp(lambda p, t: (own(*p), jnp.cos(p[0]) * t[0]))",
    "",
)
PRODUCTS = (
    *("{a} @ {b}", "{a} @ {b}.T", "{a}.T @ {b}", "{a}.T @ {b}.T", "{b} @ jnp.tanh({a})", "jnp.tanh({a} @ {b} / 2)"),
    *(
        "jnp.einsum('bij,bjk->bik', {a}, {b})",
        "jnp.einsum('bij,kjb->kbi', {a}, {b})",
        "jnp.einsum('ij,kj->ki', {a}, {b})",
    ),
    *("lax.dot_general({a}, {b}, ((({k},), (0,)), ((), ())))", "lax.dot_general({a}, {b}, (((), ()), (({k},), (0,))))"),
    *("lax.dot_general({a}, {b}, (((0,), ({k},)), ((), ())))", "jnp.tensordot({a}, {b}, {k})", "jnp.vdot({a}, {b})"),
    *(
        "lax.dot_general({a}, {b}, (((0, 1), (1, 0)), ((), ())))",
        "lax.dot_general({a}, {b}, (((0,), (0,)), ((1,), (1,))))",
    ),
    *(
        "({a} @ {b})[1:]",
        "({a} @ {b})[..., ::2]",
        "jnp.sum({a} @ {b}, 0)",
        "jnp.max({a} @ {b}, -1)",
        "jnp.outer({a}, {b})",
    ),
    *(
        "jax.vmap(jnp.dot)({a}, {b})",
        "jax.vmap(jnp.dot, (0, None))({a}, {b})",
        "jax.vmap(jnp.dot, (None, 0), 1)({a}, {b})",
    ),
    *(
        "DENSE[:{a}.shape[-1]] @ {a}.T",
        "{a} @ DENSE[:{a}.shape[-1]]",
        "BAND[:{a}.shape[-1]].T @ {a}.T",
        "jnp.tril({a}) @ {b}",
    ),
    *(
        "{a} @ BAND[:{a}.shape[-1], :3]",
        "jnp.diag({a}[0]) @ {b}",
        "jnp.where({a} > 0, {a}, 0.0) @ {b}",
        "{a} @ {b} @ {a}",
    ),
    *(
        "jnp.linalg.matrix_power({a}, 3)",
        "jnp.kron({a}, {b})",
        "{a} @ jnp.concatenate([{b}, {b}], -1)",
        "jnp.inner({a}, {b})",
    ),
)
LOOPS = (
    "lax.fori_loop(0, 3, lambda i, c: jnp.tanh({a} @ c / 2), {b})",
    "lax.scan(lambda c, r: (jnp.sin(c @ {b}) / 2, c * r), {a}[0], {a})[1]",
    "lax.scan(lambda c, r: (jnp.sin({b} @ c) / 2 + r, {a} @ c), {a}[0], {a}, reverse=True)[0]",
    "lax.map(lambda r: jnp.tanh({b} @ r), {a})",
    # Halves of infinity never end, so steps are counted.
    "lax.while_loop(lambda c: (jnp.sum(c[0]) > 0.5) & (c[1] < 9), lambda c: (c[0] / 2, c[1] + 1), ({a} @ {b}, 0))[0]",
    "lax.cond(jnp.sum({a}) > 0, lambda a, b: a @ b, lambda a, b: 2 * (a @ b), {a}, {b})",
    "jax.checkpoint(lambda a, b: jnp.sin(a @ b))({a}, {b})",
    "jax.jit(lambda a, b: jnp.cos(a @ b))({a}, {b})",
    "own({a}) @ {b}",
    "jnp.cumsum({a} @ {b}, 0)",
    "jnp.linalg.solve({a} @ {a}.T + 3 * jnp.eye({a}.shape[0]), {a} @ {b})",
)
MIXED = (
    "((3 * {a}).astype(jnp.int32) @ (3 * {b}).astype(jnp.int32)).astype({a}.dtype) * jnp.sum({a})",
    "(({a} > 0).astype(int) @ jnp.arange({a}.shape[-1])) @ {a}",
    "({a}.astype(jnp.float32) @ {b}.astype(jnp.float32)).astype({a}.dtype)",
    "jnp.matmul({a}, {b}, preferred_element_type=jnp.float64).astype({a}.dtype)",
    "lax.stop_gradient({a}) @ {b}",
    "({a} > 0) @ {b}",
    "jnp.sum(({a} > 0) @ ({b} > 0.1)) * {a}",
    "jnp.arange({a}.shape[0]) @ {a}",
)
# Most functions use the results once more, element by element.
KINDS = ((PRODUCTS, 0.5), (LOOPS, 0.12), (MIXED, 0.08))
# Ways to map a function, by the number of axes of points.
WAYS = {
    0: ("jax.jit({jac})", "jax.jit({jac})", "{jac}", "jax.jit(jax.checkpoint({jac}))", "jax.jit(jax.jit({jac}))"),
    1: ("jax.jit(jax.vmap({jac}))", "jax.vmap(jax.jit({jac}))", "jax.jit(jax.vmap(jax.jit({jac})))", "jax.vmap({jac})"),
    2: (
        "jax.jit(jax.vmap(jax.vmap({jac})))",
        "jax.vmap(jax.jit(jax.vmap({jac})))",
        "jax.vmap(jax.vmap(jax.jit({jac})))",
    ),
}
DERIVED = (
    "lambda *a: jax.jvp(jax.jit({jac}), a, a)[1]",
    "lambda *a: jax.grad(lambda *a: sum(jnp.sum(j * j) for j in jax.tree.leaves(jax.jit({jac})(*a))))(*a)",
    "jax.vmap(jax.grad(lambda *a: sum(jnp.sum(j * j) for j in jax.tree.leaves(jax.jit({jac})(*a)))))",
    "jax.jit(jax.vmap(lambda *a: jax.vjp(jax.jit({jac}), *a)[1](jax.jit({jac})(*a))))",
    "jax.jacfwd(jax.jit({jac}))",
)
BATCHES = (1, 3, 17)
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e300, 1e-300)


def attempts(seed: int, number: int) -> list[Case]:
    """A network or recursion with random matrices, with low limits."""
    rng = np.random.default_rng((seed, number, 11))
    names = ("x", "y", "w")[: int(rng.integers(1, 4))]
    body = random_body(rng, _matching_shapes(rng, names), int(rng.integers(1, 7)), _expression, CONSTANTS, most=120)
    return [_mapped(rng, _case(rng, names, body))]


def _matching_shapes(rng: np.random.Generator, names: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """Shapes with few different sizes, so that many products are possible."""
    sizes = [int(n) for n in rng.choice([0, 1, 2, 3, 4, 5, 7], 2, p=[0.04, 0.12, 0.2, 0.2, 0.2, 0.12, 0.12])]
    ranks = rng.choice([0, 1, 2, 3], len(names), p=[0.08, 0.3, 0.47, 0.15])
    return {name: tuple(int(n) for n in rng.choice(sizes, rank)) for name, rank in zip(names, ranks, strict=True)}


def _expression(rng: np.random.Generator, shapes: dict[str, tuple[int, ...]]) -> str:
    kind = int(rng.choice(len(KINDS) + 1, p=[*(share for _, share in KINDS), 1 - sum(share for _, share in KINDS)]))
    if kind == len(KINDS):
        return random_expression(rng, shapes)
    templates = KINDS[kind][0]
    a, b = (str(name) for name in rng.choice(list(shapes), 2))
    return templates[rng.integers(len(templates))].format(a=a, b=b, k=int(rng.integers(3)))


def _case(rng: np.random.Generator, names: tuple[str, ...], body: Body) -> Case:
    single = rng.random() < 0.3
    args = tuple(
        np.asarray(rng.uniform(-1.0, 1.0, body.shapes[name]), np.float32 if single else float) for name in names
    )
    chosen = [n for n in range(len(names)) if rng.random() < 0.7] or [0]
    argnums = chosen[0] if len(chosen) == 1 else tuple(chosen)
    last, other = list(body.shapes)[-1], str(rng.choice(list(body.shapes)))
    results = (last, last, last, f"({last}, {other})", f"{{'a': {last}, 'b': [jnp.sum({other})]}}")
    result, aux = results[rng.integers(len(results))], rng.random() < 0.15
    if aux:
        result = f"{result}, ({other}, jnp.sum({last}) > 0)"
    text = " ".join(body.lines)
    loose = single or "float32" in text
    mode = "value_and_jac" if rng.random() < 0.25 else "jac"
    way = f"{mode}(f, argnums={argnums}{', has_aux=True' if aux else ''})"
    tolerance = Tolerance(double=1e-5 if loose else 1e-9, single=2e-3)
    options = str(rng.choice(["", 'backend="native"']))
    case = Case(names, body.lines, result, args, way, options, before=(*LOWERED, *CONSTANTS), tolerance=tolerance)
    return replace(case, judged=_judged_by_either)


def _mapped(rng: np.random.Generator, case: Case) -> Case:
    """The case under some transformation, with low limits."""
    axes = int(rng.choice([0, 0, 1, 1, 2]))
    shape = tuple(int(n) for n in rng.choice(BATCHES, axes))
    args = tuple(_points(arg, shape) for arg in case.args)
    if rng.random() < 0.15:
        args = tuple(_with_special(rng, arg) for arg in args)
    ways = WAYS[axes]
    if rng.random() < 0.12 and axes < 2 and "has_aux" not in case.way and "while_loop" not in " ".join(case.lines):
        ways = [way for way in DERIVED if ("vmap" in way) == (axes == 1)]
    way = str(ways[rng.integers(len(ways))])
    limits = (
        f"{int(rng.choice([1, 2, 5, 20, 60, 200]))}, {int(rng.choice([40, 200, 1_000, 8_000]))}, "
        f"{bool(rng.random() < 0.5)}, {int(rng.choice([0, 8, 1_000]))}"
    )
    plain = way.format(jac=case.way)
    theirs = f"({plain})(*args)"
    return replace(case, args=args, way=f"lowered(lambda: {theirs}, {limits})", theirs=theirs)


def _points(arg: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    factors = 1 - np.arange(np.prod(shape)).reshape((*shape, *(1,) * arg.ndim)) / 20
    return np.asarray(factors * arg, arg.dtype)


def _with_special(rng: np.random.Generator, arg: np.ndarray) -> np.ndarray:
    if not arg.size:
        return arg
    flat = arg.ravel().copy()
    with np.errstate(over="ignore"):
        flat[rng.integers(flat.size)] = rng.choice(SPECIAL)
    return flat.reshape(arg.shape)


def _judged_by_either(got: object, references: References, tolerance: Tolerance) -> Verdict:
    """Judge results of passes, which have the infinities of their mode. Those of either mode are right."""
    verdict = judge(got, references, tolerance)
    if verdict.problem is None or not references.reverse:
        return verdict
    other = judge(got, replace(references, forward=references.reverse, reverse=references.forward), tolerance)
    return other if other.problem is None else verdict
