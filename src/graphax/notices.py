"""What is left to XLA, and why: shown where the user asks for it."""

import os
import warnings

WARN_VARIABLE = "GRAPHAX_WARN"

_shown: set[str] = set()


def left_to_xla(reason: str) -> None:
    """Say once, under ``GRAPHAX_WARN=1``, why a Jacobian is no kernel. `graphax.explain` always says it."""
    if os.environ.get(WARN_VARIABLE, "0") != "0" and reason not in _shown:
        _shown.add(reason)
        warnings.warn(f"graphax leaves a Jacobian to XLA: {reason}", stacklevel=3)
