"""Warnings about Jacobians that are left to XLA, shown on request."""

import os
import warnings

WARN_VARIABLE = "GRAPHAX_WARN"

_shown: set[str] = set()


def left_to_xla(reason: str) -> None:
    """With ``GRAPHAX_WARN=1``, warn once why a Jacobian is not a kernel. `graphax.explain` always gives the reason."""
    if os.environ.get(WARN_VARIABLE, "0") != "0" and reason not in _shown:
        _shown.add(reason)
        warnings.warn(f"graphax leaves a Jacobian to XLA: {reason}", stacklevel=3)
