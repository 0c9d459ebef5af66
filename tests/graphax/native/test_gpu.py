"""Tests that need a GPU: GRAPHAX_TEST_PLATFORM=cuda,cpu pytest tests/graphax/native/test_gpu.py"""

import subprocess
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import graphax as gx
from alphagrad.tasks import TASKS
from graphax.errors import NativeError
from graphax.native import cuda, loaded

from ..comparing import array, assert_same

pytestmark = pytest.mark.skipif(jax.default_backend() != "gpu", reason="needs a GPU")


def rows(x):
    return jnp.sin(x) * jnp.roll(x, 1) / (1 + x * x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("batch", [1, 2, 31, 32, 33, 127, 129, 32_769, 100_001])
def test_batches_with_remainders(batch, dtype):
    x = array(batch, 5).astype(dtype)
    got = jax.jit(jax.vmap(gx.jacve(rows, backend="native")))(x)
    assert_same(got, jax.vmap(jax.jacfwd(rows))(x), 1e-5 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("name", ["RoeFlux_1d", "BlackScholes", "RobotArm_6DOF", "HumanHeartDipole"])
def test_jacobians_of_tasks(name):
    task = TASKS[name]
    points = [np.float64(x) * (1 + 0.02 * array(1001, *np.shape(x), seed=1)) for x in task.arguments()]
    got = jax.jit(jax.vmap(gx.jacve(task.function, argnums=task.argnums, backend="native")))(*points)
    assert_same(got, jax.vmap(jax.jacrev(task.function, task.argnums))(*points), 1e-9)


def test_results_of_more_than_2_to_the_31_elements():
    x = jnp.linspace(-1.0, 1.0, 1 << 25, dtype=np.float32)
    function = lambda x: jnp.sin(x) * jnp.arange(65.0, dtype=np.float32)
    got = jax.jit(jax.vmap(gx.kernel(function, backend="native")))(x)
    assert got.size > 2**31
    for n in (0, 1 << 24, (1 << 25) - 1):
        assert_same(got[n], function(x[n]), 1e-6)


@pytest.mark.parametrize("how", ["scan", "nested maps", "grad", "cond", "a single point"])
def test_inside_transformations(how):
    jacobian, x = gx.jacve(rows, backend="native"), array(6, 5)
    runs = {
        "scan": lambda j: lax.scan(lambda c, row: (c + j(row).sum(), j(row)), 0.0, jnp.asarray(x)),
        "nested maps": lambda j: jax.vmap(jax.vmap(j))(jnp.stack([x, 2 * x])),
        "grad": lambda j: jax.grad(lambda x: jnp.sum(jax.vmap(j)(x) ** 2))(jnp.asarray(x)),
        "cond": lambda j: lax.cond(x[0, 0] > 9, lambda x: jax.vmap(j)(x), lambda x: 2 * jax.vmap(j)(x), jnp.asarray(x)),
        "a single point": lambda j: j(jnp.asarray(x[0])),
    }
    assert_same(jax.jit(lambda: runs[how](jacobian))(), runs[how](jax.jacfwd(rows)), 1e-9)


def test_eight_threads_at_once():
    jacobian = jax.jit(jax.vmap(gx.jacve(rows, backend="native")))
    problems = []

    def work(seed):
        try:
            x = array(1000 + seed, 5, seed=seed)
            for _ in range(20):
                assert_same(jacobian(x), jax.vmap(jax.jacfwd(rows))(x), 1e-9)
        except BaseException as error:  # noqa: BLE001  told to the thread that asked
            problems.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


def test_two_processes_at_once():
    code = (
        "import os; os.environ['XLA_PYTHON_CLIENT_PREALLOCATE'] = 'false'\n"
        "import jax, jax.numpy as jnp, graphax as gx\n"
        "x = jnp.ones((5000, 3)); f = lambda x: jnp.sin(x) * x[0]\n"
        "for _ in range(50): y = jax.jit(jax.vmap(gx.jacve(f, backend='native')))(x)\n"
        "assert jnp.allclose(y, jax.vmap(jax.jacfwd(f))(x), atol=1e-5)\n"
    )
    both = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    assert [process.wait(300) for process in both] == [0, 0]


def test_code_that_the_driver_refuses_says_why():
    with pytest.raises(NativeError, match="the GPU driver reports"):
        cuda.load(b".version 7.8\n.target sm_90\n.address_size 64\nnonsense\n\0")
    assert_same(jnp.arange(3.0) + 1, jnp.array([1.0, 2.0, 3.0]))


def test_a_kernel_that_fails_to_load_is_left_to_xla(monkeypatch):
    monkeypatch.setattr(cuda.GPU, "compiled", lambda code: b"nonsense\0")
    function = lambda x: jnp.sin(x) * x * 3.25
    got = jax.jit(jax.vmap(gx.jacve(function)))(array(50))
    assert_same(got, jax.vmap(jax.jacfwd(function))(array(50)), 1e-9)
    with pytest.raises(NativeError, match="cannot be compiled or loaded"):
        jax.jit(jax.vmap(gx.jacve(lambda x: function(x) + x, backend="native")))(array(50))


def test_out_of_memory_leaves_nothing_behind():
    function = lambda x: jnp.outer(x, x)
    mapped = jax.jit(jax.vmap(gx.jacve(function, backend="native")))
    with pytest.raises(Exception, match=r"RESOURCE_EXHAUSTED|memory"):
        jax.block_until_ready(mapped(jnp.ones((1 << 26, 12), np.float32)))
    x = array(10, 12)
    assert_same(mapped(x), jax.vmap(jax.jacfwd(function))(x), 1e-9)


def test_kernels_that_nothing_needs_are_dropped():
    before = loaded.on_gpu.count()
    for n in range(80):
        jax.block_until_ready(jax.jit(jax.vmap(gx.jacve(lambda x, n=n: jnp.sin(x) * (n + 0.5))))(array(40)))
        jax.clear_caches()
    loaded.on_gpu.drop_unneeded()
    assert loaded.on_gpu.count() <= before + 2
    assert_same(jax.jit(jax.vmap(gx.jacve(rows)))(array(40, 5)), jax.vmap(jax.jacfwd(rows))(array(40, 5)), 1e-9)


def test_special_values_are_those_of_the_cpu():
    """Except for denormal numbers, which XLA flushes to zero on the CPU."""
    x = np.array([0.0, -0.0, 1e5, -3e7, 1e20, np.inf, -np.inf, np.nan, 2e38], np.float32)
    functions = (
        jnp.sin,
        jnp.cos,
        jnp.tan,
        jnp.exp,
        jnp.log,
        jnp.sqrt,
        lambda x: 1 / x,
        jnp.tanh,
        lambda x: lax.rem(x, x - x + 3),
    )
    mapped = jax.jit(jax.vmap(gx.kernel(lambda x: [f(x) for f in functions], backend="native")))
    here = mapped(jax.device_put(x, jax.devices("cpu")[0]))
    for got, want in zip(mapped(jax.device_put(x, jax.devices()[0])), here, strict=True):
        # Denormal numbers are zero on the CPU.
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=np.finfo(np.float32).tiny)
        numbers = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(want)[numbers])
