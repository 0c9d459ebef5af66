"""Searches on process pools and on a Dask cluster."""

import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor

import pytest

import alphagrad
from alphagrad import Budget, SearchError
from alphagrad.finders import pool
from alphagrad.tasks import TASKS

TASK = TASKS["RoeFlux_3d"]
TRIALS = Budget(evaluations=80_000)


@pytest.fixture(autouse=True)
def short_trials(monkeypatch):
    monkeypatch.setattr(pool, "TRIAL", 20_000)


def searched(**options):
    return alphagrad.search(TASK, counting="raw", budget=TRIALS, seed=2, record=False, **options)


def processes(count):
    return ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_all_engines_find_the_same():
    distributed = pytest.importorskip("distributed")
    own = searched(workers=2)
    with processes(1) as given:
        ours = searched(executor=given, workers=3)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        theirs = searched(executor=client.get_executor(), workers=2)
    assert own.order == ours.order == theirs.order
    assert own.evaluations >= TRIALS.evaluations
    assert own.value < searched(method="presets").value


def kill_a_worker_after(seconds, pids):
    def kill():
        time.sleep(seconds)
        os.kill(pids()[0], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


@pytest.mark.slow
def test_a_worker_of_our_own_that_dies_is_replaced():
    expected = searched(workers=2)
    known = {child.pid for child in multiprocessing.active_children()}

    def new_children():
        while True:
            pids = [child.pid for child in multiprocessing.active_children() if child.pid not in known]
            if pids:
                return pids
            time.sleep(0.05)

    killer = kill_a_worker_after(1.0, new_children)
    result = searched(workers=2)
    killer.join()
    assert result.order == expected.order


def test_results_of_others_survive_the_death_of_a_given_pool():
    with processes(2) as given:
        list(given.map(time.sleep, [0.01] * 2))
        found = []

        def kill_once(progress):
            if progress.evaluations >= 20_000 and not found:
                found.append(progress.best)
                os.kill(next(iter(given._processes)), signal.SIGKILL)

        result = alphagrad.search(
            TASK, counting="raw", budget=Budget(evaluations=2_000_000), record=False, executor=given, workers=2,
            progress=kill_once,
        )  # fmt: skip
    assert found
    assert result.value <= found[0]
    assert result.stopped == "workers died"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_dask_worker_that_dies_costs_only_its_trials():
    distributed = pytest.importorskip("distributed")
    expected = searched(workers=1, executor=None)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = list(client.run(os.getpid).values())
        killer = kill_a_worker_after(1.5, lambda: pids)
        result = searched(executor=client.get_executor(), workers=2)
        killer.join()
    assert result.value <= max(expected.value, searched(workers=2).value)


def test_a_dead_pool_is_an_error():
    with processes(1) as given:
        given.submit(os._exit, 1)
        time.sleep(1.0)
        with pytest.raises(SearchError, match="died"):
            searched(executor=given, workers=1)


def test_seconds_limit_a_search_on_workers():
    began = time.monotonic()
    result = alphagrad.search(TASK, budget=2.0, workers=2, record=False)
    assert result.value <= result.objective.value(TASK.graph().cost("rev"))
    assert time.monotonic() - began < 60


def test_an_interrupt_returns_the_best_so_far():
    def interrupt(progress):
        raise KeyboardInterrupt

    result = searched(workers=1, executor=None, progress=interrupt)
    assert result.stopped == "interrupted"
    with processes(1) as given:
        assert searched(executor=given, workers=1, progress=interrupt).stopped == "interrupted"
