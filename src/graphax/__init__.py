"""Exact Jacobians of JAX functions by cross-country (vertex) elimination.

import graphax as gx

J = gx.jacve(f)(*xs)                         # a good order, found in milliseconds
J = gx.jacve(f, order="rev")(*xs)            # a preset
J = gx.jacve(f, order=[3, 1, 2])(*xs)        # any order gives the same Jacobian
print(gx.explain(f, *xs))                    # what it costs, and why
"""

from typing import TYPE_CHECKING

from .modules import Moved, lazily

if TYPE_CHECKING:
    from .api import build_graph, hessve, jacve, kernel, sparsity, value_and_jacve, value_grad_hess
    from .axes import Digit
    from .block import JacobianBlock
    from .calibration import calibrate
    from .check import check_jacobian
    from .entries import Sparsity
    from .errors import FingerprintError, GraphaxError, JacobianMismatch, NativeError, OrderError, RuleError
    from .explanation import Explanation, explain
    from .graph import ComputationGraph
    from .least_squares import NormalEquations, gauss_newton
    from .order import Order
    from .plan import Cost, Plan
    from .presets import PRESETS
    from .rule import LinearCall, register_rule
    from .rules import supported_primitives
    from .sparsity_types import sparsity_type
    from .speeds import Speeds
    from .structure import Structure
    from .terms import Terms

_PLACES = {
    "api": ("build_graph", "hessve", "jacve", "kernel", "sparsity", "value_and_jacve", "value_grad_hess"),
    "axes": ("Digit",),
    "block": ("JacobianBlock",),
    "calibration": ("calibrate",),
    "check": ("check_jacobian",),
    "entries": ("Sparsity",),
    "errors": ("FingerprintError", "GraphaxError", "JacobianMismatch", "NativeError", "OrderError", "RuleError"),
    "explanation": ("Explanation", "explain"),
    "graph": ("ComputationGraph",),
    "least_squares": ("NormalEquations", "gauss_newton"),
    "order": ("Order",),
    "plan": ("Cost", "Plan"),
    "presets": ("PRESETS",),
    "rule": ("LinearCall", "register_rule"),
    "rules": ("supported_primitives",),
    "sparsity_types": ("sparsity_type",),
    "speeds": ("Speeds",),
    "structure": ("Structure",),
    "terms": ("Terms",),
}
__all__ = sorted(name for names in _PLACES.values() for name in names)
# Counting and searching need shapes only, so JAX is not imported before something needs it.
__getattr__ = lazily(__name__, _PLACES)
display = Moved("graphax.display", "graphax.table", "graphax.explanation")
