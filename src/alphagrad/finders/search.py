"""The public search for elimination orders."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, Any

import graphax as gx
from graphax import ComputationGraph, GraphaxError, Order, OrderLike

from ..elimination.objective import FUSED, Objective, ObjectiveLike
from ..errors import SearchError, whole_number
from ..tasks.task import Task
from . import records
from .bodies import search_bodies
from .budget import Budget, BudgetLike, Progress
from .pool import run_on
from .portfolio import FINDERS
from .result import SearchResult
from .run import Trial, run

if TYPE_CHECKING:
    from .fastest import MappedFunction


def search(
    target: Callable[..., object] | ComputationGraph | Task,
    *args: Any,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    simplify: bool = False,
    budget: BudgetLike = 10,
    minimize: ObjectiveLike = "multiplications",
    counting: str = "folded",
    method: str = "auto",
    seed: int = 0,
    start: OrderLike | None = None,
    batch_axes: Sequence[int | None] | None = None,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
    workers: int = 1,
    executor: Executor | None = None,
    record: bool = True,
) -> SearchResult:
    """Search for an elimination order with a low cost, and bound how low the cost can be.

    For a graph with loops it also searches orders of the bodies. The result has a bound for each body.

    Args:
        target: a function, with example arguments; or a graph or a `Task`, without.
        args: example arguments; only their shapes matter, except for those outside ``argnums``.
        argnums, has_aux: as in `graphax.jacve`.
        simplify: remove common subexpressions first. `jacve` then does the same when you pass it the order.
        budget: seconds, a `Budget`, or ``"certified"`` to continue until the order is proven optimal. Compiling the
            search itself (once per installation) is not counted. Ctrl-C ends a search early and returns the best so
            far.
        minimize: ``"multiplications"``, ``"operations"``, ``"peak"``, weights for multiplications and additions, or
            ``"runtime"``. The latter ranks orders by a model of this machine, which is measured once, and then measures
            the best few under `jax.vmap`. It needs a function or a task.
        counting: ``"folded"`` counts what is executed, ``"raw"`` every product of two edges.
        method: the finder: ``"auto"``, ``"presets"``, ``"greedy"``, ``"beam"``, ``"anneal"``, ``"temper"``,
            ``"windows"``, ``"exact"``, ``"policy"`` (games of a learned policy), or ``"policy+anneal"`` and
            ``"policy+beam"``, which start from its order.
        seed: the seed of all random choices. The same seed takes the same steps. With a budget of evaluations the
            search ends at the same order; with a budget of seconds the clock decides how far it gets.
        start: an order to start from, in any form that ``jacve(order=...)`` accepts.
        batch_axes: for ``minimize="runtime"``, which arguments are mapped over: 0 or None for each, like ``in_axes`` of
            `jax.vmap`. By default, the differentiated arguments are mapped.
        resume: also start from the best order on record. Lower bounds on record are used in any case.
        progress: is called with a `Progress` about ten times a second.
        workers: processes to search on, if ``executor`` is not given. A script that uses more than one needs ``if
            __name__ == "__main__":`` around its work, as always with `multiprocessing`.
        executor: any `concurrent.futures.Executor`, such as ``dask.distributed.Client().get_executor()`` or
            ``mpi4py.futures.MPIPoolExecutor()``. ``workers`` is the number of trials that it gets at a time.
        record: keep the order in the user's cache if it is the best known for the graph.
    """
    limit, objective = Budget.of(budget), FUSED if minimize == "runtime" else Objective.of(minimize, counting)
    if method not in tuple(FINDERS):
        raise SearchError(f"unknown method {method!r}; choose one of: {', '.join(FINDERS)}")
    workers, seed = whole_number("workers", workers, 1), whole_number("seed", seed, 0)
    if progress is not None and not callable(progress):
        raise SearchError(f"progress must be a function that takes a Progress, but is {progress!r}")
    if executor is not None and not hasattr(executor, "submit"):
        raise SearchError(f"executor must be a concurrent.futures.Executor, but is {executor!r}")
    if minimize == "runtime" and (counting != "folded" or method != "auto" or workers > 1 or executor is not None):
        raise SearchError(
            "minimize='runtime' counts what is executed, searches with method='auto', and measures in this process; "
            "leave counting, method, workers and executor as they are"
        )
    graph = graph_of(target, args, argnums, has_aux, simplify)
    known = records.best_known(graph, objective)
    given = None if start is None else Order.of(start, graph)
    starts = tuple(order for order in (given, known if resume else None) if order is not None)
    proven = 0.0 if known is None or graph.has_loops else known.bound or 0.0
    trial = Trial(graph, objective, method, limit, seed, starts, proven)
    if minimize == "runtime":
        from .fastest import fastest

        return fastest(_timed(target, args, argnums, has_aux, batch_axes), trial, progress)
    in_process = workers == 1 and executor is None
    find = run if in_process else partial(run_on, executor, workers)
    result = search_bodies(trial, find, progress)
    if record:
        records.offer(result)
    return result


def _timed(target: Any, args: Sequence[Any], argnums: Any, has_aux: bool, batch_axes: Any) -> "MappedFunction":
    """The function for whose Jacobian the run time is to be minimised."""
    from graphax.trace import positions

    from .fastest import MappedFunction

    if isinstance(target, ComputationGraph):
        raise SearchError("minimize='runtime' has to run the function; give the function, with example arguments")
    if isinstance(target, Task):
        return MappedFunction(target.function, target.arguments(), target.argnums, False, target.batch_axes)
    numbers = positions(argnums)
    default = tuple(0 if n in numbers else None for n in range(len(args)))
    axes = default if batch_axes is None else tuple(batch_axes) if isinstance(batch_axes, Sequence) else ()
    if len(axes) != len(args) or not set(axes) <= {0, None} or 0 not in axes:
        raise SearchError(
            f"batch_axes must have 0 or None for each of the {len(args)} arguments, and at least one 0, "
            f"but is {batch_axes!r}"
        )
    return MappedFunction(target, tuple(args), argnums, has_aux, axes)


def graph_of(
    target: Any, args: Sequence[Any], argnums: int | Sequence[int], has_aux: bool, simplify: bool
) -> ComputationGraph:
    """The graph of any target that a search accepts; see `search`."""
    if isinstance(target, ComputationGraph | Task) and args:
        raise SearchError("a graph or a task already has its arguments; give example arguments with functions only")
    if isinstance(target, Task):
        return target.graph(simplify=simplify)
    if isinstance(target, ComputationGraph):
        return target
    if not callable(target):
        raise SearchError(f"cannot search an order for {target!r}; give a function, a graph or a task")
    try:
        return gx.build_graph(target, *args, argnums=argnums, has_aux=has_aux, simplify=simplify)
    except GraphaxError:
        raise
    except Exception as error:
        name = getattr(target, "__name__", repr(target))
        raise SearchError(
            f"{name} cannot be traced with the example arguments given: {type(error).__name__}: {error}"
        ) from error
