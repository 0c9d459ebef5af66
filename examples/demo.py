"""The Jacobian of a flux solver by elimination: what each order costs, and that all of them are exact."""

import jax
import jax.numpy as jnp
import numpy as np

import graphax as gx
from alphagrad.tasks.fluids import roe_flux_1d
from graphax.display import table

jax.config.update("jax_enable_x64", True)

STATE = (1.0, 0.3, 2.0, 0.8, 0.2, 1.7)
INPUTS = tuple(range(6))
MEANING = {
    "fwd": "forward mode",
    "rev": "reverse mode",
    "markowitz": "cheapest vertex first",
    "preelim_rev": "values used once first",
    "auto": "the best preset, common subexpressions removed",
}


def largest_difference(first, second) -> float:
    pairs = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    return max(float(jnp.max(jnp.abs(a - b))) for a, b in pairs)


def main() -> None:
    graph = gx.build_graph(roe_flux_1d, *STATE, argnums=INPUTS)
    simplified = gx.build_graph(roe_flux_1d, *STATE, argnums=INPUTS, simplify=True)
    exact = jax.jacfwd(roe_flux_1d, argnums=INPUTS)(*STATE)

    rows = []
    for order, meaning in MEANING.items():
        costed = simplified if order == "auto" else graph
        cost, raw = costed.cost(order), costed.cost(order, counting="raw")
        jacobian = jax.jit(gx.jacve(roe_flux_1d, order, argnums=INPUTS))(*STATE)
        error = largest_difference(jacobian, exact)
        rows.append([order, meaning, cost.multiplications, cost.additions, raw.multiplications, f"{error:.0e}"])

    print("RoeFlux_1d: the flux between two cells of a gas, 6 inputs, 3 outputs")
    print(f"{graph}\n")
    names = ["order", "", "multiplications", "additions", "raw multiplications", "error against jacfwd"]
    print(table("Every order gives the same Jacobian; they differ in cost", names, rows))

    def layer(w, x):
        return jnp.tanh(w @ x)

    w, x = np.ones((3, 4)), np.ones(4)
    print("\nSparsity is kept: the Jacobian of tanh(W x) by W is 3 x 3 x 4 with a delta, and stores 12 numbers")
    print(gx.jacve(layer, sparse=True)(w, x))
    print(f"\nLargest error of 3 random probes against jax.jvp: {gx.check_jacobian(layer, w, x, argnums=(0, 1)):.1e}")
    print("\nMore: print(graphax.explain(f, *args)) shows what every elimination costs.")


if __name__ == "__main__":
    main()
