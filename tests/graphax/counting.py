"""Counting the arithmetic of a jaxpr."""

from math import prod

import numpy as np


def count_arithmetic(closed_jaxpr, free_others: bool = False) -> tuple[int, int]:
    """Multiplications and additions in a jaxpr of linear algebra. With ``free_others``, other operations are free."""
    multiplications = additions = 0
    for eqn in closed_jaxpr.jaxpr.eqns:
        name, out = eqn.primitive.name, eqn.outvars[0].aval
        if name in ("jit", "pjit", "scan"):
            times = eqn.params["length"] if name == "scan" else 1
            inner = count_arithmetic(eqn.params["jaxpr"], free_others)
            multiplications, additions = multiplications + times * inner[0], additions + times * inner[1]
        elif not np.issubdtype(out.dtype, np.inexact):
            # Positions that are known only at run time are computed as well.
            continue
        elif name == "mul":
            multiplications += out.size
        elif name in ("add", "add_any", "sub"):
            additions += out.size
        elif name == "reduce_sum":
            additions += eqn.invars[0].aval.size - out.size
        elif name == "dot_general":
            (contracting, _), _ = eqn.params["dimension_numbers"]
            length = prod(eqn.invars[0].aval.shape[n] for n in contracting)
            multiplications += out.size * length
            additions += out.size * (length - 1)
        else:
            assert free_others or name in FREE, f"{name} was not expected in an accumulation"
    return multiplications, additions


FREE = {
    "neg", "reshape", "transpose", "slice", "rev", "pad", "concatenate", "broadcast_in_dim", "select_n", "iota", "eq",
    "and", "or", "convert_element_type", "squeeze", "gather", "dynamic_slice", "scatter-add",
    "graphax_nothing",
}  # fmt: skip
