from .api import check_jacobian, hessve, jacve, value_and_jacve
from .block import JacobianBlock
from .graph import ComputationGraph, build_graph
from .linear_rules import LinearCall, register_rule, supported_primitives
from .order import PRESETS, Order
