"""Search for elimination orders of two functions of the paper, and check the Jacobian that the best one gives."""

import time

import jax
import jax.numpy as jnp

import alphagrad
import graphax as gx
from alphagrad import tasks
from graphax.display import table

jax.config.update("jax_enable_x64", True)

SECONDS = 2


def searched(task, counting, simplify=False):
    # Nothing is kept: the demo leaves no traces in the user's cache.
    return alphagrad.search(task, budget=SECONDS, counting=counting, simplify=simplify, record=False)


def row(label, result):
    costs = [cost.multiplications for _, cost in result.compared()]
    return [label, *costs, int(result.bound), result.certificate.partition(" (")[0], f"{result.seconds:.2f} s"]


def compare(task, variants):
    """Search by each way of counting, and print what was found next to what the paper has."""
    paper = task.paper
    rows = [["the paper, raw", paper.forward, paper.reverse, paper.markowitz, paper.alphagrad, 0, "", ""]]
    results = {label: searched(task, *options) for label, options in variants.items()}
    rows += [row(label, result) for label, result in results.items()]
    names = ["multiplications", "forward", "reverse", "Markowitz", "best found", "at least", "", "searched"]
    print(table(f"\n{task.name}: {task.description}", names, rows), flush=True)
    return results


def largest_difference(first, second) -> float:
    pairs = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    return max(float(jnp.max(jnp.abs(a - b))) for a, b in pairs)


def check(task, order) -> None:
    """Compare the Jacobian by this order with that of JAX, compiled and not."""
    point = task.arguments()
    jacobian = gx.jacve(task.function, order=order, argnums=task.argnums)
    exact = jax.jit(jax.jacfwd(task.function, argnums=task.argnums))(*point)
    print(f"\nThe Jacobian of {task.name} by the last order, against jax.jacfwd in float64:")
    print(f"largest error {largest_difference(jacobian(*point), exact):.1e}, ", end="")
    print(f"under jax.jit {largest_difference(jax.jit(jacobian)(*point), exact):.1e}")


def main() -> None:
    began = time.monotonic()
    print("Preparing the search: its kernels are compiled once per installation, which takes half a minute...", flush=True)
    searched(tasks.get("EnzymeReaction"), "raw")
    print(f"ready after {time.monotonic() - began:.0f} s; now {SECONDS} s for each search, less where it can prove more")

    flux, arm = tasks.get("RoeFlux_1d"), tasks.get("RobotArm_6DOF")
    counted = {"raw": ("raw",), "folded (executed)": ("folded",), "folded, simplified": ("folded", True)}
    found = compare(flux, counted)
    compare(arm, {"raw": ("raw",)})
    check(flux, found["folded, simplified"].order)
    print("\nSearch for your own function: alphagrad search module:function --args module:make_args")


if __name__ == "__main__":
    main()
