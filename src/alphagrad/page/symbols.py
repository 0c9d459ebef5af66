"""Short names of operations, which fit inside a vertex."""

_SYMBOLS = {
    "abs": "|x|",
    "add": "+",
    "add_any": "+",
    "broadcast_in_dim": "⇶",
    "concatenate": "⧺",
    "convert_element_type": "type",
    "cumsum": "Σ↓",
    "div": "÷",
    "dot_general": "A·B",
    "dynamic_slice": "[i]",
    "exp": "eˣ",
    "gather": "[i]",
    "integer_pow": "xⁿ",
    "log": "ln",
    "log1p": "ln1+",
    "logistic": "σ",
    "mul": "×",
    "neg": "−x",
    "pow": "xʸ",
    "reduce_max": "max",
    "reduce_min": "min",
    "reduce_prod": "Π",
    "reduce_sum": "Σ",
    "reshape": "▭",
    "rsqrt": "1/√",
    "select_n": "?:",
    "slice": "[:]",
    "sqrt": "√",
    "square": "x²",
    "squeeze": "▭",
    "stack": "⊞",
    "sub": "−",
    "transpose": "Aᵀ",
}
# The number of characters that fit inside a circle of the usual size.
_MOST = 4


def symbol_of(name: str) -> str:
    """The symbol of an operation: its sign, its name if that is short, or the beginning of its name."""
    return _SYMBOLS.get(name) or (name if len(name) <= _MOST else f"{name[: _MOST - 1]}…")
