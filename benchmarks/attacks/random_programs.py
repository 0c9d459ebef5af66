"""Random straight-line programs, with JAX's whole vocabulary of array operations."""

from dataclasses import replace

import numpy as np

from .case import Case, written
from .expressions import CONSTANTS, Body, random_body, random_shape
from .law import Tolerance

NAMES = ("x", "y", "w")


def attempts(seed: int, number: int) -> list[Case]:
    """A program that runs compiled, mapped, as a kernel or eagerly."""
    rng = np.random.default_rng((seed, number, 2))
    case = random_case(rng, steps=int(rng.integers(1, 9)))
    return [varied(case, number)]


def varied(case: Case, number: int) -> Case:
    """The case, run in one of several ways. Eager runs are rare, because they take longest."""
    ways = (
        ("", "jit"), ("", ""), ('backend="native"', "jit"), ('backend="xla"', "jit"), ("", "vmap"), ("", "jit"),
        ("", "vmap"),
    )  # fmt: skip
    options, way = ways[number % len(ways)]
    case = replace(case, options=", ".join(filter(None, [case.options, options])))
    if way == "vmap":
        return mapped(case, number // len(ways))
    return jitted(case) if way == "jit" else case


def jitted(case: Case) -> Case:
    return replace(case, way=f"jax.jit({case.way.removesuffix('(*args)')})(*args)", theirs=case.theirs or case.way)


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
    # Parts in single precision limit the accuracy of the whole comparison.
    tolerance = Tolerance(double=1e-5 if "float32" in " ".join(body.lines) else 1e-9)
    case = Case(params, body.lines, result, args, f"jac(f, {options})(*args)", before=CONSTANTS, tolerance=tolerance)
    return in_one_tree(case) if rng.random() < 0.15 and argnums == 0 and not aux else case


def _result(rng: np.random.Generator, names: list[str]) -> tuple[str, bool]:
    """The return value of a program, and whether a part of it is auxiliary."""
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
    """The same case with all arguments in one dictionary."""
    tree = ", ".join(f"'{name}': {written(arg)}" for name, arg in zip(case.params, case.args, strict=True))
    lines = (f"{', '.join(case.params)}, = p.values()", *case.lines)
    return replace(case, params=("p",), lines=lines, args=(f"{{{tree}}}",))


# Work that two points have in common is split off, as if there were many points.
SPLIT = (
    "from graphax import common_work",
    "",
    "def splitting(call):",
    "    usual, common_work._saves = common_work._saves, lambda *_: True",
    "    try:",
    "        return call()",
    "    finally:",
    "        common_work._saves = usual",
    "",
)


def mapped(case: Case, some: int = 0) -> Case:
    """The same case under `jax.vmap`, over two points of every argument, or of those among the bits of ``some``."""
    if any(isinstance(arg, str) for arg in case.args):
        return case
    moving = [bool(some >> n & 1) for n in range(len(case.args))]
    moving = moving if any(moving) else [True] * len(case.args)
    args = tuple(np.stack([arg, 0.5 - arg]) if moves else arg for arg, moves in zip(case.args, moving, strict=True))
    axes = f"({', '.join('0' if moves else 'None' for moves in moving)},)"
    one, within = case.way.removesuffix("(*args)"), some % 3 == 2
    way = f"jax.vmap(jax.jit({one}), {axes})" if within else f"jax.jit(jax.vmap({one}, {axes}))"
    return replace(case, args=args, way=f"splitting(lambda: {way}(*args))", before=(*SPLIT, *case.before))
