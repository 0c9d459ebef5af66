"""The Jacobians of the layers of a small network for each sample, and how signals grow through the layers.

python examples/layer_jacobians.py [--samples 2048]
"""

import argparse
import itertools

import jax
import jax.numpy as jnp
import numpy as np
from comparing import jacobians, race

from graphax.table import table

# In single precision XLA miscompiles jax.jacfwd of these layers on the CPU, in JAX 0.10.
jax.config.update("jax_enable_x64", True)

WIDTHS = (16, 24, 24, 8)


def layer(w, b, gain, x):
    """A dense layer with a layer norm and a gate."""
    z = w @ x + b
    centred = z - jnp.mean(z)
    normed = gain * centred / jnp.sqrt(jnp.mean(centred**2) + 1e-5)
    return jnp.tanh(normed) * jax.nn.sigmoid(z)


def parameters(rng):
    return [
        (rng.normal(size=(m, n)) / n**0.5, 0.1 * rng.normal(size=m), np.ones(m)) for n, m in itertools.pairwise(WIDTHS)
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=2048)
    samples = parser.parse_args().samples
    rng = np.random.default_rng(0)
    network = parameters(rng)
    inputs = rng.normal(size=(samples, WIDTHS[0]))

    def solve(jacobian, inputs):
        found, x = [], inputs
        for weights in network:
            found.append(jax.vmap(lambda sample, weights=weights: jacobian(*weights, sample))(x))
            x = jax.vmap(lambda sample, weights=weights: layer(*weights, sample))(x)
        return found

    title = f"Jacobians of {len(network)} layers at {samples:,} samples"
    found = race(title, solve, jacobians(layer, 3), inputs)
    rows = []
    for number, matrices in enumerate(found, start=1):
        values = np.linalg.svd(np.asarray(matrices), compute_uv=False)
        rows.append([str(number), str(matrices.shape[1:]), f"{values[:, 0].mean():.3f}", f"{values[:, -1].mean():.1e}"])
    print(table("\nmean singular values", ["layer", "Jacobian", "largest", "smallest"], rows))


if __name__ == "__main__":
    main()
