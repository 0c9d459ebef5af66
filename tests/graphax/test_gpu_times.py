"""Estimated times on a GPU, and the choice between ways to run there. None of these tests needs a GPU."""

import jax.numpy as jnp
import numpy as np
import pytest

import graphax as gx
from graphax import _jax, backend
from graphax.gpu_times import (
    FEW_POINTS,
    ThreadWork,
    forward_on_gpu,
    is_clearly_quicker,
    is_near_the_limit,
    kernel_on_gpu,
    reverse_on_gpu,
    xla_on_gpu,
)


def program(function, *args):
    return _jax.trace(lambda *args: [function(*args)], *args)


@pytest.mark.parametrize("points", [1, 64, FEW_POINTS])
def test_more_instructions_take_longer(points):
    lengths = [100, 5_000, 9_999, 10_001, 14_000, 40_000]
    times = [kernel_on_gpu(ThreadWork(1, length, length, 10), points) for length in lengths]
    assert times == sorted(times)
    assert is_near_the_limit(times[0])
    assert not is_near_the_limit(times[-1])


@pytest.mark.parametrize("shared", [ThreadWork(30, 3_000, 3_000, 30), ThreadWork(1, 1_000, 1_000, 90, 20, 19_000)])
def test_threads_that_share_a_point_pay_for_few_points_only(shared):
    alone = ThreadWork(1, 4_000, 4_000, 900)
    assert kernel_on_gpu(shared, 1) < kernel_on_gpu(alone, 1)
    assert kernel_on_gpu(shared, 1 << 20) > kernel_on_gpu(alone, 1 << 20)


def test_solves_and_products_are_launches_of_their_own():
    x, sizes = np.eye(3), 9
    elementwise, product, solve = (program(f, x) for f in (jnp.sin, lambda x: x @ x, lambda x: jnp.linalg.solve(x, x)))
    assert xla_on_gpu(elementwise, sizes) < xla_on_gpu(product, sizes) < xla_on_gpu(solve, sizes)
    assert forward_on_gpu(solve, 3, 1) <= forward_on_gpu(solve, 3, 1_000)


def test_the_reverse_of_a_gather_is_a_scatter():
    """With many points, adding scattered elements takes most of the time of reverse mode."""
    places = np.arange(50) % 7
    gather, plain = program(lambda x: x[places] ** 2, np.ones(50)), program(lambda x: x**2, np.ones(50))
    assert reverse_on_gpu(gather, 50, 4096) > 5 * forward_on_gpu(gather, 50, 4096)
    assert reverse_on_gpu(plain, 50, 4096) == forward_on_gpu(plain, 50, 4096)
    assert xla_on_gpu(program(lambda x: x.at[places].add(x), np.ones(50)), 4096) > 2 * xla_on_gpu(plain, 4096)


def test_estimates_have_to_differ_clearly():
    assert is_clearly_quicker(4e-6, [5e-6, 6e-6])
    assert not is_clearly_quicker(4.8e-6, [5e-6, 6e-6])
    assert is_clearly_quicker(1.0, [])


def chain(x):
    for step in range(300):
        x = x * jnp.roll(x, step % 5 + 1) + x[step % len(x)]
    return x


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (chain, "in a thread of its own"),
        (lambda x: jnp.sin(x) * x[0], "XLA should be quicker"),
        (lambda x: x @ np.ones((8, 3)), "do not depend on its arguments"),
        (lambda x: jnp.linalg.svd(jnp.outer(x, x) + jnp.diag(x))[1], "no rule for svd"),
    ],
)
def test_the_choice_on_a_gpu(function, said, monkeypatch):
    monkeypatch.setattr(_jax, "computes_on_gpu", lambda: True)
    monkeypatch.setattr(backend, "_check_available", lambda args, required: None)
    assert said in gx.explain(function, np.arange(1.0, 9.0)).backend.reason
