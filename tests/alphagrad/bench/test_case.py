import jax
import numpy as np
import pytest

from alphagrad.bench.case import Case, checked_scale, has_sizes, of_figures, of_paper, of_table
from alphagrad.errors import TaskError
from alphagrad.tasks import TASKS, UNSEEN


@pytest.mark.parametrize("name", TASKS)
def test_points_of_a_batch(name):
    task = TASKS[name]
    case, alone = Case(task, 3, 1, "float32"), Case(task, 1, 1, "float64")
    for x, one, axis in zip(case.points, alone.points, task.batch_axes, strict=True):
        assert x.dtype == np.float32
        assert one.dtype == np.float64
        assert x.shape == (one.shape if axis is None else (3, *one.shape))
    assert [x.shape[1:] for x in case.shapes()] == [x.shape for x in alone.shapes()]
    assert all(np.array_equal(x, y) for x, y in zip(case.points, Case(task, 3).points, strict=True))
    assert all(len(x) == 2 for x, has_batch in zip(case.first(2), case.batched, strict=True) if has_batch)


def test_over_a_batch():
    case = Case(UNSEEN["LSTMCell"], 2)
    jacobian = case.over_batch(jax.jacrev(case.function, case.task.argnums))
    assert [x.shape for x in jax.tree.leaves(jacobian(*case.points))] == [x.shape for x in case.shapes()]
    assert Case(case.task, 1).over_batch(len) is len


def test_cases_of_the_paper():
    table = {case.task.name: (case.batch, case.scale) for case in of_table(list(TASKS.values()))}
    assert table["RoeFlux_1d"] == (512, 1)
    assert table["MLP"] == (512, 16)
    assert table["TransformerEncoder"] == (1, 16)
    figures = [(case.task.name, case.batch, case.scale) for case in of_figures([TASKS["random_f"], TASKS["MLP"]])]
    assert figures[0] == ("random_f", 1, 1)
    assert ("random_f", 65536, 1) not in figures
    assert figures[-2:] == [("MLP", 64, 8), ("MLP", 128, 16)]
    assert len(of_paper([TASKS["MLP"]])) == 6
    assert len(of_paper([TASKS["TransformerEncoder"]])) == 5


def test_tasks_without_sizes():
    assert has_sizes(TASKS["MLP"])
    assert checked_scale(TASKS["RoeFlux_1d"], 1) == 1
    with pytest.raises(TaskError, match=r"RoeFlux_1d has no sizes to multiply; those that have: MLP, Tr"):
        checked_scale(TASKS["RoeFlux_1d"], 2)


def test_names_of_cases():
    assert str(Case(TASKS["MLP"], 4096, 16)) == "MLP, batch 4,096, sizes ×16, float32"
