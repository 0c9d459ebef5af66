"""How long graphax takes before it computes any number.

    python benchmarks/light.py [--equations 1000] [--repeat 1] [--only scalar_chain]

For functions of about N equations, it prints the time to trace, plan and emit the derivative program (without cached
partial derivatives), and the time that XLA takes to compile it, compared with `jax.jacrev` and `jax.jacfwd`.
"""

import argparse
import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np

import graphax as gx
from graphax.rule import clear_caches


def scalar_chain(equations):
    """Many scalars, each computed from a few earlier ones: the kind of graph that elimination is made for."""
    operations = [
        lambda a, b: jnp.sin(a),
        lambda a, b: a * b,
        lambda a, b: a - b,
        lambda a, b: jnp.tanh(a),
        lambda a, b: a / b,
    ]

    def function(x):
        rng = np.random.default_rng(0)
        values = [x[n] for n in range(8)]
        while len(values) < equations - 12:
            a, b = (values[n] for n in rng.integers(max(0, len(values) - 20), len(values), 2))
            values.append(operations[rng.integers(len(operations))](a, b))
        return jnp.stack(values[-4:])

    return function, jnp.linspace(0.1, 0.9, 8, dtype=jnp.float32)


def deep_network(equations):
    """Matrix products and elementwise layers."""
    layers = equations // 6

    def function(x):
        rng = np.random.default_rng(0)
        for _ in range(layers):
            weights = rng.normal(size=(16, 16)).astype(np.float32) / 4
            y = jnp.tanh(weights @ x + 0.1)
            x = x + y * jnp.cos(x)
        return x[:4]

    return function, jnp.linspace(0.1, 0.9, 16, dtype=jnp.float32)


def vector_loops(equations):
    """Elementwise work on vectors, with slices and sums, as in a discretised equation.

    It has a quarter of the size, because XLA takes minutes to compile such programs, in any mode of differentiation.
    """
    steps = equations // 60

    def function(x):
        for _ in range(steps):
            flux = 0.5 * (x[1:] ** 2 + x[:-1] ** 2) - jnp.abs(x[1:] + x[:-1]) * (x[1:] - x[:-1])
            x = x.at[1:-1].add(-0.01 * (flux[1:] - flux[:-1]))
        return jnp.stack([jnp.sum(x), jnp.sum(x * x)])

    return function, jnp.linspace(0.1, 0.9, 32, dtype=jnp.float32)


def measure(derivative, args):
    start = time.perf_counter()
    lowered = jax.jit(derivative).lower(*args)
    emitted = time.perf_counter()
    lowered.compile()
    return emitted - start, time.perf_counter() - emitted


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--equations", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--only", help="measure only this function")
    options = parser.parse_args()
    print(
        f"{'function':14} {'equations':>9} {'program':>20} {'emit [s]':>9} {'compile [s]':>12} {'compile / jacrev':>17}"
    )
    for make in (scalar_chain, deep_network, vector_loops):
        if options.only not in (None, make.__name__):
            continue
        function, x = make(options.equations)
        count = gx.build_graph(function, x).numbered
        programs = {
            "jacrev": jax.jacrev,
            "jacfwd": jax.jacfwd,
            "jacve auto": gx.jacve,
            "jacve rev": lambda f: gx.jacve(f, order="rev"),
        }
        times = {name: [] for name in programs}
        for _ in range(options.repeat):
            for name, transform in programs.items():
                jax.clear_caches()
                clear_caches()
                times[name].append(measure(transform(function), (x,)))
        median = {
            name: [statistics.median(column) for column in zip(*rows, strict=True)] for name, rows in times.items()
        }
        for name, (emit, compiled) in median.items():
            ratio = compiled / median["jacrev"][1]
            print(f"{make.__name__:14} {count:9d} {name:>20} {emit:9.2f} {compiled:12.2f} {ratio:17.2f}")


if __name__ == "__main__":
    main()
