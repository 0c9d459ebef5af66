import jax.numpy as jnp
import numpy as np
import pytest

from alphagrad.runtime.workload import kernel_statements, workload
from alphagrad.tasks import TASKS
from graphax import NativeError
from graphax.backend import kernel_of


def work_of(function, *args):
    return workload(kernel_of(lambda *args: [function(*args)], [np.float32(arg) for arg in args]).statements)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x, y: x * y + x, {"arithmetic": 1, "memory": 3}),
        (lambda x, y: x * y + x * x, {"arithmetic": 2, "memory": 3}),
        (lambda x, y: (x * y) * (x * y + x), {"arithmetic": 3, "memory": 3}),
        (lambda x, y: jnp.sin(x) / jnp.exp(y), {"sin": 1, "exp": 1, "div": 1, "memory": 3}),
        (lambda x, y: jnp.sin(x) * jnp.cos(x), {"sincos": 1, "arithmetic": 1, "memory": 2}),
        (lambda x, y: jnp.sin(x) * jnp.cos(y), {"sin": 1, "cos": 1, "arithmetic": 1, "memory": 3}),
    ],
)
def test_work_is_counted_by_kinds(function, expected):
    assert +work_of(function, 1.0, 2.0) == expected


def test_values_beyond_the_registers_are_spilt():
    def wide(x, y):
        values = [x * n + y * y * n for n in range(2, 80)]
        return sum(values) * jnp.stack(values[::-1])

    assert work_of(wide, 1.0, 2.0)["spill"] > 100


def test_orders_make_the_difference():
    task = TASKS["RoeFlux_1d"]
    args = tuple(np.float32(x) for x in task.arguments())
    forward, reverse = (workload(kernel_statements(task.function, args, o, task.argnums)) for o in ("fwd", "rev"))
    assert forward["arithmetic"] > reverse["arithmetic"] > 200
    assert forward["div"] == reverse["div"]
    assert forward["memory"] == reverse["memory"] == 6 + 18


def test_what_has_no_kernel():
    with pytest.raises(NativeError):
        kernel_statements(jnp.linalg.svdvals, (np.eye(3, dtype=np.float32),), "rev", 0)


def test_divisions_by_the_same_number_are_one():
    assert work_of(lambda x, y: (x + 1) / y + x / y + y / x, 0.3, 0.7)["div"] == 2
