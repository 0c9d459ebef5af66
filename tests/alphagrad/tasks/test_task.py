"""Tasks: their names, their example points, and the paper's results."""

import dataclasses
import pickle
import subprocess
import sys

import jax
import numpy as np
import pytest

from alphagrad.errors import AlphagradError, TaskError
from alphagrad.tasks import TASKS, UNSEEN, get

ALL = TASKS | UNSEEN


def test_names_of_tasks_ignore_case():
    for name, task in ALL.items():
        assert get(name) is task
        assert get(name.upper()) is task
        assert task.name == name


def test_a_wrong_name_gets_a_near_one():
    with pytest.raises(TaskError, match=r"did you mean .*RoeFlux_1d"):
        get("RoeFlux1d")
    with pytest.raises(AlphagradError, match="the tasks are: RoeFlux_1d, "):
        get("zzzzzz")


def test_no_name_is_taken_twice():
    assert not set(map(str.lower, TASKS)) & set(map(str.lower, UNSEEN))
    assert len(UNSEEN) >= 12


def test_listing_tasks_traces_nothing():
    code = (
        "import jax\n"
        "def forbidden(*args, **kwargs): raise AssertionError\n"
        "jax.make_jaxpr = jax.jit = jax.eval_shape = forbidden\n"
        "from alphagrad.tasks import TASKS, UNSEEN\n"
        "from alphagrad.tasks.benchmark import generated_f\n"
        "assert all(task.description and task.field for task in (TASKS | UNSEEN).values())\n"
        "assert generated_f.cache_info().currsize == 0\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("task", ALL.values(), ids=ALL)
def test_arguments_fit_the_task(task):
    args = task.arguments()
    assert len(args) == len(task.batch_axes)
    assert all(isinstance(a, np.ndarray) and a.dtype == np.float64 for a in args)
    assert set(task.argnums) <= set(range(len(args)))
    again, other = task.arguments(), task.arguments(seed=1)
    assert all(np.array_equal(a, b) for a, b in zip(args, again, strict=True))
    assert [a.shape for a in args] == [a.shape for a in other]
    assert any(not np.array_equal(a, b) for a, b in zip(args, other, strict=True))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(task.function(*other)))


@pytest.mark.slow
@pytest.mark.parametrize("task", ALL.values(), ids=ALL)
def test_tasks_run_on_batches(task):
    points = [task.arguments(seed=seed) for seed in range(2)]
    shared = [axis is None for axis in task.batch_axes]
    mixed = [[a if same else b for a, b, same in zip(points[0], p, shared, strict=True)] for p in points]
    columns = zip(*mixed, shared, strict=True)
    batch = [first if same else np.stack([first, second]) for first, second, same in columns]
    got = jax.vmap(task.function, task.batch_axes)(*batch)
    want = [task.function(*point) for point in mixed]
    jax.tree.map(lambda g, *w: np.testing.assert_allclose(g, np.stack(w), rtol=1e-9, atol=1e-12), got, *want)


@pytest.mark.parametrize("task", ALL.values(), ids=ALL)
def test_the_graph_does_not_depend_on_the_precision(task):
    with jax.enable_x64(False):
        single = task.graph().fingerprint
    assert task.graph().fingerprint == single


def test_a_scale_below_one_is_an_error():
    with pytest.raises(TaskError, match="at least 1"):
        get("MLP").arguments(scale=0)


def test_what_the_paper_says():
    paper = get("MLP").paper
    assert (paper.forward, paper.reverse, paper.markowitz, paper.alphagrad) == (10930, 392, 4796, 398)
    assert paper.runtimes_ms == (760.63, 29.67, 317.65, 28.73)
    assert paper.gpu_runtimes_ms == (11.04, 0.3, 1.01, 0.29)
    assert get("RoeFlux_1d").paper.gpu_runtimes_ms is None
    assert get("BatchedTransformer").paper is None
    assert all(TASKS[name].paper for name in TASKS if name != "BatchedTransformer")
    assert not any(task.paper for task in UNSEEN.values())


def test_tasks_are_values():
    with pytest.raises(dataclasses.FrozenInstanceError):
        get("MLP").name = "other"
    for task in ALL.values():
        loaded = pickle.loads(pickle.dumps(task))
        assert (loaded.name, loaded.function) == (task.name, task.function)


@pytest.mark.parametrize("task", ALL.values(), ids=lambda task: task.name)
def test_sizes_on_file_are_those_of_the_graph(task):
    graph = task.graph()
    inputs, intermediates, outputs = task.sizes
    assert (inputs, outputs) == (len(graph.inputs), len(graph.outputs))
    assert intermediates in (None, len(graph.intermediates))


def test_tasks_are_listed_without_jax():
    """Completion and `alphagrad tasks` are quick."""
    code = "import sys, alphagrad.tasks as t; t.get('MLP').sizes; assert 'jax' not in sys.modules, 'jax is loaded'"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)
