"""Benchmarks whose cases compile at the same time, in processes of their own, and are measured one after another.

Compiling for a GPU takes much longer than measuring. A worker prepares its cases, waits until all workers have prepared
theirs, and measures while no other worker does.
"""

import os
import queue
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing import get_context
from threading import BrokenBarrierError
from typing import Any

# Workers that have waited this long for the others measure all the same.
PATIENCE = 400.0
_ASKED = 1.0


def results_of(work: Callable[[Any], Callable[[], Iterator[Any]]], shares: Sequence[Any], jobs: int) -> Iterator[Any]:
    """The results of all shares of the work, as they arrive.

    ``work`` prepares a share, and returns a function that measures it and yields results. It has to be a function of a
    module, because it runs in other processes if there is more than one job.
    """
    if jobs == 1:
        for share in shares:
            yield from work(share)()
        return
    # JAX reserves most of the memory of a GPU for the first process otherwise.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    context = get_context("spawn")
    for start in range(0, len(shares), jobs):
        chosen = shares[start : start + jobs]
        found, turn, prepared = context.Queue(), context.Lock(), context.Barrier(len(chosen))
        workers = [context.Process(target=_worker, args=(work, share, prepared, turn, found)) for share in chosen]
        for worker in workers:
            worker.start()
        yield from _arriving(found, workers)


def _worker(work: Callable, share: Any, prepared: Any, turn: Any, found: Any) -> None:
    try:
        measure = work(share)
    finally:
        # A worker that fails is done as well; the others may still be preparing.
        with suppress(BrokenBarrierError):
            prepared.wait(PATIENCE)
    with turn:
        for result in measure():
            found.put(result)


def _arriving(found: Any, workers: Sequence[Any]) -> Iterator[Any]:
    while True:
        running = any(worker.is_alive() for worker in workers)
        try:
            yield found.get(timeout=_ASKED)
        except queue.Empty:
            if not running:
                break
    failed = [worker.exitcode for worker in workers if worker.exitcode]
    if failed:
        raise SystemExit(f"{len(failed)} of {len(workers)} workers failed")
