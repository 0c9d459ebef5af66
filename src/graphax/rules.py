"""All rules: importing this module fills the table."""

from . import arithmetic_rules, index_rules, moving_rules, nested_rules, window_rules
from .rule import known_primitives

MODULES = (arithmetic_rules, moving_rules, index_rules, window_rules, nested_rules)


def supported_primitives() -> tuple[str, ...]:
    """The linear primitives with a structure rule. Other primitives get dense blocks, with exact results."""
    return known_primitives()
