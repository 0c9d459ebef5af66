"""All first-order and second-order greeks of a book of options, by the Jacobian of a gradient.

python examples/greeks.py [--options 100000]
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np
from comparing import race

import graphax as gx
from alphagrad.tasks.finance import black_scholes_price
from graphax.table import table

jax.config.update("jax_enable_x64", True)

ARGUMENTS = tuple(range(5))
NAMES = ("spot", "strike", "rate", "volatility", "maturity")


def book(options):
    """Spots, strikes, rates, volatilities and maturities."""
    rng = np.random.default_rng(0)
    ranges = ((80, 120), (80, 120), (0.0, 0.05), (0.1, 0.4), (0.1, 2.0))
    return [rng.uniform(low, high, options) for low, high in ranges]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--options", type=int, default=100_000)
    options = parser.parse_args().options
    gradient = gx.jacve(black_scholes_price, order="rev", argnums=ARGUMENTS)
    ways = {
        "graphax.jacve of jacve": gx.jacve(gradient, argnums=ARGUMENTS),
        "jax.hessian": jax.hessian(black_scholes_price, ARGUMENTS),
        "jax.jacrev of jax.grad": jax.jacrev(jax.grad(black_scholes_price, ARGUMENTS), ARGUMENTS),
    }
    title = f"second-order greeks of {options:,} options"
    found = race(title, lambda jacobian, *args: jax.vmap(jacobian)(*args), ways, *book(options))
    totals = np.array([[float(jnp.sum(entry)) for entry in row] for row in found])
    rows = [[name, *(f"{value:.4g}" for value in row)] for name, row in zip(NAMES, totals, strict=True)]
    print(table("\nsummed over the book", ["", *NAMES], rows))
    print(f"gamma of the book: {totals[0, 0]:.6g}; vanna: {totals[0, 3]:.6g}; symmetric to {asymmetry(totals):.1e}")


def asymmetry(matrix):
    return np.max(np.abs(matrix - matrix.T)) / np.max(np.abs(matrix))


if __name__ == "__main__":
    main()
