"""Random straight-line programs, with JAX's whole vocabulary of array operations."""

from dataclasses import replace

import numpy as np

from .case import Case
from .expressions import CONSTANTS, Body, random_body, random_shape

NAMES = ("x", "y", "w")


def attempts(seed: int, number: int) -> list[Case]:
    """A program run eagerly, and now and then compiled, mapped or as a kernel."""
    rng = np.random.default_rng((seed, number, 2))
    case = random_case(rng, steps=int(rng.integers(1, 9)))
    found = [case]
    if number % 4 == 0:
        found.append(replace(case, way=f"jax.jit({case.way[: -len('(*args)')]})(*args)", theirs=case.way))
    if number % 8 == 1:
        call = case.way[: -len("(*args)")]
        found.append(replace(case, way=f"jax.jit({call})(*args)", theirs=case.way, options='backend="native"'))
    if number % 8 == 5:
        found.append(mapped(case))
    return found


def random_case(rng: np.random.Generator, steps: int, body: Body | None = None) -> Case:
    """A program with a random number of arguments and results, some of them in trees."""
    if body is None:
        count = int(rng.integers(1, 4))
        body = random_body(rng, {name: random_shape(rng) for name in NAMES[:count]}, steps)
    params = tuple(name for name in NAMES if name in body.shapes)
    args = tuple(rng.uniform(-1.0, 1.0, body.shapes[name]) for name in params)
    chosen = sorted(int(n) for n in rng.choice(len(params), int(rng.integers(1, len(params) + 1)), replace=False))
    argnums = chosen[0] if len(chosen) == 1 and rng.random() < 0.7 else tuple(chosen)
    result, aux = _result(rng, list(body.shapes))
    options = f"argnums={argnums}" + (", has_aux=True" if aux else "")
    case = Case(params, body.lines, result, args, f"jac(f, {options})(*args)", before=CONSTANTS)
    return in_one_tree(case) if rng.random() < 0.15 and argnums == 0 and not aux else case


def _result(rng: np.random.Generator, names: list[str]) -> tuple[str, bool]:
    """What a program returns, and whether some of it is auxiliary."""
    last, other = names[-1], str(rng.choice(names))
    if rng.random() < 0.6:
        return last, False
    trees = (
        f"({last}, {other})",
        f"[{last}]",
        f"{{'a': {last}, 'b': ({other}, {last})}}",
        f"({last}, None, {other})",
        f"({last}, jnp.zeros((2,)), 3.0)",
    )
    if rng.random() < 0.3:
        return f"{last}, {{'aux': {other}, 'n': jnp.argmax({last}) if {last}.size else 1}}", True
    return trees[rng.integers(len(trees))], False


def in_one_tree(case: Case) -> Case:
    """The same with all arguments in one dictionary."""
    from .case import written

    tree = ", ".join(f"'{name}': {written(arg)}" for name, arg in zip(case.params, case.args, strict=True))
    lines = (f"{', '.join(case.params)}, = p.values()", *case.lines)
    return replace(case, params=("p",), lines=lines, args=(f"{{{tree}}}",))


def mapped(case: Case) -> Case:
    """The same under `jax.vmap`, over two points of every argument."""
    if any(isinstance(arg, str) for arg in case.args):
        return case
    args = tuple(np.stack([arg, 0.5 - arg]) for arg in case.args)
    return replace(case, args=args, way=f"jax.vmap({case.way[: -len('(*args)')]})(*args)")
