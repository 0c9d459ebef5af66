"""A stiff network of reactions at many temperatures: diffrax's Kvaerno5, with and without steps as kernels.

    python examples/stiff_network.py [--conditions 10000] [--plot stiff_network.png]

The example is the Belousov-Zhabotinsky reaction in the form of the Oregonator. Its concentrations oscillate over six
orders of magnitude, and its rates depend on the temperature.
"""

import argparse
import statistics
import time

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

from graphax import solvers
from graphax.table import table

jax.config.update("jax_enable_x64", True)

END, SAVED = 30.0, 121
START = np.log([1.0, 2.0, 3.0])


def rates(time, logarithms, temperature):
    """Rates of the logarithms of three concentrations, for a temperature relative to the reference."""
    x, y, z = jnp.exp(logarithms)
    speed = jnp.exp(2.0 * (temperature - 1.0))
    production, loss, recovery = 77.27 * speed, 8.375e-6, 0.161 * speed
    return jnp.stack([
        production * (y / x + 1 - y - loss * x),
        (z / y - 1 - x) / 77.27,
        recovery * (x / z - 1),
    ])  # fmt: skip


def concentrations(solver, temperature):
    """The concentrations over time, and the number of steps."""
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(rates), solver, 0.0, END, 1e-4, jnp.asarray(START), temperature,
        stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-4),
        saveat=diffrax.SaveAt(ts=jnp.linspace(0.0, END, SAVED)), max_steps=4096,
    )  # fmt: skip
    return solution.ys, solution.stats["num_steps"]


def race(temperatures, repeat):
    """Run both solvers alternately. Prints a table and returns their results."""
    ways = {"diffrax.Kvaerno5": diffrax.Kvaerno5(), "graphax.solvers.compiled": solvers.compiled(diffrax.Kvaerno5())}
    functions = {name: jax.jit(jax.vmap(lambda t, s=s: concentrations(s, t))) for name, s in ways.items()}
    results = {name: jax.block_until_ready(function(temperatures)) for name, function in functions.items()}
    seconds = {name: [] for name in ways}
    for _ in range(repeat):
        for name, function in functions.items():
            start = time.perf_counter()
            jax.block_until_ready(function(temperatures))
            seconds[name].append(time.perf_counter() - start)
    most = {name: int(steps.max()) for name, (_, steps) in results.items()}
    rows = [[name, f"{statistics.median(times):.2f} s", most[name]] for name, times in seconds.items()]
    print(table(f"{len(temperatures):,} temperatures", ["solver", "median time", "most steps"], rows), flush=True)
    return results.values()


def draw(path, temperatures, logarithms):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.5), constrained_layout=True)
    shown = np.linspace(0, len(temperatures) - 1, min(64, len(temperatures))).astype(int)
    colours = matplotlib.colormaps["plasma"](np.linspace(0.1, 0.9, len(shown)))
    for at, colour in zip(shown, colours, strict=True):
        axes.semilogy(np.linspace(0, END, SAVED), np.exp(logarithms[at, :, 0]), color=colour, linewidth=0.8)
    scale = matplotlib.cm.ScalarMappable(matplotlib.colors.Normalize(temperatures[0], temperatures[-1]), "plasma")
    figure.colorbar(scale, ax=axes, label="temperature / reference")
    axes.set(xlabel="time", ylabel="bromous acid", title="Oregonator")
    figure.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--conditions", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--plot", metavar="PNG", help="draw the concentrations to this file")
    arguments = parser.parse_args()
    temperatures = jnp.linspace(0.8, 1.2, arguments.conditions)
    (expected, steps), (found, taken) = race(temperatures, arguments.repeat)
    difference = float(np.abs(np.asarray(found) - np.asarray(expected)).max())
    same = float(np.mean(np.asarray(steps) == np.asarray(taken)))
    print(f"the same number of steps for {same:.1%} of the temperatures; largest difference {difference:.1e}")
    if arguments.plot:
        draw(arguments.plot, np.asarray(temperatures), np.asarray(found))
        print(f"drawn in {arguments.plot}")


if __name__ == "__main__":
    main()
