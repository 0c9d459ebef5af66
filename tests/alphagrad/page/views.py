"""Views for tests: small and large graphs, of single numbers and of arrays."""

from functools import lru_cache

import jax.numpy as jnp
from jax import lax

from alphagrad import tasks
from alphagrad.page.view import View, make_view
from graphax import build_graph

ORDERS = ("fwd", "rev", "markowitz", "preelim_rev")


def five(x, y):
    """A function with five vertices to eliminate and two outputs."""
    a = jnp.sin(x * y)
    b = (jnp.exp(a) + x) * y
    return b * a, b / y


def lorenz(y, p):
    """A loop between other values. Its body has more vertices than the graph around it."""

    def step(y, _):
        a, b, c = y
        return y + 0.01 * jnp.stack([p[0] * (b - a), a * (p[1] - c) - b, a * b - p[2] * c]), None

    return jnp.sin(lax.scan(step, y * y, None, length=5)[0])


def nested(y, p):
    def step(y, _):
        return lax.scan(lambda z, k: (jnp.sin(z) * p[0] + y * k, z[0]), y, p)

    return lax.scan(step, y, None, length=3)


LOOPS = {"lorenz": lorenz, "nested": nested}


@lru_cache(16)
def graph_of(name):
    if name == "five":
        return build_graph(five, 0.5, 1.5, argnums=(0, 1))
    if name in LOOPS:
        return build_graph(LOOPS[name], jnp.arange(3.0), jnp.arange(4.0), argnums=(0, 1))
    if name == "random 500":
        function = tasks.random_function(3, inputs=12, outputs=8, intermediates=480, ranks=(0,))
        return build_graph(function, *function.args, argnums=tuple(range(12)))
    return tasks.get(name).graph()


def view_of(name, counting="folded", orders=ORDERS) -> View:
    return make_view(name, graph_of(name), counting, orders, budget=0.2)
