"""Search for elimination orders of two functions of the paper, and check the Jacobian of the best order."""

import time

import jax
import jax.numpy as jnp

import alphagrad
import graphax as gx
from alphagrad import tasks
from graphax.table import table

jax.config.update("jax_enable_x64", True)

SECONDS = 4


def searched(task, counting, simplify=False):
    # The demo leaves nothing in the user's cache folder.
    return alphagrad.search(task, budget=SECONDS, counting=counting, simplify=simplify, record=False)


def row(label, result):
    costs = [cost.multiplications for _, cost in result.compared()]
    certificate = result.certificate.partition(" (")[0]
    return [label, *costs, f"{result.bound:>8g}", certificate, f"{1000 * result.seconds:5,.0f} ms"]


def compare(task, variants):
    """Search with each kind of counting, and print the results beside the paper's."""
    paper = task.paper
    rows = [["the paper, raw", paper.forward, paper.reverse, paper.markowitz, paper.alphagrad, "", "", ""]]
    results = {label: searched(task, *options) for label, options in variants.items()}
    rows += [row(label, result) for label, result in results.items()]
    names = ["multiplications", "forward", "reverse", "Markowitz", "best found", "at least", "", "searched"]
    print(table(f"\n{task.name}: {task.description}", names, rows), flush=True)
    return results


def largest_difference(first, second) -> float:
    pairs = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    return max(float(jnp.max(jnp.abs(a - b))) for a, b in pairs)


def check(task, order) -> None:
    """Compare the Jacobian by this order with JAX's, with and without `jax.jit`."""
    point = task.arguments()
    exact = jax.jit(jax.jacfwd(task.function, argnums=task.argnums))(*point)
    jacobian = gx.jacve(task.function, order=order, argnums=task.argnums)
    errors = [largest_difference(derive(*point), exact) for derive in (jacobian, jax.jit(jacobian))]
    print(f"\nJacobian of {task.name} by the order with {order.cost} multiplications, in float64:")
    print("largest difference from jax.jacfwd: {:.1e}, under jax.jit: {:.1e}".format(*errors))
    if not max(errors) < 1e-10:
        raise SystemExit("the Jacobians differ")


def main() -> None:
    began = time.monotonic()
    print("Preparing the search: compiled once per installation, which takes up to half a minute...", flush=True)
    searched(tasks.get("EnzymeReaction"), "raw")
    print(
        f"ready after {time.monotonic() - began:.0f} s; a search ends after {SECONDS} s, or when its order is optimal"
    )

    flux, arm = tasks.get("RoeFlux_1d"), tasks.get("RobotArm_6DOF")
    counted = {"raw": ("raw",), "folded (executed)": ("folded",), "folded, simplified": ("folded", True)}
    found = compare(flux, counted)
    compare(arm, {"raw": ("raw",)})
    check(flux, found["folded, simplified"].order)
    print("\nSearch for your own function: alphagrad search module:function --args module:make_args")


if __name__ == "__main__":
    main()
