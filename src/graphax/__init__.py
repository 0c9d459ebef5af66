"""Exact Jacobians of JAX functions by cross-country (vertex) elimination.

import graphax as gx

J = gx.jacve(f)(*xs)                         # a good order, found in milliseconds
J = gx.jacve(f, order="rev")(*xs)            # a preset
J = gx.jacve(f, order=[3, 1, 2])(*xs)        # any order gives the same Jacobian
print(gx.explain(f, *xs))                    # what it costs, and why
"""

from .api import check_jacobian, hessve, jacve, value_and_jacve
from .axes import Digit
from .block import JacobianBlock
from .display import Explanation, explain
from .errors import FingerprintError, GraphaxError, JacobianMismatch, NativeError, OrderError, RuleError
from .graph import ComputationGraph, build_graph
from .order import PRESETS, Order
from .plan import Cost, Plan
from .rule import LinearCall, register_rule, supported_primitives
from .sparsity_type import sparsity_type
from .structure import Structure

__all__ = [
    "PRESETS",
    "ComputationGraph",
    "Cost",
    "Digit",
    "Explanation",
    "FingerprintError",
    "GraphaxError",
    "JacobianBlock",
    "JacobianMismatch",
    "LinearCall",
    "NativeError",
    "Order",
    "OrderError",
    "Plan",
    "RuleError",
    "Structure",
    "build_graph",
    "check_jacobian",
    "explain",
    "hessve",
    "jacve",
    "register_rule",
    "sparsity_type",
    "supported_primitives",
    "value_and_jacve",
]
