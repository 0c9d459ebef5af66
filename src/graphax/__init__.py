"""Exact Jacobians of JAX functions by cross-country (vertex) elimination.

import graphax as gx

J = gx.jacve(f)(*xs)                         # a good order, found in milliseconds
J = gx.jacve(f, order="rev")(*xs)            # a preset
J = gx.jacve(f, order=[3, 1, 2])(*xs)        # any order gives the same Jacobian
print(gx.explain(f, *xs))                    # what it costs, and why
"""

from typing import TYPE_CHECKING

from .modules import lazily

if TYPE_CHECKING:
    from .api import check_jacobian, hessve, jacve, value_and_jacve
    from .axes import Digit
    from .block import JacobianBlock
    from .display import Explanation, explain
    from .errors import FingerprintError, GraphaxError, JacobianMismatch, NativeError, OrderError, RuleError
    from .graph import ComputationGraph, build_graph
    from .order import PRESETS, Order
    from .plan import Cost, Plan
    from .rule import LinearCall, register_rule, supported_primitives
    from .sparsity_types import sparsity_type
    from .structure import Structure

_PLACES = {
    "api": ("check_jacobian", "hessve", "jacve", "value_and_jacve"),
    "axes": ("Digit",),
    "block": ("JacobianBlock",),
    "display": ("Explanation", "explain"),
    "errors": ("FingerprintError", "GraphaxError", "JacobianMismatch", "NativeError", "OrderError", "RuleError"),
    "graph": ("ComputationGraph", "build_graph"),
    "order": ("PRESETS", "Order"),
    "plan": ("Cost", "Plan"),
    "rule": ("LinearCall", "register_rule", "supported_primitives"),
    "sparsity_types": ("sparsity_type",),
    "structure": ("Structure",),
}
__all__ = sorted(name for names in _PLACES.values() for name in names)
# Counting and searching need shapes only, so JAX is not imported before something needs it.
__getattr__ = lazily(__name__, _PLACES)
