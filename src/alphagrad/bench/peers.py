"""Other packages that compute Jacobians, if they are installed and support the task."""

import warnings
from collections.abc import Callable
from importlib import import_module
from math import prod

from ..errors import AlphagradError
from . import casadi_peer
from .case import Case
from .contender import Contender, Ready, made_ready
from .orders import Unavailable

# asdex stores, for every intermediate value, which inputs it depends on; ten times this needs tens of gigabytes.
ASDEX_LIMIT = 100_000_000


def peer(name: str) -> Contender:
    """The contender of this name, whether it is installed or not."""
    if name not in PEERS:
        raise AlphagradError(f"unknown peer {name!r}; choose one of: {', '.join(PEERS)}")

    def prepare(case: Case) -> Ready:
        try:
            import_module(name)
        except ImportError as error:
            raise Unavailable(f"{error}; pip install 'graphax-alphagrad[peers]'") from None
        return PEERS[name](case)

    return Contender(name, prepare)


def _asdex(case: Case) -> Ready:
    """Colouring of the sparsity pattern, then JAX's modes with one direction per colour."""
    import asdex

    example = case.task.arguments(case.scale)
    graph = case.task.graph(scale=case.scale)
    values, inputs = (
        sum(prod(graph.vertices[n].shape) for n in group) for group in (graph.intermediates, graph.inputs)
    )
    if values * inputs > ASDEX_LIMIT:
        raise Unavailable(f"its sparsity detection would run out of memory on {values:,} values of {inputs:,} inputs")
    with warnings.catch_warnings():
        # Warnings that colours save nothing on dense Jacobians are redundant; the results show it.
        warnings.simplefilter("ignore")
        try:
            jacobian = asdex.jacobian(
                case.function, *(x.astype(case.dtype) for x in example), argnums=case.task.argnums,
                output_format="dense",
            )  # fmt: skip
            return made_ready(case, case.over_batch(jacobian))
        except (NotImplementedError, TypeError, ValueError) as error:
            raise Unavailable(f"asdex: {str(error).splitlines()[0]}") from None


PEERS: dict[str, Callable[[Case], Ready]] = {"casadi": casadi_peer.prepare, "asdex": _asdex}
