"""Exact Jacobians of JAX functions by cross-country (vertex) elimination.

import graphax as gx

J = gx.jacve(f)(*xs)                         # a good order, found in milliseconds
J = gx.jacve(f, order="rev")(*xs)            # a preset
J = gx.jacve(f, order=[3, 1, 2])(*xs)        # any order gives the same Jacobian
print(gx.explain(f, *xs))                    # what it costs, and why
"""

from typing import TYPE_CHECKING

from .modules import Moved, lazily
from .version import __version__ as __version__

if TYPE_CHECKING:
    from . import native as native
    from .api import (
        build_graph as build_graph,
        hessve as hessve,
        jacve as jacve,
        kernel as kernel,
        sparsity as sparsity,
        value_and_jacve as value_and_jacve,
        value_grad_hess as value_grad_hess,
    )
    from .axes import Digit as Digit
    from .backend import Backend as Backend
    from .block import JacobianBlock as JacobianBlock
    from .calibration import calibrate as calibrate
    from .check import check_jacobian as check_jacobian
    from .entries import Sparsity as Sparsity
    from .errors import (
        FingerprintError as FingerprintError,
        GraphaxError as GraphaxError,
        JacobianMismatch as JacobianMismatch,
        NativeError as NativeError,
        OrderError as OrderError,
        RuleError as RuleError,
    )
    from .explanation import Explanation as Explanation, explain as explain
    from .graph import ComputationGraph as ComputationGraph
    from .least_squares import NormalEquations as NormalEquations, gauss_newton as gauss_newton
    from .order import Order as Order, OrderLike as OrderLike
    from .plan import Cost as Cost, Plan as Plan
    from .presets import PRESETS as PRESETS
    from .rule import LinearCall as LinearCall, register_rule as register_rule
    from .rules import supported_primitives as supported_primitives
    from .sparsity_types import sparsity_type as sparsity_type
    from .speeds import Speeds as Speeds
    from .structure import Structure as Structure
    from .terms import Terms as Terms

_PLACES = {
    "api": ("build_graph", "hessve", "jacve", "kernel", "sparsity", "value_and_jacve", "value_grad_hess"),
    "axes": ("Digit",),
    "backend": ("Backend",),
    "block": ("JacobianBlock",),
    "calibration": ("calibrate",),
    "check": ("check_jacobian",),
    "entries": ("Sparsity",),
    "errors": ("FingerprintError", "GraphaxError", "JacobianMismatch", "NativeError", "OrderError", "RuleError"),
    "explanation": ("Explanation", "explain"),
    "graph": ("ComputationGraph",),
    "least_squares": ("NormalEquations", "gauss_newton"),
    "order": ("Order", "OrderLike"),
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
if not TYPE_CHECKING:
    __getattr__ = lazily(__name__, _PLACES)
display = Moved("graphax.display", "graphax.table", "graphax.explanation")
