"""Dense Jacobians of functions that pick entries by constant indices or multiply by constants that are mostly zeros.

    python benchmarks/gathers.py [--repeat 31] [--cases skinning,kinetics]

For each case it prints the median milliseconds of `jax.jit(gx.jacve(f))` and of the better of `jax.jacfwd` and
`jax.jacrev`, measured alternately in float32, and the largest error of both against `jax.jacfwd` in float64, relative
to the largest entry.
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

Case = tuple[Callable[[Any], Any], np.ndarray, bool]


def skinning(rng: np.random.Generator) -> Case:
    """A hand with 22 bones, 26 parameters and 544 vertices. Four bones move each vertex; 800 vertices are picked."""
    bones, vertices, fingers = 22, 544, 5
    weights = np.zeros((vertices, bones))
    near = np.argsort(rng.random((vertices, bones)), 1)[:, :4]
    np.put_along_axis(weights, near, rng.dirichlet(np.ones(4), vertices), 1)
    rest, offsets, seen = rng.random((vertices, 3)), rng.random((4, fingers, 3)), rng.random((800, 3))
    picked = rng.integers(0, vertices, 800)

    def turns(axis, angles):
        """Rotations about an axis, one per angle."""
        cos, sin, one, zero = jnp.cos(angles), jnp.sin(angles), jnp.ones_like(angles), jnp.zeros_like(angles)
        about_first = jnp.array([[one, zero, zero], [zero, cos, -sin], [zero, sin, cos]])
        return jnp.moveaxis(jnp.roll(about_first, (axis, axis), (0, 1)), (0, 1), (-2, -1))

    def distances(pose):
        whole, shift, joints = pose[:3], pose[3:6], pose[6:].reshape(4, fingers)
        turned, moved = [jnp.broadcast_to(jnp.eye(3), (2, 3, 3))], [jnp.zeros((2, 3))]
        rotation, place = jnp.broadcast_to(jnp.eye(3), (fingers, 3, 3)), jnp.zeros((fingers, 3))
        for joint, offset in enumerate(offsets):
            place = place + jnp.einsum("fij,fj->fi", rotation, offset.astype(pose.dtype))
            rotation = rotation @ turns(joint % 2 * 2, joints[joint])
            turned, moved = [*turned, rotation], [*moved, place]
        each = jnp.einsum("bij,vj->bvi", jnp.concatenate(turned), rest.astype(pose.dtype))
        each = each + jnp.concatenate(moved)[:, None]
        blended = jnp.einsum("vb,bvi->vi", weights.astype(pose.dtype), each)
        frame = turns(0, whole[0]) @ turns(1, whole[1]) @ turns(2, whole[2])
        return seen.astype(pose.dtype) - (blended @ frame.T + shift)[picked]

    return distances, rng.normal(size=26), False


def kinetics(rng: np.random.Generator) -> Case:
    """Mass action between 53 species in 325 reactions of two reactants and two products, at 256 points."""
    species, reactions = 53, 325
    used, made = np.zeros((2, reactions, species))
    for matrix in (used, made):
        pairs = np.argsort(rng.random((reactions, species)), 1)[:, :2]
        np.put_along_axis(matrix, pairs, 1.0, 1)
    speed = rng.random(reactions)

    def rates(amounts):
        logarithms = used.astype(amounts.dtype) @ jnp.log(amounts)
        rate = speed.astype(amounts.dtype) * jnp.exp(logarithms)
        return (made - used).T.astype(amounts.dtype) @ rate

    return rates, rng.random((256, species)) + 0.5, True


CASES = {case.__name__: case for case in (skinning, kinetics)}


def milliseconds(function: Callable, x: Any) -> float:
    start = time.perf_counter()
    jax.block_until_ready(function(x))
    return 1e3 * (time.perf_counter() - start)


def report(name: str, repeat: int) -> None:
    function, point, mapped = CASES[name](np.random.default_rng(0))
    outer = jax.vmap if mapped else lambda each: each
    ways = {key: jax.jit(outer(way(function))) for key, way in
            {"graphax": gx.jacve, "jacfwd": jax.jacfwd, "jacrev": jax.jacrev}.items()}  # fmt: skip
    want = np.asarray(ways["jacfwd"](jnp.asarray(point, jnp.float64)))
    x = jnp.asarray(point, jnp.float32)
    errors = {key: np.max(np.abs(np.asarray(way(x)) - want)) / np.max(np.abs(want)) for key, way in ways.items()}
    better = min("jacfwd", "jacrev", key=lambda key: milliseconds(ways[key], x))
    times = {"graphax": [], better: []}
    for _ in range(repeat):
        for key, found in times.items():
            found.append(milliseconds(ways[key], x))
    median = {key: float(np.median(found)) for key, found in times.items()}
    ours, theirs = median["graphax"], median[better]
    print(
        f"| {name} | {ours:.3f} | {theirs:.3f} ({better}) | {theirs / ours:.1f} "
        f"| {errors['graphax']:.1e} | {errors[better]:.1e} |",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--repeat", type=int, default=31)
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print("| case | call [ms] | JAX [ms] | ratio | error | of JAX |\n|---|" + "--:|" * 5)
    for name in arguments.cases.split(","):
        report(name, arguments.repeat)
    return 0


if __name__ == "__main__":
    sys.exit(main())
