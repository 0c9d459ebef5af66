"""Random numbers for kernels: a counter in an array of one word, mixed."""

import numpy as np

from .compiling import compiled, inlined

MIX = np.uint64(0x9E3779B97F4A7C15)
MIX_2 = np.uint64(0xBF58476D1CE4E5B9)


@inlined
def mixed(x):
    x = (x ^ (x >> np.uint64(30))) * MIX_2
    return x ^ (x >> np.uint64(27))


@compiled
def random_bits(rng):
    rng[0] += MIX
    return mixed(rng[0])


@compiled
def random_unit(rng):
    """A uniform random number in (0, 1]."""
    return (np.float64(random_bits(rng) >> np.uint64(11)) + 1.0) * 2.0**-53


@compiled
def random_below(rng, limit):
    return np.int64(random_bits(rng) >> np.uint64(33)) % limit
