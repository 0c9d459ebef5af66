"""Views for tests: small and large graphs, of single numbers and of arrays."""

from functools import lru_cache

import jax.numpy as jnp

from alphagrad import tasks
from alphagrad.page.view import View, make_view
from graphax import build_graph

ORDERS = ("fwd", "rev", "markowitz", "preelim_rev")


def five(x, y):
    """Five vertices to eliminate, two outputs."""
    a = jnp.sin(x * y)
    b = (jnp.exp(a) + x) * y
    return b * a, b / y


@lru_cache(16)
def graph_of(name):
    if name == "five":
        return build_graph(five, 0.5, 1.5, argnums=(0, 1))
    if name == "random 500":
        function = tasks.random_function(3, inputs=12, outputs=8, intermediates=480, ranks=(0,))
        return build_graph(function, *function.args, argnums=tuple(range(12)))
    return tasks.get(name).graph()


def view_of(name, counting="folded", orders=ORDERS) -> View:
    return make_view(name, graph_of(name), counting, orders, budget=0.2)
